import { createHmac } from 'node:crypto';
import type { Logger } from 'pino';
import type { Sql, Tx } from '../db/client.js';
import { createGroupCommit } from '../db/group-commit.js';
import { common_faults, type Fault, isFault, refuse, refuseFields } from '../kit/fault.js';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import { createSealer, deriveKey } from '../kit/sealing.js';
import type { Service } from '../kit/service.js';
import type { Request } from './call.js';
import {
  claimAll,
  deleteClaim,
  deleteOld,
  findByCredential,
  type KnownRow,
  type NewClaim,
  storeAnswers,
} from './idempotency-store.js';
import type { Answer, Claim, Context, Route } from './route.js';

/**
 * `Idempotency-Key`: a call that is sent again takes effect once and gets the first answer again.
 *
 * States of a key: free → running (claimed, with a lease as long as a request may take) → done
 * (with the answer) → free after 24 hours. When a lease expires, the key is free for the same
 * request only. When a claim is released, the key is free for any request. Only the claim whose
 * `lease_id` still holds the key can store an answer. If a call takes longer than its lease, it may
 * have lost the key, and then rolls its effect back.
 *
 * A handler makes this call the last one in the transaction of its effect:
 *
 *     await ctx.storeAnswer(tx, answer);          // does nothing without a key
 *
 * A group commit, which has many calls in one transaction, takes `ctx.claim` (null without a key)
 * with each draft, and calls this before it commits:
 *
 *     await storeInTransaction(tx, [{ claim, answer }, …]);
 *
 * Both throw `ClaimLostError` if a claim is no longer held. The transaction must then roll back,
 * and the caller gets 409 IDEMPOTENCY_IN_PROGRESS. Both may run again after an outage.
 */

interface Answered {
  readonly claim: Claim;
  readonly answer: Answer;
}

export class ClaimLostError extends Error {
  override readonly name = 'ClaimLostError';
}

const toRow = ({ claim, answer }: Answered) => {
  const { scope, key, lease_id } = claim;
  return { scope, key, lease_id, answer: claim.seal(answer) };
};

/** Stores the answers in the transaction of their effects. */
export const storeInTransaction = async (tx: Tx, answers: readonly Answered[]): Promise<void> => {
  if (answers.length === 0) return;
  const stored = await storeAnswers(tx, answers.map(toRow), true);
  if (stored.size < answers.length)
    throw new ClaimLostError('another call holds an Idempotency-Key');
  for (const { claim, answer } of answers) claim.stored = answer;
};

/** A call with a key. A repeat gets the stored answer only if all of these parts are the same. */
export interface CallToClaim {
  /** The caller that the key belongs to. */
  readonly scope: string;
  readonly key: string;
  readonly route: string;
  /** Path and query. */
  readonly target: string;
  readonly raw_body: Uint8Array | string;
  /** The credentials, if the call makes them invalid: a repeat then has no caller. Else null. */
  readonly credential: string | null;
}

/** Identifies a claim. */
export type HeldClaim = Pick<Claim, 'scope' | 'key' | 'lease_id'>;

type Claimed =
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'replay'; readonly answer: Answer }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'running' };

export type Idempotency = ReturnType<typeof createIdempotency>;

interface IdempotencyOptions {
  readonly sql: Sql;
  readonly secret_key: string;
  readonly log: Logger;
  /** The keys of a crashed process are free after this time. */
  readonly lease_ms?: number;
}

/** If a call made its own credentials invalid, a repeat gets the first answer for this long. */
const ended_ms = 10 * 60_000;
/** Minimum length of the key of a repeat without valid credentials: nobody may guess the key. */
const unguessable = 20;

const nameOf = ({ scope, key }: Pick<NewClaim, 'scope' | 'key'>): string => `${scope}\n${key}`;

/** Digests are keyed. A plain hash would reveal a password in a body to somebody who guesses. */
const makeClaimReader = (secret_key: string) => {
  const digest_key = deriveKey(secret_key, 'prediction-forum idempotency digests 1');
  const digestOf = (text: string, body: Uint8Array | string): Buffer =>
    createHmac('sha256', digest_key).update(text).update(body).digest();
  return ({ scope, key, route, target, raw_body, credential }: CallToClaim): NewClaim => ({
    scope,
    key,
    route,
    digest: digestOf(`${route}\n${target}\n`, raw_body),
    credential: credential === null ? null : digestOf('credential\n', credential),
    lease_id: makeId(),
  });
};

