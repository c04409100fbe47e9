import type { Deps } from '../../http/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { loadScript } from '../../redis/client.js';
import type { LogEntry, Projector } from '../events/index.js';
import { listPredicted, readCounts, readOptions } from './store.js';
import { cellField, setTally, statedIn, tagOf, tallyKeys, timeOf } from './tally.js';

/**
 * Moves the tallies in Redis as the relay projects the log. One that is missing is set from the
 * record as of the log. Every event is counted once, because a tally carries its offset.
 */

const countScript = loadScript('tally-n.lua');
const set_at_once = 100;

type Moved = readonly [question_id: string, entries: readonly LogEntry[]];

export const createConsensusProjector = ({ sql, redis, config }: Deps): Projector => {
  const prefix = config.REDIS_PREFIX;
  /** Questions of one tag; the ids of those that have no tally. */
  const count = async (
    moved: readonly Moved[],
    options_of: ReadonlyMap<string, readonly string[]>,
  ): Promise<readonly string[]> => {
    const args: (string | number)[] = [];
    for (const [id, entries] of moved) {
      args.push(entries.length);
      for (const entry of entries) {
        const stated = statedIn(entry, options_of.get(id) ?? []);
        const owner = entry.owner_id ?? entry.agent_id ?? entry.id;
        args.push(entry.offset, timeOf(entry), owner, cellField(stated));
        args.push(stated.given?.join(',') ?? '');
      }
    }
    const keys = moved.flatMap(([id]) => tallyKeys(prefix, id));
    const counted = (await countScript(redis, keys, args)) as number[];
    return moved.filter((_, index) => counted[index] !== 1).map(([id]) => id);
  };

  const setFromRecord = async (question_ids: readonly string[]): Promise<void> => {
    for (let from = 0; from < question_ids.length; from += set_at_once) {
      const some = await readCounts(sql, question_ids.slice(from, from + set_at_once));
      await Promise.all(some.map((one) => setTally(redis, prefix, one)));
    }
  };

  return {
    name: 'consensus',
    async project(entries) {
      const placed = entries.filter(({ event }) => event === 'prediction.placed');
      if (placed.length === 0) return;
      const by_question = groupBy(placed, ({ question_id }) => question_id ?? '');
      const options_of = await readOptions(sql, [...by_question.keys()]);
      const by_tag = groupBy([...by_question], ([id]) => tagOf(id));
      const counts = [...by_tag.values()].map((moved) => count(moved, options_of));
      await setFromRecord((await Promise.all(counts)).flat());
    },
    async rebuild() {
      for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
        const page = await listPredicted(sql, after, set_at_once);
        await setFromRecord(page.map(({ id }) => id));
        const last = page.at(-1);
        if (last === undefined) return;
        after = last.id;
      }
    },
  };
};
