import pLimit from 'p-limit';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { isId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import type { StateSource } from '../../socket/states.js';
import { type LogEntry, projectedKey, readHead } from '../events/index.js';
import { type QuestionRow, readQuestion } from '../questions/index.js';
import {
  type Consensus,
  computeConsensus,
  no_tally,
  type QuestionShape,
  type Tally,
} from './rules.js';
import { readCounts } from './store.js';
import { readCells, readHash, setTally, tallyKey } from './tally.js';

/**
 * The consensus of the questions that somebody asks for. It is computed from the tally in Redis,
 * kept in the memory of this process until the log has another prediction of the question, and then
 * read again. Redis is believed as far as it was brought: where it is not as far as this process,
 * is away or has no tally, the record is read, and a missing tally is written back.
 */
export interface LiveConsensus {
  /** Without a wait where it is kept; undefined where it is not. Of published questions only. */
  peek(question_id: string): Consensus | undefined;
  /** Of a question that the caller may see. */
  read(question: QuestionShape & Pick<QuestionRow, 'status'>): Promise<Consensus>;
  /** Of a published question; undefined where there is none. */
  find(question_id: string): Promise<Consensus | undefined>;
  /** Feed this from the follower; the questions whose consensus is another now. */
  onEvents(batch: readonly LogEntry[]): readonly string[];
}

/** Of some kilobytes each. */
const most_kept = 5_000;
const record_reads_at_once = 3;

type Parts = Pick<Deps, 'sql' | 'redis' | 'config' | 'log'>;

const makeReader = ({ sql, redis, config, log }: Parts) => {
  const prefix = config.REDIS_PREFIX;
  const limit = pLimit(record_reads_at_once);

  /** How far Redis is comes first, so that the tally is at least of then. */
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

export const createLiveConsensus = (parts: Parts, most = most_kept): LiveConsensus => {
  const readTally = makeReader(parts);
  // What comes while a consensus is read is for those who asked, and no longer.
  const kept = makeCache<Consensus>({ most });
  let head = -1;

  const live: LiveConsensus = {
    peek: kept.peek,
    async read(question) {
      const { id, status } = question;
      if (status === 'draft') return computeConsensus(question, no_tally);
      return kept.get(id, async () => computeConsensus(question, await readTally(id, head)));
    },
    async find(question_id) {
      const known = kept.peek(question_id);
      if (known !== undefined) return known;
      const question = await readQuestion(parts.sql, question_id);
      return question === undefined || question.status === 'draft'
        ? undefined
        : live.read(question);
    },
    onEvents(batch) {
      // Something of the log was not seen here: what is kept or under way may lack it.
      const has_hole = batch[0] !== undefined && batch[0].offset !== head + 1;
      if (has_hole) kept.forgetWhere(() => true);
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      for (const { question_id, event } of batch) {
        if (question_id === null) continue;
        if (event === 'question.created') moved.add(question_id);
        if (event !== 'prediction.placed') continue;
        moved.add(question_id);
        kept.forget(question_id);
      }
      return [...moved];
    },
  };
  return live;
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
