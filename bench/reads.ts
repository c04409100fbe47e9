import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { runHttpRound, type Target } from './env/http-round.js';
import { block } from './env/load-rounds.js';
import { type RunningPeer, startPeer } from './env/peer.js';
import { treeOf } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { probeStaleness } from './env/staleness.js';
import { openPool } from './env/stores.js';
import { startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';
import { requireClean, startLoader } from './load/loader.js';
import type { Recorded } from './peers/recorded.js';

/**
 * Hot reads per second, each kind beside a bare uWebSockets.js handler that sends the same bytes,
 * and beside Fastify in front of Redis, while 500 predictions a second are placed on the very
 * questions that are read. These go on beside the peers too, so that the machine is as busy. Every
 * round has 64 questions of its own; what a peer sends is what the service sends as it begins.
 */

const agents = 10_000;
const placed_per_second = 500;
const connections = 64;
/** Before a round begins: the questions have some predictions, and are hot. */
const lead_in_s = 1.5;
const probers = 8;
const most_per_second = 250_000;

const kinds = {
  consensus: (ids: readonly string[]) => ids.map((id) => `/api/questions/${id}/consensus`),
  question: (ids: readonly string[]) => ids.map((id) => `/api/questions/${id}`),
  list: () => ['/api/questions?status=open', '/api/questions?sort=most_predicted&limit=10'],
  embed: (ids: readonly string[]) => ids.map((id) => `/embed/${id}`),
} as const;
type Kind = keyof typeof kinds;
const kind_names = Object.keys(kinds) as readonly Kind[];

/** What each peer writes by itself, or what belongs to one request. */
const not_recorded =
  /^(?:date|content-length|connection|keep-alive|uwebsockets|transfer-encoding)$/;

const record = async (port: number, path: string): Promise<Recorded> => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { 'accept-encoding': 'identity' },
  });
  const body = await answer.text();
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${body}`);
  const headers = [...answer.headers].filter(([name]) => !not_recorded.test(name));
  return { path, headers, body };
};

interface Peer extends Target {
  /** Gives these answers from now on. */
  learn(recorded: readonly Recorded[]): Promise<void>;
}

const startReadPeer = async (bed: Bed, name: string, module: URL): Promise<Peer> => {
  const { context, stores } = bed;
  const peer: RunningPeer = await startPeer(module, {
    REDIS_URL: stores.redis_url,
    LOG_FILE: `${context.folder}/${name}.log`,
  });
  bed.onClose(peer.stop);
  return {
    ...{ name, port: peer.port, groups: { cpu: () => treeOf(peer.pid) } },
    watched: () => [peer.pid],
    async learn(recorded) {
      peer.send(recorded);
      for (const { path, body } of recorded) {
        for (let tries = 0; ; tries += 1) {
          const answer = await fetch(`http://127.0.0.1:${peer.port}${path}`);
          if ((await answer.text()) === body) break;
          if (tries > 200) throw new Error(`${name} does not send the bytes of ${path}.`);
          await delay(10);
        }
      }
    },
  };
};

interface World {
  readonly bed: Bed;
  readonly service: Target;
  readonly keys: readonly string[];
  readonly keys_file: string;
  /** Places predictions beside everything else. */
  readonly writer: ReturnType<typeof startLoader>;
  /** The next 64 questions. */
  nextBlock(): readonly string[];
  nextTexts(count: number): number;
}

/** Predictions on these questions at a steady rate; its end tells how they went. */
const placeBeside = async (world: World, subjects: readonly string[], seconds: number) => {
  const { writer, service, keys_file } = world;
  const count = Math.ceil(placed_per_second * seconds * 1.05) + connections;
  await writer.prepare({
    source: new URL('./load/predict-requests.js', import.meta.url).href,
    source_options: { keys_file, subjects, count, first_text: world.nextTexts(count) },
    ...{ port: service.port, connections: 32, seconds, wanted_status: 201 },
    rate: placed_per_second,
  });
  const done = writer.go().then((result): Sample => {
    requireClean(result, [201], service);
    return { placed_per_second: result.per_second, placed_p99_ms: result.p99_ms };
  });
  done.catch(() => undefined);
  return done;
};

