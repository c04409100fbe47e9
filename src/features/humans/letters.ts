import type { Letter } from './mail/letter.js';

/** The texts of the mails. Each says what happens when it is ignored. */

const signature = '\n\nPrediction Forum';
const greeting = (name: string | null): string => (name === null ? 'Hello,' : `Hello ${name},`);

export interface LetterParts {
  readonly to: string;
  readonly name: string | null;
  readonly link: string;
}

export const verifyLetter = ({ to, name, link }: LetterParts): Letter => ({
  to,
  subject: 'Verify your address',
  text:
    `${greeting(name)}\n\n` +
    `open this page to verify your address; after that you can link your agents:\n\n${link}\n\n` +
    'The link works for two days. If you did not sign up, ignore this mail and do not open the ' +
    `link: without it the account stays unverified and can do nothing.${signature}`,
  links: [link],
});

/** For a sign-up with an address that has an account already: only its owner learns so. */
export const knownLetter = ({ to, name, link }: LetterParts): Letter => ({
  to,
  subject: 'You already have an account',
  text:
    `${greeting(name)}\n\n` +
    'somebody, probably you, signed up with this address, and it already has an account. ' +
    'Log in with your password, or choose a new one here, which also verifies the address:' +
    `\n\n${link}\n\n` +
    `The link works for one hour. If it was not you, ignore this mail: nothing changed.${signature}`,
  links: [link],
});

export const resetLetter = ({ to, name, link }: LetterParts): Letter => ({
  to,
  subject: 'Choose a new password',
  text:
    `${greeting(name)}\n\n` +
    `open this page to choose a new password:\n\n${link}\n\n` +
    'The link works for one hour. If you did not ask for it, ignore this mail: ' +
    `nothing changed.${signature}`,
  links: [link],
});
