import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import {
  type CallToClaim,
  type Claim,
  ClaimLostError,
  isKept,
  type Keeper,
} from '../idempotency.js';
import type { Address } from './address.js';
import type { Call } from './call.js';
import type { Caller } from './caller.js';
import type { Answer, Reply, Route } from './route.js';
import type { Asked } from './talk.js';

/**
 * What mount does with an Idempotency-Key. Order: the request is checked as ever (who, limits,
 * shape), so that a refusal of those kinds leaves the key free; then the key is claimed, or its
 * answer is replayed; then the handler runs, and its answer is kept or the key is released.
 */

export interface KeyedCall {
  readonly route: Pick<Route, 'id' | 'keeps' | 'ends_credentials' | 'takes_key'>;
  readonly asked: Asked;
  readonly call: Call;
}

export interface Keeping {
  /** The handler's answer, or the first one when this request had one already. */
  answerOnce(keyed: KeyedCall, handle: () => Answer | Promise<Answer>): Promise<Answer>;
  /** The answer to the call by which these credentials ended; null when there is none. */
  findEnded(ended: Pick<KeyedCall, 'route' | 'asked'>): Promise<Answer | null>;
}

export const key_header = 'idempotency-key';
const key_pattern = /^[ -~]{1,255}$/;

const scopeOf = (caller: Caller, address: Address): string => {
  if (caller.kind === 'anonymous') return `address:${address.limit_key}`;
  return caller.kind === 'admin' ? 'admin' : `${caller.kind}:${caller.id}`;
};

const describe = (
  { route, asked }: Pick<KeyedCall, 'route' | 'asked'>,
  scope: string,
): CallToClaim => ({
  scope,
  raw_body: asked.raw_body,
  route: route.id,
  key: asked.header(key_header),
  target: `${asked.path}?${asked.query}${route.takes_key ? `\n${asked.header('x-api-key')}` : ''}`,
  credential: route.ends_credentials
    ? `${asked.header('x-api-key')}\n${asked.header('authorization')}`
    : null,
});

const replay = (answer: Answer): Answer => ({
  ...answer,
  headers: { ...answer.headers, 'Idempotency-Replayed': 'true' },
});

const refuseRunning = (): Fault =>
  refuse(common_faults.IDEMPOTENCY_IN_PROGRESS, { headers: { 'Retry-After': '1' } });

const refuseKey = (): Fault => {
  const message = 'Idempotency-Key has 1 to 255 printable ASCII characters.';
  const fields = [{ path: `header.${key_header}`, message: '1 to 255 printable ASCII characters' }];
  return refuse(common_faults.INVALID_REQUEST, { message, fields });
};

/** Tests: says where a route did not keep its answer as it says it does. */
const findUnkept = ({ route }: KeyedCall, claim: Claim, answer: Reply): string | null => {
  // What was found to be a repeat has no effect of its own.
  if (route.keeps === 'after' || answer.headers?.['Idempotency-Replayed'] !== undefined)
    return null;
  if (claim.kept === null) return 'kept no answer in its transaction';
  return JSON.stringify(claim.kept) === JSON.stringify(answer) ? null : 'kept another answer';
};

export const makeKeeping = (keeper: Keeper, check_answers: boolean): Keeping => {
  const settle = async (keyed: KeyedCall, claim: Claim, answer: Answer): Promise<Answer> => {
    if (!isKept(answer)) await keeper.release(claim);
    else if (isFault(answer) || claim.kept === null) await keeper.keepAfter(claim, answer);
    if (check_answers && !isFault(answer)) {
      const problem = findUnkept(keyed, claim, answer);
      if (problem !== null) throw new Error(`${keyed.route.id} ${problem}`);
    }
    return answer;
  };

  return {
    async answerOnce(keyed, handle) {
      const { call, asked } = keyed;
      if (!key_pattern.test(asked.header(key_header))) return refuseKey();
      const claimed = await keeper.claim(describe(keyed, scopeOf(call.caller, asked.address)));
      if (claimed.kind === 'replay') return replay(claimed.answer);
      if (claimed.kind === 'mismatch') return refuse(common_faults.IDEMPOTENCY_MISMATCH);
      if (claimed.kind === 'running') return refuseRunning();
      const { claim } = claimed;
      call.claim = claim;
      try {
        return await settle(keyed, claim, await handle());
      } catch (error) {
        // Where the commit took effect after all, the answer is there and stays.
        await keeper.release(claim);
        if (error instanceof ClaimLostError) return refuseRunning();
        throw error;
      } finally {
        keeper.drop(claim);
      }
    },
    async findEnded(ended) {
      if (!ended.route.ends_credentials) return null;
      if (!key_pattern.test(ended.asked.header(key_header))) return null;
      const answer = await keeper.findEnded(describe(ended, ''));
      return answer === null ? null : replay(answer);
    },
  };
};
