import { json_type, mediaType, pause } from './calls.js';
import type { Client } from './client.js';

/** A service in development mode shows its e-mails, so a program can sign a person up. */

interface Mail {
  readonly to: string;
  readonly links: readonly string[];
}

/** Returns null if the service is not in development mode. The outbox is not an API operation. */
const readOutbox = async (base_url: string): Promise<readonly Mail[] | null> => {
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(`${base_url}/dev/outbox`, { signal, redirect: 'manual' });
  const is_json = json_type.test(mediaType(response));
  return response.ok && is_json ? ((await response.json()) as readonly Mail[]) : null;
};

const mail_ms = 10_000;
const look_ms = 250;

const findMailToken = async (base_url: string, email: string): Promise<string> => {
  for (const give_up_ms = Date.now() + mail_ms; Date.now() < give_up_ms; await pause(look_ms)) {
    const link = (await readOutbox(base_url))?.find(({ to }) => to === email)?.links[0];
    const token = link === undefined ? null : new URL(link).searchParams.get('token');
    if (token !== null) return token;
  }
  throw new Error(`No mail to ${email} arrived in ${mail_ms / 1_000} s.`);
};

export interface Person {
  readonly email: string;
  readonly password: string;
  readonly name: string;
}

/**
 * Signs a person up, verifies the address with the mailed link, logs in and returns the session
 * token. If the service is not in development mode, does nothing and returns null.
 */
export const signUpPerson = async (
  client: Client,
  base_url: string,
  { email, password, name }: Person,
): Promise<string | null> => {
  if ((await readOutbox(base_url)) === null) return null;
  await client.call('signUp', { body: { email, password, name } });
  const token = await findMailToken(base_url, email);
  await client.call('verifyAddress', { body: { token } });
  return (await client.call('logIn', { body: { email, password } })).token;
};
