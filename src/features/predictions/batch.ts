import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse, refusedItem } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { isId } from '../../kit/ids.js';
import type { Taken } from '../../kit/limits.js';
import { question_faults } from '../questions/index.js';
import { dryRun } from './dry-run.js';
import {
  answerPlaced,
  type PlaceAsk,
  type PlaceParts,
  placePrediction,
  readAhead,
} from './place.js';
import { reach_ms } from './reach.js';
import type { BatchResult, predictions_body } from './schema.js';

/**
 * Many predictions of one agent in one call: each is judged, counted and stored as if it had come
 * alone, one after the other, so that the result does not depend on chance. Some go to the group
 * commit together, in their order, which judges those of one agent that way.
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

const refusedByLimit = ({ retry_ms }: Taken): Omit<BatchResult, 'index'> => {
  const retry_after = Math.max(1, Math.ceil(retry_ms / 1_000));
  const message = `The limit of predictions per minute is used up; try again in ${retry_after} s.`;
  return refused(refuse(common_faults.RATE_LIMITED, { message, extra: { retry_after } }));
};

/** Few enough for others to have their turn of the event loop between. */
const most_together = 16;

/** How many of the items may go together: a dry run sees what is stored, pages take their time. */
const countTogether = ({ reach }: Needs, items: readonly Item[]): number => {
  if (reach !== null) return 1;
  const dry = items.slice(0, most_together).findIndex(({ dry_run }) => dry_run === true);
  return dry === -1 ? most_together : Math.max(1, dry);
};

export const placeBatch = async (
  deps: Needs,
  items: readonly Item[],
  agent: AgentCaller,
): Promise<readonly BatchResult[]> => {
  const taken = await Promise.all(items.map(() => deps.takePrediction(agent.id)));
  const shared = { agent, asks_until_ms: performance.now() + reach_ms };
  const results: BatchResult[] = [];
  while (results.length < items.length) {
    const first = results.length;
    const left = items.slice(first);
    const some = left.slice(0, countTogether(deps, left));
    const ids = some.map(({ question_id }) => question_id.toLowerCase()).filter(isId);
    await Promise.all(ids.map((question_id) => readAhead(deps, { question_id, agent })));
    const placed = await Promise.all(
      some.map(async (item, i): Promise<BatchResult> => {
        const index = first + i;
        const counted = taken[index]!;
        if (!counted.allowed) return { index, ...refusedByLimit(counted) };
        const result = await placeOne(deps, item, shared);
        return { index, ...(isFault(result) ? refused(result) : result) };
      }),
    );
    results.push(...placed);
  }
  return results;
};
