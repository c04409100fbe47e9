import { setTimeout as delay } from 'node:timers/promises';
import { block, makeLoad, runRound } from './env/load-rounds.js';
import { questionId } from './env/seed.js';
import { type Peer, startForum, startLoader, startPeer, type Target } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';
import { latenciesOf } from './load/load.js';
import { predictBody, predictPath } from './load/requests.js';
import type { ReadHandlers, Recorded } from './peers/reads.js';

/**
 * Hot reads per second, each kind compared with a bare uWebSockets.js handler that sends the same
 * bytes, and with Fastify in front of Redis. In the meantime 500 predictions per second are placed
 * on the same questions that are read. They continue during the peers' rounds, so that the machine
 * is equally busy. Every round has 64 questions of its own. A peer sends the bytes that the service
 * sent when the round started.
 */

const agents = 10_000;
const placed_per_second = 500;
const connections = 64;
/** Time before a round starts, in which the questions get some predictions and become hot. */
const lead_in_s = 1.5;
const probers = 8;
const max_per_second = 250_000;

const kinds: Readonly<Record<string, (ids: readonly string[]) => readonly string[]>> = {
  consensus: (ids) => ids.map((id) => `/api/questions/${id}/consensus`),
  question: (ids) => ids.map((id) => `/api/questions/${id}`),
  list: () => ['/api/questions?status=open', '/api/questions?sort=most_predicted&limit=10'],
  embed: (ids) => ids.map((id) => `/embed/${id}`),
};

/** Headers that are not recorded: each peer writes them itself, or they belong to one request. */
const not_recorded =
  /^(?:date|content-length|connection|keep-alive|uwebsockets|transfer-encoding)$/;

const record = async (port: number, path: string): Promise<Recorded> => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { 'accept-encoding': 'identity' },
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${path} was answered ${response.status}: ${body}`);
  const headers = [...response.headers].filter(([name]) => !not_recorded.test(name));
  return { path, headers, body };
};

const overPeer = (peer: string, floors: Readonly<Record<string, number>>): Bench['figures'] =>
  Object.fromEntries(
    Object.entries(floors).map(([kind, min]) => [
      `${kind}_over_${peer}`,
      { of: ratioOf(`${kind}_service`, `${kind}_${peer}`), min },
    ]),
  );

export const bench: Bench = {
  question: 'How many hot reads per second are served while 500 predictions per second are placed?',
  figures: {
    ...overPeer('uws', { consensus: 0.6, embed: 0.6 }),
    question_over_uws: { of: ratioOf('question_service', 'question_uws') },
    list_over_uws: { of: ratioOf('list_service', 'list_uws') },
    ...overPeer('fastify', { consensus: 4, question: 4, list: 4, embed: 4 }),
    stale_p99_ms: { of: figureOf('staleness', 'stale_p99_ms'), max: 100 },
  },
  async prepare(context) {
    // Blocks of questions: for twelve subjects (four kinds, three servers each), for the probe
    // rounds, and for the probes.
    const blocks = 12 * (context.rounds + 1) + 2 * context.rounds;
    const { setup, keys, keys_file, service } = await startForum(context, {
      agents,
      questions: block * blocks,
    });
    const runPlacing = makeLoad({ ...setup, loader: startLoader(context) }, service, {
      kind: 'predict',
      keys_file,
      agents,
      in_flight: 32,
    });
    let next_question = 0;
    /** Starts predictions on the next questions at a steady rate. */
    const startPlacing = (seconds: number) => {
      const ids = Array.from({ length: block }, () => questionId(next_question++));
      const placed = runPlacing({ seconds, rate: placed_per_second, subjects: ids });
      const done = placed.then(({ per_second, p99_ms }) => ({
        placed_per_second: per_second!,
        placed_p99_ms: p99_ms!,
      }));
      // Awaited at the end of the round. Until then, a rejection must not end the process.
      done.catch(() => undefined);
      return { done, ids };
    };

    const makeRead = (kind: string, target: Target, peer?: Peer<ReadHandlers>): Subject => {
      const run = async (seconds: number): Promise<Sample> => {
        const { done, ids } = startPlacing(seconds + lead_in_s + 1);
        const paths = kinds[kind]!(ids);
        const count = Math.ceil(seconds * max_per_second);
        const { sample } = await runRound(setup, {
          target,
          job: {
            requests: { kind: 'read', paths, count },
            in_flight: connections,
            seconds,
            wanted_status: 200,
          },
          async beforeGo() {
            await delay(lead_in_s * 1_000);
            if (peer === undefined) return;
            const recorded = await Promise.all(paths.map((path) => record(service.port, path)));
            await peer.call('learn', recorded);
            for (const { path, body } of recorded) {
              if ((await record(peer.port, path)).body !== body) throw new Error(`Wrong: ${path}`);
            }
          },
        });
        return { ...sample, ...(await done) };
      };
      const warmUp = () => run(context.quick ? 1 : 3);
      return { name: `${kind}_${target.name}`, warmUp, round: () => run(context.seconds) };
    };

    const base = `http://127.0.0.1:${service.port}`;
    const next_probe = { question: block * (blocks - context.rounds), text: 50_000_000 };
    /**
     * Measures how late a consensus is: from the 201 answer to a prediction until a consensus
     * counts it. Each prober predicts on its own question, and then reads once per millisecond.
     */
    const probe = async (): Promise<number[]> => {
      const question_id = questionId(next_probe.question++);
      const found_ms: number[] = [];
      const end_ms = performance.now() + context.seconds * 1_000;
      while (performance.now() < end_ms) {
        const k = next_probe.text++;
        const placed = await fetch(base + predictPath(question_id), {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-api-key': keys[k % keys.length]! },
          body: JSON.stringify(predictBody(k)),
        });
        const text = await placed.text();
        if (placed.status !== 201) throw new Error(`A probe got ${placed.status}: ${text}`);
        const at_ms = performance.now();
        for (;;) {
          const { body } = await record(service.port, `/api/questions/${question_id}/consensus`);
          if (JSON.parse(body).total_predictions > found_ms.length) break;
          if (performance.now() - at_ms > 10_000) throw new Error('A prediction was not counted.');
          await delay(1);
        }
        found_ms.push(performance.now() - at_ms);
      }
      return found_ms;
    };
    const staleness: Subject = {
      name: 'staleness',
      async round() {
        const { done } = startPlacing(context.seconds + lead_in_s);
        await delay(lead_in_s * 500);
        const found = (await Promise.all(Array.from({ length: probers }, probe))).flat();
        const { p50_ms: stale_p50_ms, p99_ms: stale_p99_ms } = latenciesOf(found);
        return { probes: found.length, stale_p50_ms, stale_p99_ms, ...(await done) };
      },
    };

    const start = (name: string) => startPeer<ReadHandlers>(setup, { name, module: 'reads' });
    const peers = [await start('uws'), await start('fastify')];
    const readsOf = (kind: string) => [
      makeRead(kind, service),
      ...peers.map((peer) => makeRead(kind, peer, peer)),
    ];
    return [() => [staleness], ...Object.keys(kinds).map((kind) => () => readsOf(kind))];
  },
};
