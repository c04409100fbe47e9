import type { BenchContext, Sample, Subject } from '../frame/types.js';
import type { PairOptions } from '../load/pairs.js';
import type { SocketOptions } from '../load/socket-load.js';
import type { Bed } from './bed.js';
import { type HttpRound, runHttpRound } from './http-round.js';
import type { KeyBudget } from './key-budget.js';
import type { StoredTarget } from './targets.js';

/** Questions, or whatever the requests of one round are about; another round has others. */
export const block = 64;
/** Enough for batches to gather; peers gain nothing from more than 64. */
export const best_connections = 128;
const most_per_second = 30_000;

export interface LoadOptions {
  /** Module of `bench/load` that makes the requests, each a pair of agent and subject. */
  readonly source: URL;
  /** Options of that module beside those of every round. */
  readonly source_options?: Readonly<Record<string, unknown>>;
  /** Present where the requests are frames for websockets. */
  readonly sockets?: Pick<SocketOptions, 'an_address'>;
  readonly keys_file: string;
  readonly agents: number;
  /** The agents of the first round; 0 when absent. */
  readonly first_agent?: number;
  readonly connections: number;
  /** One of each agent, so many of them in use at a time. */
  readonly own_connections?: number;
  /** One for each request. */
  readonly new_connections?: boolean;
  /** A round is so many requests of each agent at once, and the next one is of other agents. */
  readonly burst?: number;
  readonly wanted_status: number;
  /** The id of subject `n`. */
  idOf(n: number): string;
  /** The first subject of the first round; 0 when absent. */
  readonly first_subject?: number;
  /** So many subjects, the same ones in each round; another block of them in each when absent. */
  readonly same_subjects?: number;
  /** The first text of the first round; 0 when absent. */
  readonly first_text?: number;
  readonly budget?: KeyBudget | undefined;
  /** Rows that one round made: as many as answers of the wanted status, or the bench fails. */
  countRows?(subjects: readonly string[]): Promise<number>;
  /** Waits for work that goes on after the answers; what it measured joins the figures. */
  settle?(): Promise<Sample>;
}

export interface RoundPlan {
  readonly seconds: number;
  /** Absent for the closed loop. */
  readonly rate?: number;
  /** Upper bound of the requests per second, for preparing them. */
  readonly at_most: number;
  /** A status that is no failure beside the wanted one. */
  readonly allowed_status?: number;
  /** Other than the usual number of connections. */
  readonly connections?: number;
  readonly during?: HttpRound['during'];
}

export type RunRound = (plan: RoundPlan) => Promise<Sample>;

/** Runs rounds on one target, each on subjects and with texts of its own. */
export const makeLoad = (
  { stores, loader }: Bed,
  target: StoredTarget,
  options: LoadOptions,
): RunRound => {
  const { keys_file, agents, own_connections, wanted_status, budget, burst } = options;
  let first_agent = options.first_agent ?? 0;
  let next_subject = options.first_subject ?? 0;
  let next_text = options.first_text ?? 0;
  let rows_before = 0;
  return async (plan) => {
    const { seconds, rate, at_most, allowed_status, during } = plan;
    const { same_subjects } = options;
    const connections = plan.connections ?? options.connections;
    const width = same_subjects ?? block;
    const wanted = Math.ceil((rate ?? at_most) * seconds * 1.05) + connections;
    const count = burst === undefined ? Math.min(wanted, agents * width) : agents * burst;
    const subjects = Array.from({ length: width }, (_, n) => options.idOf(next_subject + n));
    const keys = { keys_file, first_agent, agents };
    const pairs: PairOptions = { ...keys, subjects, count, first_text: next_text };
    if (same_subjects === undefined) next_subject += block;
    next_text += count;
    if (burst !== undefined) first_agent += agents;
    const { result, sample } = await runHttpRound({
      ...{ target, stores, loader },
      job: {
        source: options.source.href,
        source_options: { ...options.source_options, ...pairs },
        ...{ connections, seconds, wanted_status, whole: burst !== undefined },
        ...(own_connections === undefined ? {} : { own_connections }),
        ...(options.new_connections === undefined ? {} : { new_connections: true }),
        ...(options.sockets === undefined ? {} : { sockets: { ...keys, ...options.sockets } }),
        ...(rate === undefined ? {} : { rate }),
        ...(allowed_status === undefined ? {} : { allowed_status }),
      },
      beforeGo: async () => budget?.reserve(Math.ceil(count / agents)),
      ...(during === undefined ? {} : { during }),
    });
    budget?.spend(Math.ceil(result.sent / agents));
    const counted = await options.countRows?.(subjects);
    const rows = counted === undefined ? result.done : counted - rows_before;
    if (same_subjects !== undefined) rows_before = counted ?? 0;
    if (rows !== result.done) {
      const answers = `${result.done} answers were ${wanted_status}`;
      throw new Error(`${target.name}: ${answers}, ${rows} rows are there.`);
    }
    const settled = await options.settle?.();
    // Else Postgres does it by itself, in the middle of a round of somebody else.
    await target.sql`vacuum analyze`;
    return { ...sample, ...settled };
  };
};

/** As many requests as the target answers. */
export const makeClosedLoop = (
  name: string,
  { seconds, quick }: BenchContext,
  run: RunRound,
): Subject => {
  let seen = 0;
  return {
    name,
    async warmUp() {
      // The first pass fills caches and compiles code, the second shows how fast it is then.
      await run({ seconds: quick ? 1 : 4, at_most: most_per_second });
      const sample = await run({ seconds: quick ? 1 : 2, at_most: most_per_second });
      seen = sample['per_second'] ?? 0;
    },
    async round() {
      const sample = await run({ seconds, at_most: Math.max(2_000, seen * 1.8) });
      seen = Math.max(seen, sample['per_second'] ?? 0);
      return sample;
    },
  };
};
