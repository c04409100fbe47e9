import type { Db, Tx } from '../../db/client.js';
import { isFault } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { foldName } from '../../kit/names.js';
import * as agents from './agents-store.js';
import * as people from './people-store.js';
import { adminKeys, readAddress, readHumanName } from './rules.js';
import { createPasswords } from './sessions.js';

/** What an operator does from the machine of the service, without a call. */

/** An agent by its id or its name. */
export const findAgentNamed = (db: Db, id_or_name: string) =>
  agents.findAgentBy(db, id_or_name.toLowerCase(), foldName(id_or_name));

/** The person of an e-mail address; undefined where nobody signed up with it. */
export const findPerson = async (db: Db, email: string) => {
  const address = readAddress(email);
  return address === null ? undefined : people.findHumanByEmail(db, address.email_key);
};

/** Each address of ADMIN_EMAILS, in the form that addresses are compared in. */
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
 * A person whose address counts as verified. One who has signed up keeps name and password.
 * Throws a sentence where the address or the name is none.
 */
export const addVerifiedPerson = async (tx: Tx, person: NewPerson) => {
  const address = readAddress(person.email);
  const name = readHumanName(person.name);
  if (address === null) throw new Error(`${person.email} is not an e-mail address.`);
  if (name === undefined) throw new Error('A name has 1 to 80 characters.');
  const password_hash = await createPasswords().hash(person.password);
  if (isFault(password_hash)) throw new Error(password_hash.message);
  const human = { id: makeId(), ...address, name, password_hash, created_at: person.at };
  const is_new = await people.insertHuman(tx, human);
  const row = await people.findHumanByEmail(tx, address.email_key);
  if (row === undefined) throw new Error('a person who was added is not there');
  await people.markVerified(tx, row.id, { now: person.at });
  const { id, email, email_key } = row;
  return { id, email, email_key, is_new, was_verified: row.email_verified_at !== null };
};