const makeRead = (world: World, kind: Kind, target: Target | Peer, name: string): Subject => {
  const { bed, service } = world;
  const { context } = bed;
  const run = async (seconds: number): Promise<Sample> => {
    const ids = world.nextBlock();
    const paths = kinds[kind](ids);
    const placed = await placeBeside(world, ids, seconds + lead_in_s + 1);
    const { sample } = await runHttpRound({
      ...{ target, stores: bed.stores, loader: bed.loader },
      job: {
        source: new URL('./load/read-requests.js', import.meta.url).href,
        source_options: { paths, count: Math.ceil(seconds * most_per_second) },
        ...{ connections: context.connections ?? connections, seconds, wanted_status: 200 },
      },
      async beforeGo() {
        await delay(lead_in_s * 1_000);
        if (!('learn' in target)) return;
        const recorded = await Promise.all(paths.map((path) => record(service.port, path)));
        await target.learn(recorded);
      },
    });
    return { ...sample, ...(await placed) };
  };
  return {
    name,
    async warmUp() {
      await run(context.quick ? 1 : 3);
    },
    round: () => run(context.seconds),
  };
};

const makeStaleness = (world: World): Subject => {
  const { bed, service, keys } = world;
  return {
    name: 'staleness',
    async round() {
      const { seconds } = bed.context;
      const placed = await placeBeside(world, world.nextBlock(), seconds + lead_in_s);
      await delay(lead_in_s * 500);
      const question_ids = world.nextBlock().slice(0, probers);
      const first = world.nextTexts(100_000);
      const probing = { port: service.port, keys, question_ids, first, seconds };
      return { ...(await probeStaleness(probing)), ...(await placed) };
    },
  };
};

const makeWorld = async (bed: Bed): Promise<World> => {
  const { context, stores } = bed;
  const keys = makeKeys(agents);
  // Three subjects of four kinds, and two blocks for each round of probes.
  const blocks = 12 * (context.rounds + 1) + 2 * context.rounds;
  await stores.createDatabase('service');
  const sql = openPool(stores.urlOf('service'), 'bench');
  await seed(sql, { keys, questions: block * blocks });
  await sql.end({ timeout: 5 });
  const writer = startLoader();
  bed.onClose(writer.close);
  let next_question = 0;
  let next_text = 0;
  return {
    ...{ bed, keys, writer, keys_file: writeKeys(context, keys) },
    service: await startServiceTarget(bed),
    nextBlock() {
      next_question += block;
      return Array.from({ length: block }, (_, n) => questionId(next_question - block + n));
    },
    nextTexts(count) {
      next_text += count;
      return next_text - count;
    },
  };
};

export const reads: Bench = {
  name: 'reads',
  question: 'How many hot reads per second are served while 500 predictions a second are placed?',
  reduce: { rss_mb: 'max', stale_p99_ms: 'median' },
  ratios: Object.fromEntries(
    kind_names.flatMap((kind) => [
      [`${kind}_over_uws`, ratioOf(`${kind}_service`, `${kind}_uws`)],
      [`${kind}_over_fastify`, ratioOf(`${kind}_service`, `${kind}_fastify`)],
    ]),
  ),
  figures: { stale_p99_ms: figureOf('staleness', 'stale_p99_ms') },
  prepare: prepareOnBed(async (bed) => {
    const world = await makeWorld(bed);
    const peerAt = (file: string) => new URL(`./peers/${file}.js`, import.meta.url);
    const uws = await startReadPeer(bed, 'uws', peerAt('reads-uws'));
    const fastify = await startReadPeer(bed, 'fastify', peerAt('reads-fastify'));
    const stageOf = (kind: Kind) => () => ({
      subjects: [
        makeRead(world, kind, world.service, `${kind}_service`),
        makeRead(world, kind, uws, `${kind}_uws`),
        makeRead(world, kind, fastify, `${kind}_fastify`),
      ],
    });
    return {
      stages: [() => ({ subjects: [makeStaleness(world)] }), ...kind_names.map(stageOf)],
    };
  }),
};
