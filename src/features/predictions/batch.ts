import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import type { AgentCaller } from '../../http/caller.js';
import type { Taken } from '../../http/limits.js';
import type { Reply } from '../../http/route.js';
import { compileCheck } from '../../http/validation.js';
import {
  common_faults,
  type Fault,
  isFault,
  refuse,
  refusedItem,
  unreadableItem,
} from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { makePause } from '../../kit/loop.js';
import { question_faults } from '../questions/schema.js';
import { answerPrepared, type Needs, type PredictionRequest, prepare } from './answering.js';
import { link_check_ms } from './link-check.js';
import { type BatchResult, predictions_body } from './schema.js';

/**
 * Many predictions of one agent in one call. Each is judged, counted and stored as if it had come
 * alone, one after the other, so the result does not depend on timing. They enter the queue of the
 * group commit in order, and the group commit judges predictions of one agent in that order.
 */

type Item = Static<typeof predictions_body>;

const checkItem = compileCheck(predictions_body, 'body');

/** Kept low, so that other requests get the event loop in between. A long text takes 3 ms. */
const max_together = 8;

const limited = (retry_ms: number): Fault => {
  const retry_after = Math.max(1, Math.ceil(retry_ms / 1_000));
  const message = `Too many predictions in this minute. Try again in ${retry_after} s.`;
  return refuse(common_faults.RATE_LIMITED, { message, extra: { retry_after } });
};

/** Returns the request of an item, or the reason to refuse the item now. */
const readRequest = (
  given: unknown,
  shared: Pick<PredictionRequest, 'agent' | 'links_until_ms'>,
) => {
  const wrong = checkItem(given);
  if (wrong !== null) return unreadableItem(wrong);
  const body = given as Item;
  const question_id = body.question_id.toLowerCase();
  if (!isId(question_id)) return refuse(question_faults.QUESTION_NOT_FOUND);
  const body_digest = createHash('sha256').update(JSON.stringify(body)).digest('hex');
  return { question_id, body, body_digest, claim: null, ...shared };
};

const resultOf = (index: number, answer: Reply | Fault): BatchResult => {
  if (isFault(answer)) return { index, status: answer.def.status, ...refusedItem(answer) };
  const { status } = answer;
  const result = answer.body as NonNullable<BatchResult['result']>;
  const is_replay = answer.headers?.['Idempotency-Replayed'] !== undefined;
  return is_replay ? { index, status, replayed: true, result } : { index, status, result };
};

/** `taken` says for each item whether the limit on predictions allows it. */
export const placeBatch = async (
  deps: Needs,
  given: readonly unknown[],
  { agent, taken }: { readonly agent: AgentCaller; readonly taken: readonly Taken[] },
): Promise<readonly BatchResult[]> => {
  const shared = { agent, links_until_ms: performance.now() + link_check_ms };
  const read = (item: unknown, n: number) => {
    const counted = taken[n]!;
    return counted.allowed ? readRequest(item, shared) : limited(counted.retry_ms);
  };
  const pause = makePause(max_together);
  const results: BatchResult[] = [];
  while (results.length < given.length) {
    const from = results.length;
    const some = given.slice(from, from + max_together).map((item, n) => read(item, from + n));
    const prepared = await Promise.all(
      some.map(async (request) =>
        isFault(request) ? request : { request, ready: await prepare(deps, request) },
      ),
    );
    const answers = prepared.map(async (one) =>
      isFault(one) ? one : answerPrepared(deps, one.request, one.ready),
    );
    // Waits for all, even if one fails, so that nothing is stored after the call has failed.
    for (const one of await Promise.allSettled(answers)) {
      if (one.status === 'rejected') throw one.reason;
      results.push(resultOf(results.length, one.value));
    }
    await pause(some.length);
  }
  return results;
};
