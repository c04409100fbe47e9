import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Calibration, calibrate, in_flight, write_loads } from './capacity/calibrate.js';
import { fillTables, makePlan, type Results } from './capacity/plan.js';
import { countComments } from './comments.js';
import { type Numbered, startEmitter } from './env/events.js';
import { countPredictions, makeLoad, runRound } from './env/load-rounds.js';
import { commandOf, startMeter } from './env/processes.js';
import { questionId } from './env/seed.js';
import { type Setup, startForum, startService, type Target } from './env/setup.js';
import { makeSubjects } from './fanout.js';
import type { Bench, Figure, Sample, Subject } from './frame/bench.js';
import { dialectOf, startSubscribers } from './sockets.js';
import { addHooks, backlog, recordBacklog, secret_key, startReceivers } from './webhooks.js';

/**
 * What more nodes would do. Measures the CPU of every part for predictions, comments,
 * reads, frames and deliveries with one and two api processes, gives these times to a simulation
 * (`capacity/model.ts`), compares what that says of three processes with three processes, and asks
 * it about more than this machine has. Writes `bench/capacity/results.json` and the tables of
 * `docs/capacity.md`.
 */

const agents = 10_000;
const hot_questions = 10;
const wide_questions = 10_000;
const counts = [1, 2, 3] as const;
const most_per_second = { predict: 6_000, comment: 8_000, read: 200_000 } as const;
const deliveries = 12_800;
const close = { min: 0.85, max: 1.15 };

const project = path.resolve(import.meta.dirname, '../..');
const results_file = path.join(project, 'bench/capacity/results.json');
const page_file = path.join(project, 'docs/capacity.md');

/** The processes of a service and of the stores by what they do. */
const withGroups = (setup: Setup, target: Target, clients: readonly number[]): Target => ({
  ...target,
  groups() {
    const [all, stores] = [target.all(), setup.stores()];
    const of = (role: string) => all.filter((pid) => commandOf(pid).includes(` --role=${role} `));
    const [api, relay] = [of('api'), of('relay')];
    const owner = api.filter((pid) => commandOf(pid).includes(' --index=0 '));
    const redis = stores.filter((pid) => commandOf(pid).includes('redis'));
    return {
      api,
      owner,
      relay,
      redis,
      client: clients,
      rest: all.filter((pid) => !api.includes(pid) && !relay.includes(pid)),
      postgres: stores.filter((pid) => !redis.includes(pid)),
    };
  },
});

const startDelivery = async (setup: Setup, target: Target, receivers: Receivers) => {
  const { sql } = target;
  await addHooks(sql, backlog, receivers.base);
  const run = async (count: number): Promise<Sample> => {
    await receivers.call('expect', count);
    await setup.admin`checkpoint`;
    const rest = String(target.groups?.()['rest']);
    const meter = startMeter(target.watched, target.groups);
    const arriving = receivers.call('arrived');
    await recordBacklog(sql, backlog.event, count / backlog.count);
    const { seconds } = await arriving;
    const sample = meter.stop();
    if (String(target.groups?.()['rest']) !== rest) throw new Error('A signer was replaced.');
    return { per_second: count / seconds, ...sample };
  };
  return { name: 'delivery', warmUp: () => run(backlog.count * 10), round: () => run(deliveries) };
};
type Receivers = Awaited<ReturnType<typeof startReceivers>>;

const checkOf = (name: string): Figure => ({ of: (round) => round['model']?.[name], ...close });

