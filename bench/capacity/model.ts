import {
  hold,
  makeResource,
  makeSimulation,
  type Resource,
  type Simulation,
} from './simulation.js';

/**
 * The service as queues: api processes, each one thread; a group commit in each of them, one
 * transaction at a time; cores that all processes of a machine share; Postgres, whose transactions
 * on hot questions wait for each other; the relay and Redis, one thread each.
 *
 *   client ─▶ its core ─▶ api thread + core ─▶ queue of the process ─▶ transaction ─▶ client
 *                                               (all that waits, 128 at most)  └▶ relay ─▶ Redis
 *
 * Times are milliseconds of CPU. A service time of one operation is exponential, that of a batch is
 * the sum of what it is made of.
 */

/** What one operation costs. */
export interface WriteCost {
  /** Of the api process, and as much again for each further process where all read all rows. */
  readonly api: number;
  readonly api_others: number;
  /** Of the api process for a transaction, whatever its size. */
  readonly api_transaction: number;
  /** Of Postgres, for an operation and for a transaction. */
  readonly postgres: number;
  readonly transaction: number;
  /** Of Postgres as `api_others`. */
  readonly postgres_others: number;
  /** From the end of that until the commit is on the disk; no CPU. */
  readonly commit_wait: number;
  readonly relay: number;
  readonly redis: number;
  /** Of the signer, which looks at every event. */
  readonly signer: number;
  /** Of the client, where that has the same cores. */
  readonly client: number;
}

export interface Machine {
  readonly cores: number;
  readonly api_processes: number;
}

export interface Layout {
  /** Machines with api processes. */
  readonly nodes: readonly Machine[];
  readonly shards: number;
  /** Cores of the Postgres of a shard, and where relay and Redis have one each; null: all share. */
  readonly postgres_cores: number | null;
}

export interface WriteLoad {
  readonly in_flight: number;
  /** Transactions of different processes lock the same questions. */
  readonly is_hot: boolean;
}

interface Outcome {
  readonly per_second: number;
  readonly batch: number;
  /** Share of the time that each is busy. */
  readonly busy: Readonly<Record<string, number>>;
}

const most_in_batch = 128;
/** With so many events waiting for a relay, writers are refused. */
const most_waiting = 5_000;

const makeMachines = (simulation: Simulation, { nodes, shards, postgres_cores }: Layout) => {
  const make = (count: number) => makeResource(simulation, count);
  const shared = postgres_cores === null ? make(nodes[0]!.cores) : null;
  const pools = nodes.map(({ cores }) => shared ?? make(cores));
  const processes = nodes.flatMap(({ api_processes }, n) =>
    Array.from({ length: api_processes }, () => ({ thread: make(1), cores: pools[n]! })),
  );
  const each = <T>(makeOne: () => T): readonly T[] => Array.from({ length: shards }, makeOne);
  return {
    shared,
    pools,
    processes,
    postgres: each(() => shared ?? make(postgres_cores ?? 1)),
    locks: each(() => make(1)),
    relays: each(() => make(1)),
    redis: each(() => make(1)),
    signers: each(() => make(1)),
  };
};

const on = (resources: readonly (Resource | null)[]): readonly Resource[] =>
  resources.filter((one) => one !== null);

