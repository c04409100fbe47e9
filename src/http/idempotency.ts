import { createHmac } from 'node:crypto';
import type { Logger } from 'pino';
import type { Sql, Tx } from '../db/client.js';
import { createGroupCommit } from '../db/group-commit.js';
import { isFault } from '../kit/fault.js';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import { createSealer, deriveKey, type Sealer } from '../kit/sealing.js';
import type { Service } from '../kit/service.js';
import {
  type ClaimAsk,
  claimAll,
  deleteClaim,
  deleteOld,
  findByCredential,
  type KnownRow,
  storeAnswer,
  storeAnswers,
} from './idempotency-store.js';
import type { Answer } from './route.js';

/**
 * `Idempotency-Key`: a call that is sent again has its effect once and gets its first answer.
 *
 * The states of a key: free → running (claimed, with a lease as long as a request may take) → done
 * (with the answer) → free after 24 hours. A claim whose lease runs out makes the key free for the
 * same request, one that is released for any. `lease_id` is the fence: an answer is stored only by
 * the claim that still holds the key, so that a call which outlived its lease takes its effect back
 * instead of doubling it.
 *
 * A handler calls, in the transaction of its effect, last of all,
 *
 *     await ctx.keep(tx, answer);          // does nothing without a key
 *
 * and a group commit, which has many calls in one transaction, takes `ctx.claim` with each draft
 * (null without a key) and calls, before it commits,
 *
 *     await keepAll(tx, [{ claim, answer }, …]);
 *
 * Both throw `ClaimLostError` when a claim is not held any more; the transaction must then roll
 * back, and the caller gets 409 IDEMPOTENCY_IN_PROGRESS. Both may be run again after an outage.
 */

/** The right to carry a call out, held by one request at a time. */
export interface Claim {
  readonly scope: string;
  readonly key: string;
  readonly lease_id: string;
  /** The stored form: sealed, because an answer may carry a secret that is shown only once. */
  seal(answer: Answer): Buffer;
  /** The answer that was handed to a transaction, if one was. */
  kept: Answer | null;
}

export interface Kept {
  readonly claim: Claim;
  readonly answer: Answer;
}

export class ClaimLostError extends Error {
  override readonly name = 'ClaimLostError';
}

/** Stores the answers with the effects of the same transaction. */
export const keepAll = async (tx: Tx, kept: readonly Kept[]): Promise<void> => {
  if (kept.length === 0) return;
  const rows = kept.map(({ claim, answer }) => ({
    scope: claim.scope,
    key: claim.key,
    lease_id: claim.lease_id,
    answer: claim.seal(answer),
  }));
  const stored = await storeAnswers(tx, rows);
  if (stored.size < kept.length) throw new ClaimLostError('another call holds an Idempotency-Key');
  for (const { claim, answer } of kept) claim.kept = answer;
};

/** A call with a key: all of it must be the same for a replay. */
export interface CallToClaim {
  /** The owner of the key. */
  readonly scope: string;
  readonly key: string;
  readonly route: string;
  /** Path with its query. */
  readonly target: string;
  readonly raw_body: Uint8Array | string;
  /** The credentials, where the call ends them: its repeat comes with credentials that ended. */
  readonly credential: string | null;
}

export type Claimed =
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'replay'; readonly answer: Answer }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'running' };

export interface Keeper {
  claim(call: CallToClaim): Promise<Claimed>;
  /** The first answer to a call that ended its credentials; null when there is none. */
  findEnded(call: CallToClaim): Promise<Answer | null>;
  /** For calls without a transaction of their own: keeps the answer now. Never throws. */
  keepAfter(claim: Claim, answer: Answer): Promise<void>;
  /** Frees the key of a call that had no effect. Never throws. */
  release(claim: Claim): Promise<void>;
}

interface KeeperOptions {
  readonly sql: Sql;
  readonly secret_key: string;
  readonly log: Logger;
  /** A crashed process frees its keys after it. */
  readonly lease_ms?: number;
}

/** The repeat of a call that ended its credentials gets its answer this long. */
const ended_ms = 10 * 60_000;
/** Such an answer is worth credentials, so its key must be one that nobody guesses. */
const unguessable = 20;

