import pLimit from 'p-limit';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { groupBy } from '../../kit/group-by.js';
import { isId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { loadScript } from '../../redis/client.js';
import type { StateSource } from '../../socket/states.js';
import { type LogEntry, type Projector, projectedKey, readHead, timeOf } from '../events/index.js';
import { type QuestionRow, readQuestion } from '../questions/index.js';
import {
  type Consensus,
  computeConsensus,
  no_tally,
  type QuestionShape,
  type Tally,
} from './rules.js';
import { listPredicted, readCounts, readOptions } from './store.js';
import {
  cellField,
  forecastIn,
  readCells,
  readHash,
  setTally,
  tagOf,
  tallyKey,
  tallyKeys,
} from './tally.js';

/**
 * The consensus of a question, computed from its tally in Redis and cached in this process until
 * the log has another prediction of the question. A process trusts Redis only where Redis has
 * projected as much of the log as the process has seen. Otherwise, and where Redis is away or has
 * no tally, the process reads Postgres and writes a missing tally back.
 */
export type LiveConsensus = ReturnType<typeof createLiveConsensus>;

/** Of some kilobytes each. */
const most_cached = 5_000;
const record_reads_at_once = 3;

type Parts = Pick<Deps, 'sql' | 'redis' | 'config' | 'log'>;

const makeReader = ({ sql, redis, config, log }: Parts) => {
  const prefix = config.REDIS_PREFIX;
  const limit = pLimit(record_reads_at_once);

  /** Reads how far Redis has projected before it reads the tally, so the tally is no older. */
  const askRedis = async (question_id: string, head: number) => {
    if (redis.status !== 'ready') return 'behind';
    const wanted = head < 0 ? await readHead(sql) : head;
    const answers = await redis
      .pipeline()
      .get(projectedKey(prefix))
      .hgetall(tallyKey(prefix, question_id))
      .exec();
    const [upto, hash] = (answers ?? []).map(([error, value]) => (error === null ? value : null));
    if (upto == null || hash == null || Number(upto) < wanted) return 'behind';
    return readHash(hash as Record<string, string>) ?? 'missing';
  };

  return async (question_id: string, head: number): Promise<Tally> => {
    const found = await askRedis(question_id, head).catch(() => 'behind' as const);
    if (typeof found === 'object') return found;
    const [counted] = await limit(() => readCounts(sql, [question_id]));
    if (counted === undefined) return no_tally;
    if (found === 'missing') {
      setTally(redis, prefix, counted).catch((error: unknown) => {
        log.warn(describeError(error), 'consensus: a tally was not written back');
      });
    }
    return readCells(counted.cells, counted);
  };
};

export const createLiveConsensus = (parts: Parts, most = most_cached) => {
  const readTally = makeReader(parts);
  const cache = makeCache<Consensus>({ most });
  let head = -1;

  const read = async (
    question: QuestionShape & Pick<QuestionRow, 'status'>,
  ): Promise<Consensus> => {
    const { id, status } = question;
    if (status === 'draft') return computeConsensus(question, no_tally);
    return cache.get(id, async () => computeConsensus(question, await readTally(id, head)));
  };

  return {
    /** From the cache alone; undefined on a miss. Of published questions only. */
    peek: cache.peek,
    /** Of a question that the caller may see. */
    read,
    /** Of a published question; undefined where there is none. */
    async find(question_id: string): Promise<Consensus | undefined> {
      const known = cache.peek(question_id);
      if (known !== undefined) return known;
      const question = await readQuestion(parts.sql, question_id);
      const is_shown = question !== undefined && question.status !== 'draft';
      return is_shown ? read(question) : undefined;
    },
    /** Feed this from the follower; returns the questions whose consensus changed. */
    onEvents(batch: readonly LogEntry[]): readonly string[] {
      // This process missed part of the log: cached values and reads under way may lack it.
      const has_hole = batch[0] !== undefined && batch[0].offset !== head + 1;
      if (has_hole) cache.forgetWhere(() => true);
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      for (const { question_id, event } of batch) {
        if (question_id === null) continue;
        if (event === 'question.created') moved.add(question_id);
        if (event !== 'prediction.placed') continue;
        moved.add(question_id);
        cache.forget(question_id);
      }
      return [...moved];
    },
  };
};

const topic_prefix = 'consensus:';

export const consensusTopic = (question_id: string): string => topic_prefix + question_id;

/**
 * `consensus:{id}`: the consensus of a question as a state topic. Its version is its offset, so it
 * is the same in every process and after a restart; one that is not published shows nothing.
 */
export const makeConsensusTopics = (live: LiveConsensus): StateSource => ({
  resolve: (label) => {
    const is_one = label.startsWith(topic_prefix) && isId(label.slice(topic_prefix.length));
    return is_one ? { topic: label, label } : null;
  },
  read: async (topic) => {
    const data = await live.find(topic.slice(topic_prefix.length));
    return data === undefined ? null : { version: data.offset, data };
  },
});

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
        const stated = forecastIn(entry, options_of.get(id) ?? []);
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
