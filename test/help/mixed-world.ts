import type { Sql } from '../../src/db/client.js';
import { type Answered, type CallOptions, makeCaller } from './app.js';
import { makeRandom } from './season.js';

/** What clients of the mixed load know: who there is and what they may act on, all of it shared. */

export interface MixedAgent {
  readonly id: string;
  readonly key: string;
  readonly code: string;
  /** Index of the person it is linked to; null while it is not, as far as clients know. */
  owner: number | null;
  readonly hooks: string[];
}

export interface MixedQuestion {
  readonly id: string;
  readonly options: readonly string[];
  /** As the last call left it; calls that pass each other are refused: part of the load. */
  status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
}

export interface World {
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<Answered>;
  readonly tokens: readonly string[];
  readonly agents: MixedAgent[];
  readonly questions: MixedQuestion[];
  readonly predictions: { readonly id: string; readonly agent_id: string }[];
  /** Pairs of agent and question that were tried. */
  readonly pairs: Set<string>;
  readonly random: () => number;
  pick<T>(list: readonly T[]): T | undefined;
  chance(share: number): boolean;
  /** A number that nobody had before. */
  next(): number;
}

const password = 'correct horse battery';

/** A person with a verified address. */
const addPerson = async (call: World['call'], sql: Sql, n: number): Promise<string> => {
  const email = `mixed${n}@people.dev`;
  await call('POST', '/api/auth/signup', { body: { email, password } });
  await sql`update humans set email_verified_at = now() where email = ${email}`;
  const { body } = await call('POST', '/api/auth/login', { body: { email, password } });
  return body.token as string;
};

export const makeWorld = async (url: string, sql: Sql, seed: number): Promise<World> => {
  const call = makeCaller(url);
  const tokens: string[] = [];
  for (let n = 0; n < 6; n += 1) tokens.push(await addPerson(call, sql, n));
  const random = makeRandom(seed);
  let made = 0;
  return {
    ...{ call, tokens, random },
    agents: [],
    questions: [],
    predictions: [],
    pairs: new Set(),
    pick: (list) => list[Math.floor(random() * list.length)],
    chance: (share) => random() < share,
    next() {
      made += 1;
      return made;
    },
  };
};
