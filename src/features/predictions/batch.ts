import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import {
  common_faults,
  type Fault,
  isFault,
  refuse,
  refusedItem,
  unreadableItem,
} from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { compileCheck } from '../../kit/http/validate.js';
import { isId } from '../../kit/ids.js';
import type { Taken } from '../../kit/limits.js';
import { question_faults } from '../questions/index.js';
import { dryRun } from './dry-run.js';
import { answerPlaced, placePrediction, readAhead } from './place.js';
import type { Needs, PlaceAsk } from './place-parts.js';
import { reach_ms } from './reach.js';
import { type BatchResult, predictions_body } from './schema.js';

/**
 * Many predictions of one agent in one call: each is judged, counted and stored as if it had come
 * alone, one after the other, so that the result does not depend on chance. Some go to the group
 * commit together, in their order, which judges those of one agent that way.
 */

type Item = Static<typeof predictions_body>;

const checkItem = compileCheck(predictions_body, 'body');

/** What was given as a prediction, or why it is none. */
type Given = { readonly item: Item } | { readonly item: null; readonly fault: Fault };

const readGiven = (given: unknown): Given => {
  const wrong = checkItem(given);
  return wrong === null ? { item: given as Item } : { item: null, fault: unreadableItem(wrong) };
};

const placeOne = async (
  deps: Needs,
  item: Item,
  shared: Pick<PlaceAsk, 'agent' | 'asks_until_ms' | 'onUnderWay'>,
): Promise<Omit<BatchResult, 'index'> | Fault> => {
  const question_id = item.question_id.toLowerCase();
  if (!isId(question_id)) return refuse(question_faults.QUESTION_NOT_FOUND);
  const body_digest = createHash('sha256').update(JSON.stringify(item)).digest('hex');
  const ask: PlaceAsk = { question_id, body: item, body_digest, claim: null, ...shared };
  if (item.dry_run === true) {
    const found = await dryRun(deps, ask);
    return isFault(found) ? found : { status: 200, result: found };
  }
  const placed = await placePrediction(deps, ask);
  if (isFault(placed)) return placed;
  const { status, body } = answerPlaced(placed);
  const result = body as NonNullable<BatchResult['result']>;
  return placed.replayed ? { status, replayed: true, result } : { status, result };
};

const refused = (fault: Fault): Omit<BatchResult, 'index'> => ({
  status: fault.def.status,
  ...refusedItem(fault),
});

const refusedByLimit = (retry_ms: number): Omit<BatchResult, 'index'> => {
  const retry_after = Math.max(1, Math.ceil(retry_ms / 1_000));
  const message = `The limit of predictions per minute is used up; try again in ${retry_after} s.`;
  return refused(refuse(common_faults.RATE_LIMITED, { message, extra: { retry_after } }));
};

/** Few enough for others to have their turn of the event loop between. */
const most_together = 16;

interface Call {
  readonly items: readonly Given[];
  readonly taken: readonly Taken[];
  readonly shared: Pick<PlaceAsk, 'agent' | 'asks_until_ms'>;
}

/**
 * Begins the items from `first` on that may go together: up to one that has to wait for something
 * else than its batch, and not with a dry run behind them, which sees what is stored.
 */
const beginSome = (deps: Needs, { items, taken, shared }: Call, first: number) => {
  const begun: Promise<BatchResult>[] = [];
  const beginOne = async (index: number, onUnderWay: () => void): Promise<BatchResult> => {
    const counted = taken[index]!;
    if (!counted.allowed) {
      onUnderWay();
      return { index, ...refusedByLimit(counted.retry_ms) };
    }
    const given = items[index]!;
    if (given.item === null) {
      onUnderWay();
      return { index, ...refused(given.fault) };
    }
    const result = await placeOne(deps, given.item, { ...shared, onUnderWay });
    return { index, ...(isFault(result) ? refused(result) : result) };
  };
  for (let is_under_way = true; is_under_way && begun.length < most_together; ) {
    const index = first + begun.length;
    if (index >= items.length || (begun.length > 0 && items[index]?.item?.dry_run === true)) break;
    is_under_way = false;
    begun.push(
      beginOne(index, () => {
        is_under_way = true;
      }),
    );
  }
  return begun;
};

const readSomeAhead = async (deps: Needs, { items, taken, shared }: Call, first: number) => {
  const some = items.slice(first, first + most_together);
  const ids = some
    .filter((_, i) => taken[first + i]?.allowed === true)
    .map(({ item }) => item?.question_id.toLowerCase() ?? '')
    .filter(isId);
  const { agent } = shared;
  await Promise.all(ids.map((question_id) => readAhead(deps, { question_id, agent })));
};

export const placeBatch = async (
  deps: Needs,
  given: readonly unknown[],
  agent: AgentCaller,
): Promise<readonly BatchResult[]> => {
  const items = given.map(readGiven);
  const taken = await Promise.all(items.map(() => deps.takePrediction(agent.id)));
  const call: Call = {
    items,
    taken,
    shared: { agent, asks_until_ms: performance.now() + reach_ms },
  };
  const results: BatchResult[] = [];
  while (results.length < items.length) {
    await readSomeAhead(deps, call, results.length);
    // All of them, also where one fails: nothing is stored behind an answer that says otherwise.
    for (const one of await Promise.allSettled(beginSome(deps, call, results.length))) {
      if (one.status === 'rejected') throw one.reason;
      results.push(one.value);
    }
  }
  return results;
};
