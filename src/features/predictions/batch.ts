import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse, refusedItem } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { isId } from '../../kit/ids.js';
import { question_faults } from '../questions/index.js';
import { dryRun } from './dry-run.js';
import { answerPlaced, type PlaceAsk, type PlaceParts, placePrediction } from './place.js';
import { reach_ms } from './reach.js';
import type { BatchResult, predictions_body } from './schema.js';

/**
 * Many predictions of one agent in one call: each is judged, counted and stored as if it had come
 * alone, one after the other, so that the result does not depend on chance.
 */

type Item = Static<typeof predictions_body>;
type Needs = Deps & PlaceParts;

const placeOne = async (
  deps: Needs,
  item: Item,
  shared: Pick<PlaceAsk, 'agent' | 'asks_until_ms'>,
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

export const placeBatch = async (
  deps: Needs,
  items: readonly Item[],
  agent: AgentCaller,
): Promise<readonly BatchResult[]> => {
  const taken = await Promise.all(items.map(() => deps.takePrediction(agent.id)));
  const shared = { agent, asks_until_ms: performance.now() + reach_ms };
  const results: BatchResult[] = [];
  for (const [index, item] of items.entries()) {
    const { allowed, retry_ms } = taken[index]!;
    if (!allowed) {
      const retry_after = Math.max(1, Math.ceil(retry_ms / 1_000));
      const message = `The limit of predictions per minute is used up; try again in ${retry_after} s.`;
      const fault = refuse(common_faults.RATE_LIMITED, { message, extra: { retry_after } });
      results.push({ index, ...refused(fault) });
      continue;
    }
    const result = await placeOne(deps, item, shared);
    results.push({ index, ...(isFault(result) ? refused(result) : result) });
  }
  return results;
};
