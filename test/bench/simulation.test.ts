import { t } from 'tap';
import { simulateReads, simulateWrites } from '../../bench/capacity/model.js';
import { hold, makeResource, makeSimulation } from '../../bench/capacity/simulation.js';

/** The simulator against results of queueing theory, which it has to find by itself. */

interface Queue {
  readonly arrivals_per_ms: number;
  readonly servers: number;
  readonly service: 'exponential' | 'fixed';
}

/** The mean wait for a server whose service takes 1 ms on average, and how busy the servers are. */
const simulateQueue = ({ arrivals_per_ms, servers, service }: Queue, seed: number) => {
  const simulation = makeSimulation(seed);
  const resource = makeResource(simulation, servers);
  let [wait_ms, count] = [0, 0];
  const arrive = (): void => {
    simulation.after(simulation.exponential(1 / arrivals_per_ms), arrive);
    const came = simulation.now();
    const ms = service === 'fixed' ? 1 : simulation.exponential(1);
    const next = (): void => {
      wait_ms += simulation.now() - came - ms;
      count += 1;
    };
    hold(simulation, [resource], { ms, next });
  };
  arrive();
  simulation.run(300_000);
  return { wait: wait_ms / count, busy: resource.takeUtilisation(300_000) };
};

/** The mean wait of M/M/c with a service of 1 ms: Erlang's C over what is left of the servers. */
const erlangWait = (load: number, servers: number): number => {
  let [term, sum] = [1, 1];
  for (let n = 1; n < servers; n += 1) {
    term *= load / n;
    sum += term;
  }
  const full = ((term * load) / servers) * (servers / (servers - load));
  return full / (sum + full) / (servers - load);
};

const near = (found: number, wanted: number, share: number): boolean =>
  Math.abs(found / wanted - 1) < share;

t.test('waits are those of M/M/1, M/M/c and M/D/1', async (t) => {
  for (const [load, servers] of [
    ...[[0.5, 1] as const, [0.8, 1] as const],
    ...[[1.5, 2] as const, [6.4, 8] as const],
  ]) {
    const queue = { arrivals_per_ms: load, servers, service: 'exponential' } as const;
    const { wait, busy } = simulateQueue(queue, 7);
    const wanted = erlangWait(load, servers);
    t.ok(near(wait, wanted, 0.05), `${load} on ${servers}: ${wait} for ${wanted}`);
    t.ok(near(busy, load / servers, 0.02), `busy ${busy}`);
  }
  t.ok(near(erlangWait(0.8, 1), 4, 1e-9), 'ρ ÷ (1 − ρ)');
  for (const load of [0.5, 0.8]) {
    const { wait } = simulateQueue({ arrivals_per_ms: load, servers: 1, service: 'fixed' }, 7);
    const wanted = load / (2 * (1 - load));
    t.ok(near(wait, wanted, 0.05), `M/D/1 at ${load}: ${wait} for ${wanted}`);
  }
});

t.test('the same seed gives the same run, another one another', async (t) => {
  const queue = { arrivals_per_ms: 0.7, servers: 1, service: 'exponential' } as const;
  t.same(simulateQueue(queue, 3), simulateQueue(queue, 3));
  t.not(simulateQueue(queue, 3).wait, simulateQueue(queue, 4).wait);
});

const layoutOf = (api_processes: number, cores: number, postgres_cores: number | null = null) => ({
  nodes: [{ cores, api_processes }],
  postgres_cores,
});

t.test('a closed loop gives what mean value analysis says', async (t) => {
  // Two stations of exponential service, visited in turn: by Buzen, ρ = b ÷ a for services a > b.
  const [a, b, in_flight] = [1, 0.5, 4];
  const ratio = b / a;
  const sum = (n: number) => (1 - ratio ** (n + 1)) / (1 - ratio);
  const wanted = (1_000 / a) * (sum(in_flight - 1) / sum(in_flight));
  const simulation = makeSimulation(5);
  const stations = [a, b].map((ms) => ({ ms, resource: makeResource(simulation, 1) }));
  let done = 0;
  const visit = (n: number): void => {
    const { ms, resource } = stations[n]!;
    if (n === 1) done += 1;
    const next = (): void => visit(1 - n);
    hold(simulation, [resource], { ms: simulation.exponential(ms), next });
  };
  for (let n = 0; n < in_flight; n += 1) visit(0);
  simulation.run(200_000);
  t.ok(near(done / 200, wanted, 0.02), `${done / 200} for ${wanted} a second`);
});

const cheap = {
  front: 0.05,
  owner: 0.05,
  handed: 0,
  event: 0,
  owner_transaction: 0.1,
  postgres: 0.05,
  transaction: 1,
  commit_wait: 1,
};
const cost = { ...cheap, relay: 0.02, redis: 0.01, signer: 0.01, client: 0 };

t.test('the model knows its bounds', async (t) => {
  const reads = simulateReads(layoutOf(2, 8), { api: 0.1, client: 0 }, { in_flight: 64 });
  t.ok(near(reads, 20_000, 0.02), `two threads of 0.1 ms: ${reads}`);
  const shared = simulateReads(layoutOf(4, 2), { api: 0.1, client: 0.1 }, { in_flight: 64 });
  t.ok(near(shared, 10_000, 0.02), `four threads on two cores with their clients: ${shared}`);
  const load = { in_flight: 256 };
  const one = simulateWrites(layoutOf(1, 8, 8), cost, load);
  t.ok(one.per_second < 10_000 && one.per_second > 8_000, `bound by its thread: ${one.per_second}`);
  const four = simulateWrites(layoutOf(4, 8, 8), cost, load);
  t.ok(four.per_second > 1.3 * one.per_second, 'processes help, and one of them owns');
  t.ok((four.busy['owner'] ?? 0) > 0.9, 'which breaks first');
  const eight = simulateWrites(layoutOf(8, 8, 8), cost, load);
  t.ok(eight.per_second > 1.5 * four.per_second, 'of eight two own');
  const followed = simulateWrites(layoutOf(4, 8, 8), { ...cost, event: 0.1 }, load);
  t.ok(followed.per_second < 0.8 * four.per_second, 'an event costs every process');
  const slow = { ...cost, relay: 0.5 };
  const relayed = simulateWrites(layoutOf(4, 8, 8), slow, { ...load, seconds: 60 });
  t.ok(relayed.per_second < 2_200 && (relayed.busy['relay'] ?? 0) > 0.99, 'the relay breaks first');
});
