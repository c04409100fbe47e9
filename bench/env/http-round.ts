import type { Sample } from '../frame/types.js';
import type { LoadJob } from '../load/load-process.js';
import { type Loader, requireClean } from '../load/loader.js';
import type { LoadResult } from '../load/tally.js';
import { type Groups, startMeter } from './processes.js';
import type { Stores } from './stores.js';

/** A server under load over HTTP: the service, or a peer. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** Its processes, by the name their CPU is reported under. */
  readonly groups: Groups;
  /** The processes whose resident memory is reported. */
  watched(): readonly number[];
  /** The last errors of its log, for the report of a round that failed. */
  lastErrors?(): string;
}

export interface HttpRound {
  readonly target: Target;
  readonly stores: Stores;
  readonly loader: Loader;
  readonly job: Omit<LoadJob, 'port'>;
  /** Called when the requests are made and nothing but sending them is left. */
  beforeGo?(): Promise<void>;
  /** What goes on beside the load, from its beginning; its figures join those of the round. */
  during?(): Promise<Sample>;
}

export interface HttpOutcome {
  readonly result: LoadResult;
  readonly sample: Sample;
}

/**
 * One round of load on one target, with the CPU of everybody who took part. Each begins right after
 * a checkpoint, so that all rounds write the same full pages. Throws on any unexpected answer.
 */
export const runHttpRound = async (round: HttpRound): Promise<HttpOutcome> => {
  const { target, stores, loader, job } = round;
  await loader.prepare({ ...job, port: target.port });
  await round.beforeGo?.();
  await stores.admin`checkpoint`;
  const shared = {
    postgres: stores.postgresPids,
    redis: stores.redisPids,
    load: () => [loader.pid],
  };
  const meter = startMeter({ ...target.groups, ...shared }, target.watched);
  const beside = round.during?.();
  // Awaited below; a failure must not end the process before that.
  beside?.catch(() => undefined);
  const result = await loader.go();
  const metered = meter.stop();
  requireClean(result, [job.wanted_status, job.allowed_status], target);
  const { per_second, p50_ms, p99_ms, max_ms, cpu_us_per_request, sent, done } = result;
  const refused =
    job.allowed_status === undefined ? {} : { refused_percent: 100 - (100 * done) / sent };
  const latencies = { p50_ms, p99_ms, max_ms, ...refused };
  const sample = { per_second, ...latencies, ...metered, load_us: cpu_us_per_request };
  return { result, sample: { ...sample, ...(await beside) } };
};
