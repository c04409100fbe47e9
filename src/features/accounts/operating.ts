import type { Db, Tx } from '../../db/client.js';
import { isFault } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { foldName } from '../../kit/names.js';
import * as agents from './agents-store.js';
import * as people from './people-store.js';
import { adminKeys, readAddress, readHumanName } from './rules.js';
import { createPasswords } from './sessions.js';

/** Functions for command-line tools, which run on the service's machine and bypass the API. */

/** Finds an agent by its id or its name. */
export const findAgentNamed = (db: Db, id_or_name: string) =>
  agents.findAgentBy(db, id_or_name.toLowerCase(), foldName(id_or_name));

/** Finds a person by e-mail address. Undefined if the address has no account. */
export const findPerson = async (db: Db, email: string) => {
  const address = readAddress(email);
  return address === null ? undefined : people.findHumanByEmail(db, address.email_key);
};

/** Returns the addresses in ADMIN_EMAILS, normalised like `email_key`. */
export const adminAddresses = (emails: readonly string[]): readonly string[] => [
  ...adminKeys(emails),
];

export interface NewPerson {
  readonly email: string;
  readonly name: string | undefined;
  readonly password: string;
  readonly at: Date;
}

/**
 * Adds a person with a verified address. If the person has already signed up, the name and password
 * do not change. Throws an error with a readable message if the address or name is invalid.
 */
export const addVerifiedPerson = async (tx: Tx, person: NewPerson) => {
  const address = readAddress(person.email);
  const name = readHumanName(person.name);
  if (address === null) throw new Error(`${person.email} is not an e-mail address.`);
  if (name === undefined) throw new Error('The name must have at most 80 visible characters.');
  const password_hash = await createPasswords().hash(person.password);
  if (isFault(password_hash)) throw new Error(password_hash.message);
  const human = { id: makeId(), ...address, name, password_hash, created_at: person.at };
  const is_new = await people.insertHuman(tx, human);
  const row = await people.findHumanByEmail(tx, address.email_key);
  if (row === undefined) throw new Error('the added person was not found');
  await people.markVerified(tx, row.id, { now: person.at });
  const { id, email, email_key } = row;
  return { id, email, email_key, is_new, was_verified: row.email_verified_at !== null };
};
