import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { groupBy } from '../../kit/group-by.js';
import { isId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { deleteKeys, isCluster, loadScript } from '../../redis/client.js';
import type { StateSource } from '../../socket/states.js';
import { prediction_revised } from '../events/catalogue.js';
import { type Projector, projectedKey, readHead, tagOf } from '../events/index.js';
import { type LogEntry, timeOf } from '../events/log-entry.js';
import { type QuestionRow, readQuestion } from '../questions/index.js';
import { fitAt, fitOf } from './correlation.js';
import { createFits } from './fitting.js';
import {
  type Consensus,
  computeConsensus,
  no_tally,
  type QuestionShape,
  type Tally,
} from './rules.js';
import { listPredicted, readCounts, readOptions, readOwners, readShapes } from './store.js';
import {
  forecastsIn,
  movesConsensus,
  readCells,
  readHash,
  saidIn,
  setTally,
  tallyKey,
  tallyKeys,
} from './tally.js';

/**
 * The consensus of a question, computed from its tally in Redis. This process caches it until the
 * log has another forecast on the question or another fit comes into force. The process trusts
 * Redis only if Redis has projected at least as much of the log as the process has seen. If not, or
 * if Redis is down or has no tally, the process reads Postgres. It stores a missing tally in Redis.
 */
export type LiveConsensus = ReturnType<typeof createLiveConsensus>;

/** Each consensus takes a few kilobytes. */
const max_cached = 5_000;
const record_reads_at_once = 3;
const read_only = { mode: 'read only' };

type Parts = Pick<Deps, 'sql' | 'redis' | 'config' | 'log' | 'clock'>;

const makeReader = ({ sql, redis, config, log }: Parts, limit: LimitFunction) => {
  const prefix = config.REDIS_PREFIX;

  /** Reads Redis's position in the log first, so the tally is never older than that position. */
  const askRedis = async (question_id: string, head: number) => {
    if (redis.status !== 'ready') return 'behind';
    const wanted = head < 0 ? await readHead(sql) : head;
    const answers = await redis
      .pipeline()
      .get(projectedKey(prefix, tagOf(question_id)))
      .hgetall(tallyKey(prefix, question_id))
      .exec();
    const [upto, hash] = (answers ?? []).map(([error, value]) => (error === null ? value : null));
    if (upto == null || hash == null || Number(upto) < wanted) return 'behind';
    return readHash(hash as Record<string, string>) ?? 'missing';
  };

  return async (question_id: string, head: number): Promise<Tally> => {
    const found = await askRedis(question_id, head).catch(() => 'behind' as const);
    if (typeof found === 'object') return found;
    const [counted] = await limit(() =>
      sql.begin(read_only, (tx) => readCounts(tx, [question_id])),
    );
    if (counted === undefined) return no_tally;
    if (found === 'missing') {
      setTally(redis, prefix, counted).catch((error: unknown) => {
        log.warn(describeError(error), 'consensus: a tally could not be written to Redis');
      });
    }
    return readCells(counted.cells, counted);
  };
};

type Asked = QuestionShape & Pick<QuestionRow, 'status' | 'ended_at'>;

export const createLiveConsensus = (parts: Parts, most = max_cached) => {
  const limit = pLimit(record_reads_at_once);
  const readTally = makeReader(parts, limit);
  const cache = makeCache<Consensus>({ most });
  const fits = createFits(parts);
  const { clock } = parts;
  let head = -1;

  /** Returns the cached consensus if it was computed with the fit that is in force now. */
  const peek = (question_id: string): Consensus | undefined => {
    const known = cache.peek(question_id);
    const known_fits = fits.peek();
    if (known === undefined || known_fits === undefined) return undefined;
    return known.fit === fitAt(known_fits, clock().getTime()).number ? known : undefined;
  };

  const read = async (question: Asked): Promise<Consensus> => {
    const { id, status } = question;
    const fit = fitOf(await fits.get(), question, clock().getTime());
    if (status === 'draft') return computeConsensus(question, no_tally, fit);
    if ((cache.peek(id)?.fit ?? fit.number) !== fit.number) cache.forget(id);
    return cache.get(id, async () => computeConsensus(question, await readTally(id, head), fit));
  };

  return {
    /** Returns all fits, oldest first. */
    fits: fits.get,
    /** Undefined on a miss. Drafts are never cached. */
    peek,
    /** Does not check who may see the question. */
    read,
    /** Undefined if no published question has this id. */
    async find(question_id: string): Promise<Consensus | undefined> {
      const known = peek(question_id);
      if (known !== undefined) return known;
      const question = await readQuestion(parts.sql, question_id);
      const is_shown = question !== undefined && question.status !== 'draft';
      return is_shown ? read(question) : undefined;
    },
    /** Skips drafts and unknown ids. Keeps no order. If `at` is set, it always reads Postgres. */
    async findAll(ids: readonly string[], at: Date | null): Promise<readonly Consensus[]> {
      const known = at === null ? ids.flatMap((id) => peek(id) ?? []) : [];
      const rest = ids.filter((id) => known.every(({ question_id }) => question_id !== id));
      const questions = await readShapes(parts.sql, rest);
      if (at === null) return [...known, ...(await Promise.all(questions.map(read)))];
      const known_fits = await fits.get();
      const counted = await limit(() =>
        parts.sql.begin(read_only, (tx) => readCounts(tx, rest, { at })),
      );
      const tallies = new Map(counted.map((one) => [one.question_id, readCells(one.cells, one)]));
      return questions.map((question) => {
        const fit = fitOf(known_fits, question, at.getTime());
        return computeConsensus(question, tallies.get(question.id) ?? no_tally, fit);
      });
    },
    /** The follower calls this with each batch. Returns the questions whose consensus changed. */
    onEvents(batch: readonly LogEntry[]): readonly string[] {
      // If true, this process missed some events. Cached values and running reads may lack them.
      const has_hole = batch[0] !== undefined && batch[0].offset !== head + 1;
      if (has_hole) cache.forgetWhere(() => true);
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      for (const { question_id, event } of batch) {
        if (question_id === null) continue;
        if (event === 'question.created') moved.add(question_id);
        if (!movesConsensus({ event })) continue;
        moved.add(question_id);
        cache.forget(question_id);
      }
      return [...moved];
    },
  };
};

const topic_prefix = 'consensus:';

export const consensusTopic = (question_id: string): string => topic_prefix + question_id;

/** A new fit is not an event in the log, so the topic is also read at this interval. */
const look_every_ms = 60_000;
/** Greater than any offset that the log will ever reach. */
const offsets = 2 ** 40;

/** Returns a number that changes with the consensus. It is ordered by fit, then by offset. */
export const versionOf = ({ fit, offset }: Pick<Consensus, 'fit' | 'offset'>): number =>
  fit * offsets + offset;

/**
 * `consensus:{id}`: the consensus of a question as a state topic. The version combines the fit and
 * the offset, so it is the same in every process and after a restart. Drafts have no state.
 */
export const makeConsensusTopics = (live: LiveConsensus): StateSource => ({
  every_ms: look_every_ms,
  resolve: (label) => {
    const is_one = label.startsWith(topic_prefix) && isId(label.slice(topic_prefix.length));
    return is_one ? { topic: label, label } : null;
  },
  read: async (topic) => {
    const data = await live.find(topic.slice(topic_prefix.length));
    return data === undefined ? null : { version: versionOf(data), data };
  },
});

/** Rebuilds every tally from Postgres while the log continues. */
export const rebuildTallies = async (deps: Deps): Promise<void> => {
  const { redis, config } = deps;
  await deleteKeys(redis, config.REDIS_PREFIX, '{q?}:tally:*');
  await createConsensusProjector(deps).rebuild?.();
};

/**
 * Updates the tallies in Redis when the relay projects the log. A missing tally is read from
 * Postgres, up to the end of the log. A tally carries its offset, so every event counts only once.
 */

const countScript = loadScript('tally-n.lua');
const set_at_once = 100;
/** Kept low, because Redis does nothing else during the call. */
const max_in_call = 200;

const max_options = 20_000;

type Moved = readonly [question_id: string, entries: readonly LogEntry[]];

export const createConsensusProjector = ({ sql, redis, config }: Deps): Projector => {
  const prefix = config.REDIS_PREFIX;
  /** Options by question. They do not change after publishing. */
  const known_options = new LRUCache<string, readonly string[]>({ max: max_options });
  const findOptions = async (ids: readonly string[]) => {
    const unknown = ids.filter((id) => !known_options.has(id));
    const read = unknown.length === 0 ? [] : await readOptions(sql, unknown);
    for (const [id, options] of read) known_options.set(id, options);
    return new Map(ids.map((id) => [id, known_options.get(id) ?? []]));
  };
  /** Adds entries to tallies in one call to Redis. Returns the questions that have no tally. */
  const count = async (
    moved: readonly Moved[],
    options_of: ReadonlyMap<string, readonly string[]>,
    owner_of: ReadonlyMap<string, string>,
    after: number,
  ): Promise<readonly string[]> => {
    const args: (string | number)[] = [after];
    for (const [id, entries] of moved) {
      args.push(entries.length);
      for (const entry of entries) {
        const { now, before } = forecastsIn(entry, options_of.get(id) ?? []);
        const known = owner_of.get(`${id} ${entry.agent_id}`);
        const owner = known ?? entry.owner_id ?? entry.agent_id ?? entry.id;
        const given = now.given?.map((units, n) => units - (before?.given?.[n] ?? 0)) ?? [];
        args.push(entry.offset, timeOf(entry), owner);
        args.push(before === null ? '' : saidIn(before), saidIn(now), given.join(','));
      }
    }
    const [[first = ''] = []] = moved;
    const keys = moved.flatMap(([id]) => tallyKeys(prefix, id));
    const mark = projectedKey(prefix, tagOf(first));
    const counted = (await countScript(redis, [mark, ...keys], args)) as number[] | null;
    if (counted === null) throw new Error('Redis has older tallies than before');
    return moved.filter((_, index) => counted[index] !== 1).map(([id]) => id);
  };

  const setFromRecord = async (question_ids: readonly string[]): Promise<void> => {
    for (let from = 0; from < question_ids.length; from += set_at_once) {
      const ids = question_ids.slice(from, from + set_at_once);
      const some = await sql.begin(read_only, (tx) => readCounts(tx, ids));
      await Promise.all(some.map((one) => setTally(redis, prefix, one)));
    }
  };

  return {
    name: 'consensus',
    async project(entries, after = -1) {
      const moving = entries.filter(movesConsensus);
      if (moving.length === 0) return;
      const by_question = groupBy(moving, ({ question_id }) => question_id ?? '');
      const revised = entries.filter(({ event }) => event === prediction_revised.name);
      const [options_of, owner_of] = await Promise.all([
        findOptions([...by_question.keys()]),
        // A revision counts for the owner that the agent had when it placed the prediction.
        readOwners(sql, revised),
      ]);
      const is_split = isCluster(redis) || moving.length > max_in_call;
      const parts = groupBy([...by_question], ([id]) => (is_split ? tagOf(id) : ''));
      const counts = [...parts.values()].map((moved) => count(moved, options_of, owner_of, after));
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

export interface ConsensusParts {
  readonly consensus: LiveConsensus;
}
