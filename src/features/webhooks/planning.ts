import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { GroupReader } from '../../redis/stream.js';
import { streamKey } from '../events/log-entry.js';
import {
  findUnplanned,
  planAllIfUnused,
  planDeliveries,
  type Range,
  readPlannedOffset,
} from './planning-store.js';

/**
 * Plans deliveries. Signers are a consumer group of the log's stream. Each signer reads a portion,
 * plans its runs of consecutive offsets from Postgres, and acknowledges it after the commit. The
 * stream only says that there are new events and which signer plans them. Once a second, events
 * that are some seconds old and still unplanned are planned from the log. So losing a reader, the
 * group, the stream or Redis only causes a delay. While there are no webhooks, the stream is not
 * read, and the whole log is marked as planned once a second.
 */

interface PlanningOptions {
  /** The id of this process, and its name in the consumer group. */
  readonly signer_id: string;
  /** Called with the ids of webhooks for which something was planned. */
  readonly onPlanned: (webhook_ids: readonly string[]) => void;
  readonly every_ms: number;
  /** Events of this age are planned from the log, even if Redis did not announce them. */
  readonly late_ms: number;
}

/**
 * Maximum number of events per transaction. The time limit is long, because very many webhooks may
 * want each event.
 */
const max_planned = 100;
const statement_ms = 60_000;
const away_ms = 250;

/** Groups offsets into runs of consecutive numbers. */
export const runsOf = (offsets: readonly number[]): readonly Range[] => {
  const runs: { first: number; last: number }[] = [];
  for (const offset of [...offsets].sort((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run !== undefined && offset === run.last + 1) run.last = offset;
    else runs.push({ first: offset, last: offset });
  }
  return runs;
};

export const createPlanning = (deps: Deps, options: PlanningOptions): Service => {
  const { sql, redis, log, config } = deps;
  const { signer_id, onPlanned, every_ms, late_ms } = options;
  const reader = new GroupReader({
    redis_url: config.REDIS_URL ?? '',
    key: streamKey(config.REDIS_PREFIX),
    name: 'signer stream',
    log,
    count: max_planned,
    group: 'signers',
    consumer: signer_id,
    startAfter: () => readPlannedOffset(sql),
  });

  /** True while there are no webhooks. */
  let is_idle = false;
  const look = async (): Promise<void> => {
    const was_idle = is_idle;
    const passed = await planAllIfUnused(sql);
    is_idle = passed !== null;
    // Moves the group forward, so that the stream keeps no entries for it.
    if (passed !== null && redis.status === 'ready') await reader.moveTo(redis, passed);
    if (was_idle && !is_idle) reading.nudge();
  };

  const plan = async (range: Range): Promise<void> =>
    onPlanned(await sql.begin({ statement_ms }, (tx) => planDeliveries(tx, range)));

  const planAll = async (offsets: readonly number[]): Promise<void> => {
    for (const run of runsOf(offsets)) await plan(run);
    await reader.acknowledge(redis, offsets);
  };

  const readTurn = async (): Promise<'again' | 'rest'> => {
    if (is_idle) return 'rest';
    const asked_ms = performance.now();
    const entries = await reader.readNext();
    if (entries === null) return 'rest';
    await planAll(entries.map(({ offset }) => offset));
    // An empty read that did not wait would repeat in a tight loop. So rest first.
    return entries.length > 0 || performance.now() - asked_ms > away_ms ? 'again' : 'rest';
  };

  const lateTurn = async (): Promise<'again' | 'rest'> => {
    await look();
    if (is_idle) return 'rest';
    const late = await findUnplanned(sql, { late_ms, most: max_planned });
    if (late !== null) await plan(late);
    if (redis.status === 'ready') await planAll(await reader.claimStale(redis, late_ms));
    return late === null ? 'rest' : 'again';
  };

  const reading = makeLoop({ name: 'signer stream', log, every_ms: away_ms, turn: readTurn });
  const late = makeLoop({ name: 'signer unplanned', log, every_ms, turn: lateTurn });
  return {
    name: 'planning',
    async start() {
      await reading.start();
      await late.start();
    },
    async stop() {
      reader.stop();
      await Promise.all([reading.stop(), late.stop()]);
      await reader.leave(redis);
    },
  };
};
