import type { Deps } from '../../kit/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { loadScript } from '../../kit/redis/scripts.js';
import type { Projector } from '../events/index.js';
import { cellField } from './rules.js';
import { saidIn, timeOf } from './said.js';
import { listPredicted, readCounts } from './store.js';

/**
 * Tallies in Redis, one hash a question, moved by the relay as it projects the log, for whoever
 * reads Redis beside the api. A tally that is missing is set from the record as of the log; every
 * event is counted once because the tally carries the offset it stands at.
 */

const countScript = loadScript('tally-n.lua');
const setScript = loadScript('tally-set-1.lua');
/** Half of the connections of a process: the log goes on beside a rebuild. */
const rebuilt_at_once = 4;

/**
 * Questions share sixteen hash tags, by the last digit of their id: a batch of the log that touches
 * many questions takes at most sixteen script calls, and a cluster still spreads them.
 */
const tagOf = (question_id: string): string => `q${question_id.slice(-1)}`;

export const tallyKey = (prefix: string, question_id: string): string =>
  `${prefix}:{${tagOf(question_id)}}:tally:${question_id}`;

/** The predictions of one question in a portion of the log. */
interface Portion {
  /** Of the last one. */
  at: string;
  /** Pairs of offset and field. */
  readonly pairs: (string | number)[];
}

export const createConsensusProjector = (deps: Deps): Projector => {
  const { sql, redis } = deps;
  const prefix = deps.config.REDIS_PREFIX;

  const setFromRecord = async (question_id: string): Promise<void> => {
    const tally = await readCounts(sql, question_id);
    const args: (string | number)[] = [tally.offset, tally.updated_at ?? ''];
    for (const cell of tally.cells) args.push(cellField(cell), cell.count);
    await setScript(redis, [tallyKey(prefix, question_id)], args);
  };

  const countTagged = async (questions: readonly (readonly [string, Portion])[]) => {
    const keys = questions.map(([question_id]) => tallyKey(prefix, question_id));
    const args: (string | number)[] = [];
    for (const [, { at, pairs }] of questions) {
      args.push(pairs.length / 2, at);
      for (const one of pairs) args.push(one);
    }
    const counted = (await countScript(redis, keys, args)) as number[];
    for (const [index, [question_id]] of questions.entries()) {
      if (counted[index] !== 1) await setFromRecord(question_id);
    }
  };

  return {
    name: 'consensus',
    async project(entries) {
      const portions = new Map<string, Portion>();
      for (const entry of entries) {
        const { event, question_id, offset } = entry;
        if (event !== 'prediction.placed' || question_id === null) continue;
        let portion = portions.get(question_id);
        if (portion === undefined) {
          portion = { at: '', pairs: [] };
          portions.set(question_id, portion);
        }
        portion.at = timeOf(entry);
        portion.pairs.push(offset, cellField(saidIn(entry)));
      }
      const by_tag = groupBy([...portions], ([question_id]) => tagOf(question_id));
      await Promise.all([...by_tag.values()].map(countTagged));
    },
    async rebuild() {
      let after = '00000000-0000-0000-0000-000000000000';
      for (;;) {
        const page = await listPredicted(sql, after, 100);
        for (let from = 0; from < page.length; from += rebuilt_at_once) {
          const some = page.slice(from, from + rebuilt_at_once);
          await Promise.all(some.map(({ id }) => setFromRecord(id)));
        }
        const last = page[page.length - 1];
        if (last === undefined) return;
        after = last.id;
      }
    },
  };
};