/** As many writes as there can be, with so many in flight all the time. */
export const simulateWrites = (
  layout: Layout,
  cost: WriteCost,
  { in_flight, is_hot, seconds = 20, seed = 1 }: WriteLoad & { seconds?: number; seed?: number },
): Outcome => {
  const simulation = makeSimulation(seed);
  const machines = makeMachines(simulation, layout);
  const { shared, processes, postgres, locks, relays, redis, signers } = machines;
  const warm_ms = 2_000;
  const others = processes.length - 1;
  const api_ms = cost.api + cost.api_others * others;
  const postgres_ms = cost.postgres + cost.postgres_others * others;
  let [done, batches] = [0, 0];
  const waiting = relays.map(() => 0);
  const queues = processes.map(() => relays.map((): (() => void)[] => []));
  const is_busy = processes.map(() => relays.map(() => false));

  /** After the commit; the relay is what may fall behind. */
  const follow = (shard: number, count: number): void => {
    waiting[shard]! += count;
    const steps = [
      { at: relays[shard]!, ms: count * cost.relay },
      { at: redis[shard]!, ms: count * cost.redis },
      { at: signers[shard]!, ms: count * cost.signer },
    ];
    const go = (n: number): void => {
      const step = steps[n];
      if (step === undefined) end(shard, count);
      else hold(simulation, on([step.at, shared]), { ms: step.ms, next: () => go(n + 1) });
    };
    go(0);
  };
  const end = (shard: number, count: number): void => {
    waiting[shard]! -= count;
    for (const n of processes.keys()) pump(n, shard);
  };

  const pump = (n: number, shard: number): void => {
    const queue = queues[n]![shard]!;
    if (is_busy[n]![shard] || queue.length === 0 || waiting[shard]! > most_waiting) return;
    is_busy[n]![shard] = true;
    const transact = (): void => {
      // What came while the locks were waited for goes with it.
      const batch = queue.splice(0, most_in_batch);
      const ms = cost.transaction + batch.length * postgres_ms;
      const commit = (): void =>
        simulation.after(cost.commit_wait, () => {
          if (is_hot) locks[shard]!.release();
          is_busy[n]![shard] = false;
          if (simulation.now() > warm_ms) [done, batches] = [done + batch.length, batches + 1];
          for (const answer of batch) answer();
          follow(shard, batch.length);
          pump(n, shard);
        });
      const write = (): void => hold(simulation, [postgres[shard]!], { ms, next: commit });
      const { thread, cores } = processes[n]!;
      hold(simulation, [thread, cores], { ms: cost.api_transaction, next: write });
    };
    if (is_hot) locks[shard]!.acquire(transact);
    else transact();
  };

  const ask = (n: number): void => {
    const { thread, cores } = processes[n]!;
    const shard = Math.floor(simulation.random() * relays.length);
    const arrive = (): void => {
      const enqueue = (): void => {
        queues[n]![shard]!.push(() => ask(n));
        pump(n, shard);
      };
      hold(simulation, [thread, cores], { ms: simulation.exponential(api_ms), next: enqueue });
    };
    hold(simulation, on([shared]), { ms: simulation.exponential(cost.client), next: arrive });
  };
  for (let n = 0; n < in_flight; n += 1) ask(n % processes.length);
  simulation.run(warm_ms);
  const all = {
    ...{ api: processes.map(({ thread }) => thread), 'api cores': machines.pools, postgres },
    ...{ 'question locks': locks, relay: relays, redis, signer: signers },
  };
  for (const list of Object.values(all)) for (const one of list) one.takeUtilisation(1);
  simulation.run(warm_ms + seconds * 1_000);
  const busy = Object.entries(all).map(([name, list]) => {
    const shares = list.map((one) => one.takeUtilisation(seconds * 1_000));
    return [name, Math.max(...shares)] as const;
  });
  return { per_second: done / seconds, batch: done / batches, busy: Object.fromEntries(busy) };
};

export interface ReadCost {
  readonly api: number;
  readonly client: number;
}

/** As many operations as there can be that concern api processes alone. */
export const simulateReads = (
  layout: Layout,
  cost: ReadCost,
  { in_flight, seconds = 3, seed = 1 }: { in_flight: number; seconds?: number; seed?: number },
): number => {
  const simulation = makeSimulation(seed);
  const { shared, processes } = makeMachines(simulation, layout);
  let done = 0;
  const ask = (n: number): void => {
    const { thread, cores } = processes[n]!;
    const answer = (): void => {
      done += 1;
      ask(n);
    };
    const next = (): void =>
      hold(simulation, [thread, cores], { ms: simulation.exponential(cost.api), next: answer });
    hold(simulation, on([shared]), { ms: simulation.exponential(cost.client), next });
  };
  for (let n = 0; n < in_flight; n += 1) ask(n % processes.length);
  simulation.run(seconds * 1_000);
  return done / seconds;
};

export interface FanoutCost {
  /** Of an api process: for a frame, and for an event whatever its sockets. */
  readonly frame: number;
  readonly event: number;
  /** Of relay, Postgres and Redis together, for an event. */
  readonly stores: number;
  /** Of the reader of a frame, where that has the same cores. */
  readonly client: number;
}

/** Events a second that reach all of so many sockets, spread over all processes. */
export const simulateFanout = (
  layout: Layout,
  cost: FanoutCost,
  { sockets, seconds = 10, seed = 1 }: { sockets: number; seconds?: number; seed?: number },
): number => {
  const simulation = makeSimulation(seed);
  const { shared, processes, relays } = makeMachines(simulation, layout);
  const share = sockets / processes.length;
  const window = 512;
  let done = 0;
  const publish = (): void => {
    let left = processes.length;
    const arrive = (): void => {
      left -= 1;
      if (left > 0) return;
      done += 1;
      publish();
    };
    const spread = (): void => {
      for (const { thread, cores } of processes) {
        const ms = simulation.exponential(cost.event + share * cost.frame);
        const next = (): void =>
          hold(simulation, on([shared]), { ms: share * cost.client, next: arrive });
        hold(simulation, [thread, cores], { ms, next });
      }
    };
    const ms = simulation.exponential(cost.stores);
    hold(simulation, on([relays[0]!, shared]), { ms, next: spread });
  };
  for (let n = 0; n < window; n += 1) publish();
  simulation.run(seconds * 1_000);
  return done / seconds;
};
