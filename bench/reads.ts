import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { block, requireClean, runRound } from './env/load-rounds.js';
import { questionId, seed } from './env/seed.js';
import { type Peer, startPeer, startService, type Target } from './env/service.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';
import { latenciesOf } from './load/latencies.js';
import { predictBody, predictPath } from './load/requests.js';
import type { ReadHandlers, Recorded } from './peers/reads.js';

/**
 * Hot reads per second, each kind beside a bare uWebSockets.js handler that sends the same bytes,
 * and beside Fastify in front of Redis, while 500 predictions a second are placed on the very
 * questions that are read. These go on with the peers too, so that the machine is as busy. Every
 * round has 64 questions of its own; a peer sends what the service sends as the round begins.
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

/** Headers that each peer writes by itself, or that belong to one request. */
const not_recorded =
  /^(?:date|content-length|connection|keep-alive|uwebsockets|transfer-encoding)$/;

const record = async (port: number, path: string): Promise<Recorded> => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { 'accept-encoding': 'identity' },
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${path} was answered ${response.status}: ${body}`);
  return {
    path,
    headers: [...response.headers].filter(([name]) => !not_recorded.test(name)),
    body,
  };
};

const makeSubjects = async (bed: Bed) => {
  const { context } = bed;
  const keys = makeKeys(agents);
  const keys_file = writeKeys(bed, keys);
  // Three subjects of four kinds, and two blocks for each round of probes.
  const blocks = 12 * (context.rounds + 1) + 2 * context.rounds;
  await bed.createDatabase('service', (sql) => seed(sql, { keys, questions: block * blocks }));
  const writer = bed.startLoader();
  const service: Target = await startService(bed);
  let next_question = 0;
  let next_text = 0;

  const nextBlock = (): readonly string[] => {
    next_question += block;
    return Array.from({ length: block }, (_, n) => questionId(next_question - block + n));
  };
  const nextTexts = (count: number): number => {
    next_text += count;
    return next_text - count;
  };

  /** Starts predictions on these questions at a steady rate; its end tells how they went. */
  const startPlacing = async (subjects: readonly string[], seconds: number) => {
    const count = Math.ceil(placed_per_second * seconds * 1.05) + connections;
    const pairs = { kind: 'predict' as const, keys_file, first_agent: 0, agents, subjects, count };
    await writer.call('prepare', {
      requests: { ...pairs, first_text: nextTexts(count) },
      ...{ port: service.port, in_flight: 32, seconds, wanted_status: 201 },
      rate: placed_per_second,
    });
    const done = writer.call('go').then((result): Sample => {
      requireClean(result, service);
      return { placed_per_second: result.per_second, placed_p99_ms: result.p99_ms };
    });
    done.catch(() => undefined);
    return { done };
  };

  const makeRead = (kind: Kind, target: Target, peer?: Peer<ReadHandlers>): Subject => {
    const run = async (seconds: number): Promise<Sample> => {
      const ids = nextBlock();
      const paths = kinds[kind](ids);
      const { done } = await startPlacing(ids, seconds + lead_in_s + 1);
      const count = Math.ceil(seconds * most_per_second);
      const { sample } = await runRound(bed, {
        target,
        job: {
          requests: { kind: 'read', paths, count },
          ...{ in_flight: connections, seconds, wanted_status: 200 },
        },
        async beforeGo() {
          await delay(lead_in_s * 1_000);
          if (peer === undefined) return;
          const recorded = await Promise.all(paths.map((path) => record(service.port, path)));
          await peer.call('learn', recorded);
          for (const { path, body } of recorded) {
            if ((await record(peer.port, path)).body !== body) throw new Error(`Not ${path}.`);
          }
        },
      });
      return { ...sample, ...(await done) };
    };
    const warmUp = () => run(context.quick ? 1 : 3);
    return { name: `${kind}_${target.name}`, warmUp, round: () => run(context.seconds) };
  };

  /**
   * How late a consensus is: from the answer 201 to a prediction to an answer that counts it. Every
   * prober has a question of its own, predicts and reads again and again, a millisecond apart.
   */
  const probe = async (question_id: string, n: number, first_text: number): Promise<number[]> => {
    const base = `http://127.0.0.1:${service.port}`;
    const found_ms: number[] = [];
    const end_ms = performance.now() + context.seconds * 1_000;
    for (let count = 1; performance.now() < end_ms; count += 1) {
      const k = first_text + n + count * probers;
      const placed = await fetch(base + predictPath(question_id), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': keys[k % keys.length]! },
        body: JSON.stringify(predictBody(k)),
      });
      const text = await placed.text();
      if (placed.status !== 201) throw new Error(`A probe was answered ${placed.status}: ${text}`);
      const at_ms = performance.now();
      for (;;) {
        const { body } = await record(service.port, `/api/questions/${question_id}/consensus`);
        if (JSON.parse(body).total_predictions >= count) break;
        if (performance.now() - at_ms > 10_000) throw new Error('A prediction is not counted.');
        await delay(1);
      }
      found_ms.push(performance.now() - at_ms);
    }
    return found_ms;
  };
  const staleness: Subject = {
    name: 'staleness',
    async round() {
      const { done } = await startPlacing(nextBlock(), context.seconds + lead_in_s);
      await delay(lead_in_s * 500);
      const ids = nextBlock().slice(0, probers);
      const first_text = nextTexts(100_000);
      const found = await Promise.all(ids.map((id, n) => probe(id, n, first_text)));
      const { p50_ms, p99_ms, max_ms } = latenciesOf(found.flat());
      const stale = { stale_p50_ms: p50_ms, stale_p99_ms: p99_ms, stale_max_ms: max_ms };
      return { probes: found.flat().length, ...stale, ...(await done) };
    },
  };

  const start = (name: string) =>
    startPeer<ReadHandlers>(bed, { name, module: 'reads', env: { KIND: name } });
  const peers = [await start('uws'), await start('fastify')];
  const readsOf = (kind: Kind) => [
    makeRead(kind, service),
    ...peers.map((peer) => makeRead(kind, peer, peer)),
  ];
  return { staleness, readsOf };
};

export const bench: Bench = {
  name: 'reads',
  question: 'How many hot reads per second are served while 500 predictions a second are placed?',
  figures: {
    ...Object.fromEntries(
      kind_names.flatMap((kind) => [
        [`${kind}_over_uws`, ratioOf(`${kind}_service`, `${kind}_uws`)],
        [`${kind}_over_fastify`, ratioOf(`${kind}_service`, `${kind}_fastify`)],
      ]),
    ),
    stale_p99_ms: figureOf('staleness', 'stale_p99_ms'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { staleness, readsOf } = await makeSubjects(bed);
    return { stages: [() => [staleness], ...kind_names.map((kind) => () => readsOf(kind))] };
  }),
};