export const bench: Bench = {
  question: 'What would more nodes do?',
  figures: Object.fromEntries(
    [...write_loads, 'read', 'fanout'].map((name) => [`${name}_simulated_3`, checkOf(name)]),
  ),
  async prepare(context) {
    const { seconds, quick } = context;
    const receivers = await startReceivers(context);
    const narrow = hot_questions * (counts.length + 1) * (context.rounds + 2);
    const wide = Array.from({ length: wide_questions }, (_, n) => questionId(narrow + n));
    const env = {
      TRUSTED_PROXIES: '127.0.0.1',
      SECRET_KEY: secret_key,
      WEBHOOK_CA_FILE: receivers.ca_file,
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_ALLOW_IN_PRODUCTION: 'true',
    };
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions: narrow + wide_questions,
      copies: ['service_2', 'service_3'],
      env: { ...env, API_PROCESSES: '1' },
    });
    const group = startSubscribers(context);
    const clients = [setup.loader.pid, group.pid];
    const targets = [withGroups(setup, service, clients)];
    for (const count of [2, 3]) {
      const own = { ...env, API_PROCESSES: String(count), REDIS_PREFIX: `pf${count}` };
      const started = await startService(setup, own, `service_${count}`);
      targets.push(withGroups(setup, started, clients));
    }

    let next_question = 0;
    const writes = write_loads.map((name) => () => {
      const is_hot = name.endsWith('hot');
      const kind = name.startsWith('predict') ? 'predict' : 'comment';
      const countRows = kind === 'predict' ? countPredictions : countComments;
      const make = (target: Target, count: number | 'many'): Subject => {
        const size = { in_flight: in_flight[count === 'many' ? count : 'few'] };
        const run = makeLoad(setup, target, { kind, keys_file, agents, ...size, countRows });
        const go = (length: number): Promise<Sample> => {
          const hot = Array.from({ length: is_hot ? hot_questions : 0 }, () =>
            questionId(next_question++),
          );
          const subjects = is_hot ? hot : wide;
          return run({ seconds: length, at_most: most_per_second[kind], subjects });
        };
        const warmUp = () => go(quick ? 1 : 3);
        return { name: `${name}_${count}`, warmUp, round: () => go(seconds) };
      };
      return [make(targets[0]!, 'many'), ...targets.map((one, n) => make(one, counts[n]!))];
    });

    const reads = targets.map((target, n): Subject => {
      const paths = wide.slice(0, hot_questions).map((id) => `/api/questions/${id}/consensus`);
      const go = async (length: number): Promise<Sample> => {
        const requests = { kind: 'read', paths, count: length * most_per_second.read } as const;
        const job = { requests, in_flight: 64, seconds: length, wanted_status: 200 };
        return (await runRound(setup, { target, job })).sample;
      };
      return { name: `read_${counts[n]}`, warmUp: () => go(1), round: () => go(seconds) };
    });

    const fanouts: Subject[] = [];
    for (const [n, target] of targets.entries()) {
      const emit = await startEmitter(setup, target.sql, n === 0 ? 'pf' : `pf${counts[n]}`);
      const event = 'prediction.placed';
      const publish = (events: readonly Numbered[]) =>
        emit(events.map((one) => ({ ...one, event })));
      const { most } = makeSubjects(setup, group, { target, dialect: dialectOf('all'), publish });
      fanouts.push({ ...most, name: `fanout_${counts[n]}` });
    }
    const delivery = await startDelivery(setup, targets[0]!, receivers);

    const model = (calibration: Calibration): Subject => ({
      name: 'model',
      async round() {
        const { checks } = calibration;
        return Object.fromEntries(checks.map(({ name, ratio }) => [name, ratio]));
      },
    });
    return [
      ...writes,
      () => reads,
      () => fanouts,
      () => [delivery],
      (so_far) => {
        const calibration = calibrate(so_far, os.availableParallelism());
        const results: Results = {
          machine: `${os.availableParallelism()} cores of ${os.cpus()[0]?.model}, Node ${process.version}`,
          command: `npm run bench -- capacity --rounds ${context.rounds} --seconds ${seconds}${quick ? ' --quick' : ''}`,
          ...calibration,
          plan: makePlan(calibration),
        };
        if (context.only === undefined) {
          writeFileSync(results_file, `${JSON.stringify(results, null, 2)}\n`);
          writeFileSync(page_file, fillTables(readFileSync(page_file, 'utf8'), results));
        }
        return [model(calibration)];
      },
    ];
  },
};
