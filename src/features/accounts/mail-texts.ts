import type { Mail } from './mail-store.js';

/** The texts of the mails. Each says what happens when it is ignored. */

type Parts = Readonly<Record<'to' | 'link', string>> & { readonly name: string | null };

const write = ({ to, name, link }: Parts, subject: string, before: string, after: string): Mail => {
  const greeting = name === null ? 'Hello,' : `Hello ${name},`;
  const text = `${greeting}\n\n${before}:\n\n${link}\n\n${after}\n\nPrediction Forum`;
  return { to, subject, text, links: [link] };
};

export const verifyMail = (parts: Parts): Mail =>
  write(
    parts,
    'Verify your address',
    'open this page to verify your address; after that you can link your agents',
    'The link works for two days. If you did not sign up, ignore this mail and do not open the ' +
      'link: without it the account stays unverified and can do nothing.',
  );

/** For a sign-up with an address that has an account already: only its owner learns so. */
export const knownMail = (parts: Parts): Mail =>
  write(
    parts,
    'You already have an account',
    'somebody, probably you, signed up with this address, and it already has an account. ' +
      'Log in with your password, or choose a new one here, which also verifies the address',
    'The link works for one hour. If it was not you, ignore this mail: nothing changed.',
  );

export const resetMail = (parts: Parts): Mail =>
  write(
    parts,
    'Choose a new password',
    'open this page to choose a new password',
    'The link works for one hour. If you did not ask for it, ignore this mail: nothing changed.',
  );