export const createIdempotency = (options: IdempotencyOptions) => {
  const { sql, secret_key, log, lease_ms = 10_000 } = options;
  const sealer = createSealer(secret_key, 'prediction-forum kept answers 1');
  const newClaimOf = makeClaimReader(secret_key);
  /** Concurrent claims share a statement. If a key is not free, resolves with its row. */
  const claiming = createGroupCommit<NewClaim, KnownRow | 'claimed' | undefined>({
    one_of: nameOf,
    async commit(claims) {
      const { leases, known } = await claimAll(sql, claims, lease_ms);
      const rows = new Map(known.map((row) => [nameOf(row), row]));
      return claims.map((one) => (leases.has(one.lease_id) ? 'claimed' : rows.get(nameOf(one))));
    },
  });

  const claimOf = ({ scope, key, lease_id }: HeldClaim): Claim => {
    const claim: Claim = {
      scope,
      key,
      lease_id,
      stored: null,
      seal: (answer) => sealer.seal(nameOf({ scope, key }), JSON.stringify(answer)),
      store: (tx, answer) => storeInTransaction(tx, [{ claim, answer }]),
    };
    return claim;
  };
  const openAnswer = (row: KnownRow): Answer | null => {
    const text = row.answer === null ? null : sealer.open(nameOf(row), row.answer);
    return text === null ? null : (JSON.parse(text) as Answer);
  };
  const orWarn = (work: Promise<unknown>, message: string): Promise<unknown> =>
    work.catch((error: unknown) => log.warn(describeError(error), `idempotency: ${message}`));

  return {
    /** For a call that another process sent here: makes the claim that the other process holds. */
    claimOf,
    async claim(call: CallToClaim): Promise<Claimed> {
      const wanted = newClaimOf(call);
      const row = await claiming.add(wanted);
      if (row === 'claimed') return { kind: 'claimed', claim: claimOf(wanted) };
      // The row was deleted just after it blocked this claim.
      if (row === undefined) return { kind: 'running' };
      if (!wanted.digest.equals(row.digest)) return { kind: 'mismatch' };
      if (row.state === 'running') return { kind: 'running' };
      const answer = openAnswer(row);
      // The answer was sealed with another SECRET_KEY and is lost. The call must not be repeated.
      return answer === null ? { kind: 'mismatch' } : { kind: 'replay', answer };
    },
    /** Returns the first answer to a call that made its credentials invalid, or null. */
    async findEnded(call: CallToClaim): Promise<Answer | null> {
      if (call.credential === null || call.key.length < unguessable) return null;
      const row = await findByCredential(sql, newClaimOf(call), ended_ms);
      return row === undefined ? null : openAnswer(row);
    },
    /** Stores the answer to a call that has no transaction of its own. Never throws. */
    storeAfter: (claim: Claim, answer: Answer) =>
      orWarn(storeAnswers(sql, [toRow({ claim, answer })], false), 'an answer was not stored'),
    /** Frees the key of a call that had no effect. Never throws. */
    release: (claim: Claim) =>
      orWarn(deleteClaim(sql, claim), 'a key stays claimed until its lease ends'),
  };
};

/**
 * Returns true for success, and for refusals by which a handler judged the current state (conflict,
 * permission, not_found): a later repeat gets the same refusal. If the request, a limit or an
 * outage caused the refusal, the key becomes free, so that a corrected request can use it.
 */
export const isKept = (answer: Answer): boolean =>
  !isFault(answer) || ['conflict', 'permission', 'not_found'].includes(answer.def.category);

export const key_header = 'idempotency-key';
const key_pattern = /^[ -~]{1,255}$/;

const scopeOf = ({ caller, request }: Context): string => {
  if (caller.kind === 'anonymous') return `address:${request.address.limit_key}`;
  return caller.kind === 'admin' ? 'admin' : `${caller.kind}:${caller.id}`;
};

const toClaim = (request: Request, route: Route, scope: string): CallToClaim => {
  const { path, query, raw_body } = request;
  const key = request.header('x-api-key');
  return {
    scope,
    raw_body,
    route: route.id,
    key: request.header(key_header),
    target: `${path}?${query}${route.takes_key ? `\n${key}` : ''}`,
    credential: route.ends_credentials ? `${key}\n${request.header('authorization')}` : null,
  };
};

const replay = (answer: Answer): Answer => ({
  ...answer,
  headers: { ...answer.headers, 'Idempotency-Replayed': 'true' },
});

const refuseRunning = (): Fault =>
  refuse(common_faults.IDEMPOTENCY_IN_PROGRESS, { headers: { 'Retry-After': '1' } });

const refuseKey = (): Fault => {
  const problem = 'must have 1 to 255 printable ASCII characters';
  const fields = [{ path: `header.${key_header}`, message: problem }];
  return refuseFields(fields, `Idempotency-Key ${problem}.`);
};

/**
 * Returns the handler's answer, or the first answer if this request already had one. The caller,
 * the limits and the request's form were checked before, so their refusals leave the key free.
 */
export const answerOnce = async (
  ctx: Context,
  { route, idempotency }: { readonly route: Route; readonly idempotency: Idempotency },
  handle: () => Answer | Promise<Answer>,
): Promise<Answer> => {
  if (!key_pattern.test(ctx.header(key_header))) return refuseKey();
  const claimed = await idempotency.claim(toClaim(ctx.request, route, scopeOf(ctx)));
  if (claimed.kind === 'replay') return replay(claimed.answer);
  if (claimed.kind === 'mismatch') return refuse(common_faults.IDEMPOTENCY_MISMATCH);
  if (claimed.kind === 'running') return refuseRunning();
  const { claim } = claimed;
  ctx.claim = claim;
  try {
    const answer = await handle();
    if (!isKept(answer)) await idempotency.release(claim);
    else if (isFault(answer) || claim.stored === null) await idempotency.storeAfter(claim, answer);
    return answer;
  } catch (error) {
    // If the transaction was committed after all, its answer is stored, and this deletes nothing.
    await idempotency.release(claim);
    if (error instanceof ClaimLostError) return refuseRunning();
    throw error;
  }
};

/** Returns the answer to the call that made these credentials invalid, or null. */
export const findEnded = async (
  request: Request,
  route: Route,
  idempotency: Idempotency | undefined,
): Promise<Answer | null> => {
  if (idempotency === undefined || !route.ends_credentials) return null;
  if (!key_pattern.test(request.header(key_header))) return null;
  const answer = await idempotency.findEnded(toClaim(request, route, ''));
  return answer === null ? null : replay(answer);
};

const max_per_turn = 2_000;

/** Deletes answers after a day. Any number of these sweeps may run at once. */
export const createIdempotencySweep = (sql: Sql, log: Logger, every_ms = 60_000): Service =>
  makeLoop({
    name: 'idempotency sweep',
    log,
    every_ms,
    turn: async () => ((await deleteOld(sql, max_per_turn)) === max_per_turn ? 'again' : 'rest'),
  });
