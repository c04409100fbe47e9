import type { Deps } from '../../kit/deps.js';
import { groupBy } from '../../kit/group-by.js';
import { loadScript } from '../../kit/redis/scripts.js';
import type { Projector } from '../events/index.js';
import { cellField } from './rules.js';
import { saidIn, timeOf } from './said.js';
import { listPredicted, readCounts, readLengths } from './store.js';

/**
 * Tallies in Redis, one hash a question, moved by the relay as it projects the log, for whoever
 * reads Redis beside the api. A tally that is missing is set: from the portion of the log that is
 * being counted where the log has no other prediction of the question, so of one that is new; else
 * from the record as of the log. Every event is counted once because the tally carries the offset
 * it stands at.
 */

const countScript = loadScript('tally-n.lua');
const setScript = loadScript('tally-set-1.lua');
/** Half of the connections of a process: the log goes on beside a rebuild. */
const set_at_once = 4;

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

type Counted = readonly [question_id: string, portion: Portion];

/** Sets tallies that are missing. */
const makeSetter = ({ sql, redis, config }: Deps) => {
  const prefix = config.REDIS_PREFIX;

  const setFromRecord = async (question_id: string): Promise<void> => {
    const tally = await readCounts(sql, question_id);
    const args: (string | number)[] = [tally.offset, tally.updated_at ?? ''];
    for (const cell of tally.cells) args.push(cellField(cell), cell.count);
    await setScript(redis, [tallyKey(prefix, question_id)], args);
  };

  const setAllFromRecord = async (question_ids: readonly string[]): Promise<void> => {
    for (let from = 0; from < question_ids.length; from += set_at_once) {
      await Promise.all(question_ids.slice(from, from + set_at_once).map(setFromRecord));
    }
  };

  const setFromPortion = async (question_id: string, { at, pairs }: Portion): Promise<void> => {
    const counts = new Map<string, number>();
    for (let n = 1; n < pairs.length; n += 2) {
      const field = pairs[n] as string;
      counts.set(field, (counts.get(field) ?? 0) + 1);
    }
    const offset = pairs.at(-2) as number;
    await setScript(redis, [tallyKey(prefix, question_id)], [offset, at, ...[...counts].flat()]);
  };

  const setAll = async (missing: readonly Counted[]): Promise<void> => {
    const lengths = await readLengths(
      sql,
      missing.map(([question_id]) => question_id),
    );
    const isWhole = ([question_id, { pairs }]: Counted): boolean =>
      lengths.get(question_id) === pairs.length / 2;
    await Promise.all(missing.filter(isWhole).map((one) => setFromPortion(...one)));
    const others = missing.filter((one) => !isWhole(one));
    await setAllFromRecord(others.map(([question_id]) => question_id));
  };

  return { setAllFromRecord, setAll };
};

export const createConsensusProjector = (deps: Deps): Projector => {
  const { sql, redis } = deps;
  const prefix = deps.config.REDIS_PREFIX;

  const { setAllFromRecord, setAll } = makeSetter(deps);

  /** Those that have no tally. */
  const countTagged = async (questions: readonly Counted[]): Promise<readonly Counted[]> => {
    const keys = questions.map(([question_id]) => tallyKey(prefix, question_id));
    const args: (string | number)[] = [];
    for (const [, { at, pairs }] of questions) {
      args.push(pairs.length / 2, at);
      for (const one of pairs) args.push(one);
    }
    const counted = (await countScript(redis, keys, args)) as number[];
    return questions.filter((_, index) => counted[index] !== 1);
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
      const missing = (await Promise.all([...by_tag.values()].map(countTagged))).flat();
      if (missing.length > 0) await setAll(missing);
    },
    async rebuild() {
      let after = '00000000-0000-0000-0000-000000000000';
      for (;;) {
        const page = await listPredicted(sql, after, 100);
        await setAllFromRecord(page.map(({ id }) => id));
        const last = page[page.length - 1];
        if (last === undefined) return;
        after = last.id;
      }
    },
  };
};