const nameOf = ({ scope, key }: Pick<ClaimAsk, 'scope' | 'key'>): string => `${scope}\n${key}`;

const openAnswer = (sealer: Sealer, row: KnownRow): Answer | null => {
  const text = row.answer === null ? null : sealer.open(nameOf(row), row.answer);
  return text === null ? null : (JSON.parse(text) as Answer);
};

export const createKeeper = (options: KeeperOptions): Keeper => {
  const { sql, secret_key, log, lease_ms = 10_000 } = options;
  const sealer = createSealer(secret_key, 'prediction-forum kept answers 1');
  /** Digests are keyed: a body may hold a password, which a plain hash would offer for guessing. */
  const digest_key = deriveKey(secret_key, 'prediction-forum idempotency digests 1');
  const digestOf = (text: string, body: Uint8Array | string): Buffer =>
    createHmac('sha256', digest_key).update(text).update(body).digest();
  const askOf = ({ scope, key, route, target, raw_body, credential }: CallToClaim): ClaimAsk => ({
    ...{ scope, key, route, digest: digestOf(`${route}\n${target}\n`, raw_body) },
    credential: credential === null ? null : digestOf('credential\n', credential),
    lease_id: makeId(),
  });
  /** Claims of calls at the same time share a statement; the row of a key that is not free. */
  const claiming = createGroupCommit<ClaimAsk, KnownRow | 'claimed' | undefined>({
    key: nameOf,
    one_a_key: true,
    async commit({ drafts: asks }) {
      const { leases, known } = await sql.begin((tx) => claimAll(tx, asks, lease_ms));
      const rows = new Map(known.map((row) => [nameOf(row), row]));
      return asks.map((ask) => (leases.has(ask.lease_id) ? 'claimed' : rows.get(nameOf(ask))));
    },
  });

  const makeClaim = (ask: ClaimAsk): Claim => ({
    scope: ask.scope,
    key: ask.key,
    lease_id: ask.lease_id,
    seal: (answer) => sealer.seal(nameOf(ask), JSON.stringify(answer)),
    kept: null,
  });
  const warn = (error: unknown, message: string): void => log.warn(describeError(error), message);

  return {
    async claim(call) {
      const ask = askOf(call);
      const row = await claiming.add(ask);
      if (row === 'claimed') return { kind: 'claimed', claim: makeClaim(ask) };
      // It went away in between.
      if (row === undefined) return { kind: 'running' };
      if (!ask.digest.equals(row.digest)) return { kind: 'mismatch' };
      if (row.state === 'running') return { kind: 'running' };
      const answer = openAnswer(sealer, row);
      // Sealed under another SECRET_KEY: the answer is lost, and doing it again would be wrong.
      return answer === null ? { kind: 'mismatch' } : { kind: 'replay', answer };
    },
    async findEnded(call) {
      if (call.credential === null || call.key.length < unguessable) return null;
      const row = await findByCredential(sql, askOf(call), ended_ms);
      return row === undefined ? null : openAnswer(sealer, row);
    },
    async keepAfter(claim, answer) {
      const { scope, key, lease_id } = claim;
      try {
        await storeAnswer(sql, { scope, key, lease_id, answer: claim.seal(answer) });
      } catch (error) {
        warn(error, 'idempotency: an answer was not kept');
      }
    },
    async release(claim) {
      try {
        await deleteClaim(sql, claim);
      } catch (error) {
        warn(error, 'idempotency: a key stays claimed until its lease ends');
      }
    },
  };
};

/**
 * Kept are success and the refusals by which a handler judged the state of things (conflict,
 * permission, not_found), so that a late repeat cannot do what was refused before.
 * A refusal of the request itself, of a limit or of an outage frees the key: the request may be
 * mended under it.
 */
export const isKept = (answer: Answer): boolean =>
  !isFault(answer) || ['conflict', 'permission', 'not_found'].includes(answer.def.category);

const most_a_turn = 2_000;

/** Forgets answers after a day; any number of these may run. */
export const createIdempotencySweep = (sql: Sql, log: Logger, every_ms = 60_000): Service =>
  makeLoop({
    name: 'idempotency sweep',
    log,
    every_ms,
    turn: async () => ((await deleteOld(sql, most_a_turn)) === most_a_turn ? 'again' : 'rest'),
  });
