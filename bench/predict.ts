import { spawnSync } from 'node:child_process';
import {
  best_connections,
  block,
  makeClosedLoop,
  makeLoad,
  type RunRound,
} from './env/load-rounds.js';
import { questionId } from './env/seed.js';
import { startForum, startPeer, startService, type Target } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Subject } from './frame/bench.js';
import { makePgbench } from './peers/pgbench.js';

/**
 * Durable predictions per second through `POST /api/questions/{id}/predict` with every check on,
 * compared with the conventional design and pgbench, on one Postgres. Every request has a different
 * pair of agent and question, and its own text. After each round the rows are counted: a 201 answer
 * without a row, or a row without an answer, fails the bench.
 *
 * `NAME_at_half`, `NAME_at_20th`: at half and at a twentieth of the rate that the conventional
 * design reaches. `service_keyed`: each request has an Idempotency-Key. `service_overload`: at
 * twice the rate that the service reaches. The service must refuse the excess and answer all other
 * requests. `service_two`, `service_three`: this many api processes. `wide`: on many questions.
 */

const agents = 10_000;
/** On two cores, faster for the service than 192 or 320 connections. Peers need fewer. */
const service_connections = 256;
/** On two cores, faster than 8, 12 or 20 connections. */
const peer_pool = 16;
const overload_connections = 1_024;
/** Number of questions in the wide load, the same ones in each round. */
const wide_questions = 10_000;

export const bench: Bench = {
  question: 'How many durable predictions per second does the HTTP endpoint accept, all checks on?',
  figures: {
    service_over_conventional: { of: ratioOf('service', 'conventional'), min: 3 },
    service_over_pgbench: { of: ratioOf('service', 'pgbench'), min: 0.8 },
    cpu_over_conventional: { of: ratioOf('service', 'conventional', 'us_all'), max: 0.35 },
    cpu_at_half: { of: ratioOf('service_at_half', 'conventional_at_half', 'us_all'), max: 1 },
    p50_at_half: { of: ratioOf('service_at_half', 'conventional_at_half', 'p50_ms'), max: 1.5 },
    p99_at_half: { of: ratioOf('service_at_half', 'conventional_at_half', 'p99_ms'), max: 1.5 },
    cpu_at_20th: { of: ratioOf('service_at_20th', 'conventional_at_20th', 'us_all') },
    keyed_over_service: { of: ratioOf('service_keyed', 'service') },
    keyed_cpu_at_half: { of: ratioOf('service_keyed_at_half', 'service_at_half', 'us_all') },
    overload_p99_over_limit: { of: ratioOf('service_overload', 'service', 'p99_ms'), max: 3 },
    refused_percent_overload: { of: figureOf('service_overload', 'refused_percent') },
    two_over_one: { of: ratioOf('service_two', 'service_again'), min: 0.95 },
    three_over_one: { of: ratioOf('service_three', 'service_again'), min: 0.9 },
    two_over_one_wide: { of: ratioOf('service_two_wide', 'service_wide'), min: 0.95 },
    api_rss_mb: { of: figureOf('service', 'rss_mb'), max: 250 },
  },
  async prepare(context) {
    const { seconds } = context;
    const has_pgbench = spawnSync('pgbench', ['--version']).status === 0;
    // Questions for all rounds and warm-ups of the other loads. The wide load uses the ones after
    // them.
    const narrow = block * 14 * (context.rounds + 2);
    const subjects = Array.from({ length: wide_questions }, (_, n) => questionId(narrow + n));
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions: narrow + wide_questions,
      copies: ['service_two', 'service_three', 'conventional', 'pgbench'],
    });
    const env = { POOL: String(peer_pool) };
    const conventional = await startPeer(setup, { name: 'conventional', env });
    if (!has_pgbench) context.log('pgbench is not installed (Debian: postgresql).');

    const fixed = { kind: 'predict', keys_file, agents } as const;
    const runOn = (target: Target) =>
      makeLoad(setup, target, { ...fixed, in_flight: service_connections });
    const one = runOn(service);
    const keyed = makeLoad(setup, service, {
      ...fixed,
      in_flight: service_connections,
      idempotent: true,
    });
    /** Starts the service in its first round, because earlier it would disturb other subjects. */
    const runOnMore = (name: string, processes: number): RunRound => {
      let started: Promise<RunRound> | undefined;
      const start = async (): Promise<RunRound> => {
        const env = { API_PROCESSES: String(processes), REDIS_PREFIX: name };
        return runOn(await startService(setup, env, name));
      };
      return async (plan) => {
        started ??= start();
        return (await started)(plan);
      };
    };
    const two = runOnMore('service_two', 2);
    const three = runOnMore('service_three', 3);
    const peer = makeLoad(setup, conventional, { ...fixed, in_flight: best_connections });
    const wide =
      (run: RunRound): RunRound =>
      (plan) =>
        run({ ...plan, subjects });
    const closed = (name: string, run: RunRound) => makeClosedLoop(name, context, run);
    const atRate = (
      name: string,
      rate: number,
      runs: Readonly<Record<string, RunRound>>,
    ): readonly Subject[] =>
      Object.entries(runs).map(([target, run]) => ({
        name: `${target}_at_${name}`,
        round: () => run({ seconds, rate }),
      }));
    return [
      () => [
        closed('service', one),
        closed('service_keyed', keyed),
        closed('conventional', peer),
        ...(has_pgbench ? [makePgbench(setup)] : []),
      ],
      (so_far) => {
        const limit = so_far['conventional']?.['per_second'] ?? 600;
        return [
          ...atRate('half', limit / 2, { service: one, service_keyed: keyed, conventional: peer }),
          ...atRate('20th', limit / 20, { service: one, conventional: peer }),
        ];
      },
      (so_far) => {
        const rate = (so_far['service']?.['per_second'] ?? 1) * 2;
        const plan = { seconds, rate, in_flight: overload_connections, allowed_status: 503 };
        return [{ name: 'service_overload', round: () => one(plan) }];
      },
      () => [
        closed('service_again', one),
        closed('service_two', two),
        closed('service_three', three),
        closed('service_wide', wide(one)),
        closed('service_two_wide', wide(two)),
      ],
    ];
  },
};
