import { countComments } from './comments.js';
import { type Numbered, startEmitter } from './env/events.js';
import { countPredictions, makeLoad, runRound } from './env/load-rounds.js';
import { questionId } from './env/seed.js';
import { startForum, startService, type Target } from './env/setup.js';
import { makeSubjects } from './fanout.js';
import { type Bench, type Figure, ratioOf, type Sample, type Subject } from './frame/bench.js';
import { dialectOf, startSubscribers } from './sockets.js';

/**
 * Compares one, two and three api processes under the same load: predictions and comments on ten
 * hot questions and on 10,000, reads, and events to sockets. Subjects are named after the load and
 * the number of processes: `predict_hot_64_2`. The load generator shares the cores, so the rate can
 * only show that more processes cost nothing. `us_all` shows the gain from more cores: it is the
 * CPU time per operation of all processes of the service, Postgres and Redis.
 */

const agents = 10_000;
const counts = [1, 2, 3] as const;
const connections = [64, 256] as const;
const hot_questions = 10;
const wide_questions = 10_000;
const max_per_second = { predict: 6_000, comment: 8_000, read: 60_000 } as const;

const writes = (['predict', 'comment'] as const).flatMap((kind) =>
  (['hot', 'wide'] as const).flatMap((spread) =>
    connections.map((in_flight) => ({ kind, spread, in_flight })),
  ),
);
const nameOf = ({ kind, spread, in_flight }: (typeof writes)[number]): string =>
  `${kind}_${spread}_${in_flight}`;

/** For each load: the rate and the CPU time with more processes, divided by those with one. */
const figuresOf = (name: string, with_cpu: boolean): Record<string, Figure> =>
  Object.fromEntries(
    ([2, 3] as const).flatMap((count) => {
      const [more, one] = [`${name}_${count}`, `${name}_1`];
      const rate = { of: ratioOf(more, one), min: 0.9 };
      const cpu = { of: ratioOf(more, one, 'us_all'), max: 1.2 };
      return [
        [`${name}_rate_${count}`, rate] as const,
        ...(with_cpu ? [[`${name}_cpu_${count}`, cpu] as const] : []),
      ];
    }),
  );

export const bench: Bench = {
  question: 'How much more load do two and three api processes handle than one?',
  figures: Object.assign(
    {},
    ...writes.map((load) => figuresOf(nameOf(load), true)),
    figuresOf('read', true),
    figuresOf('fanout', false),
  ) as Bench['figures'],
  async prepare(context) {
    const { seconds, quick } = context;
    const narrow = hot_questions * counts.length * writes.length * (context.rounds + 2);
    const wide = Array.from({ length: wide_questions }, (_, n) => questionId(narrow + n));
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions: narrow + wide_questions,
      copies: ['service_2', 'service_3'],
      env: { API_PROCESSES: '1', TRUSTED_PROXIES: '127.0.0.1' },
    });
    const targets: Target[] = [service];
    for (const count of [2, 3]) {
      const env = { API_PROCESSES: String(count), TRUSTED_PROXIES: '127.0.0.1' };
      const own = { ...env, REDIS_PREFIX: `pf${count}` };
      targets.push(await startService(setup, own, `service_${count}`));
    }
    let next_question = 0;
    const nextHot = (): readonly string[] =>
      Array.from({ length: hot_questions }, () => questionId(next_question++));
    const writesOf = (load: (typeof writes)[number]) => () =>
      targets.map((target, n): Subject => {
        const { kind, spread, in_flight } = load;
        const countRows = kind === 'predict' ? countPredictions : countComments;
        const run = makeLoad(setup, target, { kind, keys_file, agents, in_flight, countRows });
        const go = (length: number): Promise<Sample> =>
          run({
            seconds: length,
            at_most: max_per_second[kind],
            subjects: spread === 'hot' ? nextHot() : wide,
          });
        return {
          name: `${nameOf(load)}_${counts[n]}`,
          warmUp: () => go(quick ? 1 : 3),
          round: () => go(seconds),
        };
      });

    const reads = targets.map((target, n): Subject => {
      const paths = wide
        .slice(0, hot_questions)
        .flatMap((id) => [`/api/questions/${id}/consensus`, `/api/questions/${id}`]);
      const go = async (length: number): Promise<Sample> => {
        const count = length * max_per_second.read;
        const requests = { kind: 'read', paths, count } as const;
        const job = { requests, in_flight: 64, seconds: length, wanted_status: 200 };
        return (await runRound(setup, { target, job })).sample;
      };
      return { name: `read_${counts[n]}`, warmUp: () => go(1), round: () => go(seconds) };
    });

    const group = startSubscribers(context);
    const fanouts: Subject[] = [];
    for (const [n, target] of targets.entries()) {
      const emit = await startEmitter(setup, target.sql, n === 0 ? 'pf' : `pf${counts[n]}`);
      const event = 'prediction.placed';
      const publish = (events: readonly Numbered[]) =>
        emit(events.map((one) => ({ ...one, event })));
      const { most } = makeSubjects(setup, group, { target, dialect: dialectOf('all'), publish });
      fanouts.push({ ...most, name: `fanout_${counts[n]}` });
    }
    return [...writes.map(writesOf), () => reads, () => fanouts];
  },
};
