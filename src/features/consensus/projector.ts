import type { Deps } from '../../kit/deps.js';
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

/** Triples of offset, time and field. */
type Args = (string | number)[];

export const createConsensusProjector = (deps: Deps): Projector => {
  const { sql, redis } = deps;
  const prefix = deps.config.REDIS_PREFIX;

  const setFromRecord = async (question_id: string): Promise<void> => {
    const tally = await readCounts(sql, question_id);
    const args: (string | number)[] = [tally.offset, tally.updated_at ?? ''];
    for (const cell of tally.cells) args.push(cellField(cell), cell.count);
    await setScript(redis, [tallyKey(prefix, question_id)], args);
  };

  const countTagged = async (questions: readonly [string, Args][]): Promise<void> => {
    const keys = questions.map(([question_id]) => tallyKey(prefix, question_id));
    const args = questions.flatMap(([, triples]) => [triples.length / 3, ...triples]);
    const counted = (await countScript(redis, keys, args)) as number[];
    for (const [index, [question_id]] of questions.entries()) {
      if (counted[index] !== 1) await setFromRecord(question_id);
    }
  };

  return {
    name: 'consensus',
    async project(entries) {
      const by_question = new Map<string, Args>();
      for (const entry of entries) {
        if (entry.event !== 'prediction.placed' || entry.question_id === null) continue;
        const args = by_question.get(entry.question_id) ?? [];
        args.push(entry.offset, timeOf(entry), cellField(saidIn(entry)));
        by_question.set(entry.question_id, args);
      }
      const by_tag = new Map<string, [string, Args][]>();
      for (const question of by_question) {
        const tag = tagOf(question[0]);
        by_tag.set(tag, [...(by_tag.get(tag) ?? []), question]);
      }
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
