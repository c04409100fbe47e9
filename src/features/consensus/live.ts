import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Deps } from '../../kit/deps.js';
import { describeError } from '../../kit/log.js';
import { type LogEntry, projectedKey, readHead } from '../events/index.js';
import { type QuestionRow, readQuestion } from '../questions/index.js';
import { type Consensus, computeConsensus, type QuestionShape, type Tally } from './rules.js';
import { readCounts } from './store.js';
import { readCells, readHash, setTally, tallyKey, tallyKeys } from './tally.js';

/**
 * The consensus of the questions that somebody asks for. It is computed from the tally in Redis,
 * kept in the memory of this process until the log has another prediction of the question, and then
 * read again. Redis is believed as far as it was brought: where that is behind this process, where
 * it is away or has no tally, the record is read, and what was missing is written back.
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
  stats(): { readonly kept: number };
}

/** Of some kilobytes each. */
const most_kept = 5_000;
const record_reads_at_once = 3;
const nothing: Tally = { cells: [], given: new Map(), offset: 0, updated_at: null };

type Found = { readonly tally: Tally } | 'missing' | 'behind';

type Parts = Pick<Deps, 'sql' | 'redis' | 'config' | 'log'>;

const makeReader = ({ sql, redis, config, log }: Parts) => {
  const prefix = config.REDIS_PREFIX;
  const limit = pLimit(record_reads_at_once);

  /** How far Redis is comes first, so that the tally is at least of then. */
  const askRedis = async (question_id: string, head: number): Promise<Found> => {
    if (redis.status !== 'ready') return 'behind';
    const wanted = head < 0 ? await readHead(sql) : head;
    const answers = await redis
      .pipeline()
      .get(projectedKey(prefix))
      .hgetall(tallyKey(prefix, question_id))
      .exec();
    const [upto, hash] = (answers ?? []).map(([error, value]) => (error === null ? value : null));
    if (upto == null || hash == null || Number(upto) < wanted) return 'behind';
    const tally = readHash(hash as Record<string, string>);
    return tally === undefined ? 'missing' : { tally };
  };

  return async (question_id: string, head: number): Promise<Tally> => {
    const found = await askRedis(question_id, head).catch(() => 'behind' as const);
    if (typeof found === 'object') return found.tally;
    const [counted] = await limit(() => readCounts(sql, [question_id]));
    if (counted === undefined) return nothing;
    if (found === 'missing') {
      setTally(redis, tallyKeys(prefix, question_id), counted).catch((error: unknown) => {
        log.warn(describeError(error), 'consensus: a tally was not written back');
      });
    }
    return readCells(counted.cells, counted);
  };
};

export const createLiveConsensus = (parts: Parts, most = most_kept): LiveConsensus => {
  const { sql } = parts;
  const readTally = makeReader(parts);
  const kept = new LRUCache<string, Consensus>({ max: most });
  const loading = new Map<string, Promise<Consensus>>();
  let head = -1;

  const load = async (question: QuestionShape): Promise<Consensus> => {
    const { id } = question;
    const work = readTally(id, head).then((tally) => computeConsensus(question, tally));
    loading.set(id, work);
    const isCurrent = (): boolean => loading.get(id) === work;
    try {
      const consensus = await work;
      // Something may have come meanwhile: then it is for those who asked, and no longer.
      if (isCurrent()) kept.set(id, consensus);
      return consensus;
    } finally {
      if (isCurrent()) loading.delete(id);
    }
  };

  const live: LiveConsensus = {
    peek: (question_id) => kept.get(question_id),
    async read(question) {
      const { id, status } = question;
      if (status === 'draft') return computeConsensus(question, nothing);
      return kept.get(id) ?? loading.get(id) ?? load(question);
    },
    async find(question_id) {
      const known = kept.get(question_id);
      if (known !== undefined) return known;
      const question = await readQuestion(sql, question_id);
      return question === undefined || question.status === 'draft'
        ? undefined
        : live.read(question);
    },
    onEvents(batch) {
      if (batch[0] !== undefined && batch[0].offset !== head + 1) {
        // Something of the log was not seen here: what is kept or under way may lack it.
        kept.clear();
        loading.clear();
      }
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      for (const { question_id, event } of batch) {
        if (question_id === null) continue;
        if (event === 'question.created') moved.add(question_id);
        if (event !== 'prediction.placed') continue;
        moved.add(question_id);
        kept.delete(question_id);
        loading.delete(question_id);
      }
      return [...moved];
    },
    stats: () => ({ kept: kept.size }),
  };
  return live;
};
