import { createHmac } from 'node:crypto';
import type { Logger } from 'pino';
import { isFault } from './fault.js';
import type { Answer } from './http/route.js';
import {
  type ClaimAsk,
  claimAll,
  deleteClaim,
  deleteOld,
  findByCredential,
  type KnownRow,
  renewLeases,
  storeAnswer,
  storeAnswers,
} from './idempotency-store.js';
import { makeId } from './ids.js';
import { describeError } from './log.js';
import { makeLoop } from './loop.js';
import type { Sql, Tx } from './pg/client.js';
import { createGroupCommit, type GroupCommit } from './pg/group-commit.js';
import { createSealer, deriveKey, type Sealer } from './sealing.js';
import type { Service } from './service.js';

/**
 * `Idempotency-Key`: a call that is sent again has its effect once and gets its first answer.
 *
 * The states of a key: free → running (claimed, with a lease that is renewed while its process
 * works) → done (with the answer) → free after 24 hours. A claim whose lease runs out makes the key
 * free for the same request, one that is released for any. `lease_id` is the fence: an answer is
 * stored only by the claim that still holds the key, so that a call which slept through its lease
 * takes its effect back instead of doubling it.
 *
 * What a handler does with it: in the transaction of its effect, last of all,
 *
 *     await ctx.keep(tx, answer);          // nothing without a key; `ctx` must not be destructured
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
  /** What is stored: sealed, because an answer may carry a secret that is shown only once. */
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

/** What a call with a key is: all of it must be the same for a replay. */
export interface CallToClaim {
  /** Whose key it is. */
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
  /** What is claimed is held until `drop`. */
  claim(call: CallToClaim): Promise<Claimed>;
  /** The call is over, however it ended: its lease is not renewed any more. */
  drop(claim: Claim): void;
  /** The first answer to a call that ended its credentials; null when there is none. */
  findEnded(call: CallToClaim): Promise<Answer | null>;
  /** For calls without a transaction of their own: keeps the answer now. Never throws. */
  keepAfter(claim: Claim, answer: Answer): Promise<void>;
  /** Frees the key of a call that had no effect. Never throws. */
  release(claim: Claim): Promise<void>;
}

export interface KeeperOptions {
  readonly sql: Sql;
  readonly secret_key: string;
  readonly log: Logger;
  /** A crashed process frees its keys after it; one that works renews it meanwhile. */
  readonly lease_ms?: number;
}

/** The repeat of a call that ended its credentials gets its answer this long. */
const ended_ms = 10 * 60_000;
/** Such an answer is worth credentials, so its key must be one that nobody guesses. */
const unguessable = 20;

const nameOf = ({ scope, key }: Pick<ClaimAsk, 'scope' | 'key'>): string => `${scope}\n${key}`;

interface Verdict {
  readonly is_mine: boolean;
  /** Undefined where the row went away in between. */
  readonly row: KnownRow | undefined;
}

/** Claims of calls at the same time share a statement. */
const createClaiming = (sql: Sql, lease_ms: number): GroupCommit<ClaimAsk, Verdict> =>
  createGroupCommit<ClaimAsk, Verdict>({
    key: nameOf,
    one_a_key: true,
    async commit({ drafts: asks }) {
      const { leases, known } = await sql.begin((tx) => claimAll(tx, asks, lease_ms));
      const rows = new Map(known.map((row) => [nameOf(row), row]));
      return asks.map((ask) => ({
        is_mine: leases.has(ask.lease_id),
        row: rows.get(nameOf(ask)),
      }));
    },
  });

/** Renews the leases of calls that are worked on, all of them in one statement. */
const makeRenewing = ({ sql, log }: KeeperOptions, lease_ms: number) => {
  const held = new Set<Claim>();
  let timer: NodeJS.Timeout | undefined;
  const arm = (): void => {
    if (timer !== undefined || held.size === 0) return;
    timer = setTimeout(renew, lease_ms / 4);
    timer.unref();
  };
  const renew = async (): Promise<void> => {
    try {
      if (held.size > 0) await renewLeases(sql, [...held], lease_ms);
    } catch (error) {
      log.warn(describeError(error), 'idempotency: leases were not renewed');
    }
    timer = undefined;
    arm();
  };
  return {
    hold(claim: Claim): void {
      held.add(claim);
      arm();
    },
    drop: (claim: Claim): void => void held.delete(claim),
  };
};

const openAnswer = (sealer: Sealer, row: KnownRow): Answer | null => {
  const text = row.answer === null ? null : sealer.open(nameOf(row), row.answer);
  return text === null ? null : (JSON.parse(text) as Answer);
};

/** Digests are keyed: a body may hold a password, which a plain hash would offer for guessing. */
const makeDigests = (secret_key: string) => {
  const key = deriveKey(secret_key, 'prediction-forum idempotency digests 1');
  return {
    ofCall: ({ route, target, raw_body }: CallToClaim): Buffer =>
      createHmac('sha256', key).update(`${route}\n${target}\n`).update(raw_body).digest(),
    ofCredential: (credential: string): Buffer =>
      createHmac('sha256', key).update('credential\n').update(credential).digest(),
  };
};

export const createKeeper = (options: KeeperOptions): Keeper => {
  const { sql, secret_key, log, lease_ms = 4_000 } = options;
  const sealer = createSealer(secret_key, 'prediction-forum kept answers 1');
  const digests = makeDigests(secret_key);
  const claiming = createClaiming(sql, lease_ms);
  const renewing = makeRenewing(options, lease_ms);

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
      const { scope, key, route, credential } = call;
      const ask: ClaimAsk = {
        scope,
        key,
        route,
        digest: digests.ofCall(call),
        credential: credential === null ? null : digests.ofCredential(credential),
        lease_id: makeId(),
      };
      const { is_mine, row } = await claiming.add(ask);
      if (is_mine) {
        const claim = makeClaim(ask);
        renewing.hold(claim);
        return { kind: 'claimed', claim };
      }
      if (row === undefined) return { kind: 'running' };
      if (!ask.digest.equals(row.digest)) return { kind: 'mismatch' };
      if (row.state === 'running') return { kind: 'running' };
      const answer = openAnswer(sealer, row);
      // Sealed under another SECRET_KEY: the answer is lost, and doing it again would be wrong.
      return answer === null ? { kind: 'mismatch' } : { kind: 'replay', answer };
    },
    drop: renewing.drop,
    async findEnded(call) {
      if (call.credential === null || call.key.length < unguessable) return null;
      const credential = digests.ofCredential(call.credential);
      const { key, route } = call;
      const ask = { key, route, digest: digests.ofCall(call), credential };
      const row = await findByCredential(sql, ask, ended_ms);
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
 * Which answers are kept: success, and the refusals by which a handler judged the state of things
 * (conflict, permission, not_found), so that a late repeat cannot do what its caller was told was
 * not done. What says that the request itself is not right, that a limit is used up or that the
 * service is away is not kept: the key is free again, and the request may be mended under it.
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
