import {
  hold,
  makeResource,
  makeSimulation,
  type Resource,
  type Simulation,
} from './simulation.js';

/**
 * The service as queues: api processes, each one thread; a group commit in those that own
 * questions, one transaction at a time; cores that all processes of a machine share; Postgres; the
 * relay and Redis, one thread each.
 *
 *   client ─▶ its core ─▶ api thread + core ─▶ owner's thread + core ─▶ queue of the owner
 *                                                                            │ 128 at most
 *   api threads ◀─ Redis ◀─ relay ◀─────────────── client ◀─ transaction ◀───┘
 *
 * Times are milliseconds of CPU. A service time of one operation is exponential, that of a batch is
 * the sum of what it is made of.
 */

/** What one operation costs. */
export interface WriteCost {
  /** Of the api process that is asked. */
  readonly front: number;
  /** Of the owner of the question. */
  readonly owner: number;
  /** Of each of these two, where they are not the same process. */
  readonly handed: number;
  /** Of every api process, for the event. */
  readonly event: number;
  /** Of the owner for a transaction, whatever its size. */
  readonly owner_transaction: number;
  /** Of Postgres, for an operation and for a transaction. */
  readonly postgres: number;
  readonly transaction: number;
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
  /** Cores of Postgres; relay, Redis and signer then have one each. Null: all share those of a node. */
  readonly postgres_cores: number | null;
}

interface Outcome {
  readonly per_second: number;
  readonly batch: number;
  /** Share of the time that each is busy. */
  readonly busy: Readonly<Record<string, number>>;
}

const most_in_batch = 128;
/** `processes_an_owner` of src/redis/hand-over.ts. */
const processes_an_owner = 4;
/** With so many events waiting for a relay, writers are refused. */
const most_waiting = 5_000;

const makeMachines = (simulation: Simulation, { nodes, postgres_cores }: Layout) => {
  const make = (count: number) => makeResource(simulation, count);
  const shared = postgres_cores === null ? make(nodes[0]!.cores) : null;
  const pools = nodes.map(({ cores }) => shared ?? make(cores));
  const processes = nodes.flatMap(({ api_processes }, n) =>
    Array.from({ length: api_processes }, (_, index) => ({
      thread: make(1),
      cores: pools[n]!,
      owns: index < Math.ceil(api_processes / processes_an_owner),
    })),
  );
  return {
    shared,
    pools,
    processes,
    postgres: shared ?? make(postgres_cores ?? 1),
    relay: make(1),
    redis: make(1),
    signer: make(1),
  };
};

const on = (resources: readonly (Resource | null)[]): readonly Resource[] =>
  resources.filter((one) => one !== null);

/** As many writes as there can be, with so many in flight all the time. */
export const simulateWrites = (
  layout: Layout,
  cost: WriteCost,
  { in_flight, seconds = 20, seed = 3 }: { in_flight: number; seconds?: number; seed?: number },
): Outcome => {
  const simulation = makeSimulation(seed);
  const machines = makeMachines(simulation, layout);
  const { shared, processes, postgres, relay, redis, signer } = machines;
  const warm_ms = 2_000;
  const owners = processes.filter(({ owns }) => owns);
  let [done, batches, waiting] = [0, 0, 0];
  const queues = owners.map((): (() => void)[] => []);
  const is_busy = owners.map(() => false);

  /** After the commit; the relay is what may fall behind. */
  const follow = (count: number): void => {
    waiting += count;
    const steps = [
      { at: relay, ms: count * cost.relay },
      { at: redis, ms: count * cost.redis },
      { at: signer, ms: count * cost.signer },
    ];
    const go = (n: number): void => {
      const step = steps[n];
      if (step === undefined) end(count);
      else hold(simulation, on([step.at, shared]), { ms: step.ms, next: () => go(n + 1) });
    };
    go(0);
  };
  const end = (count: number): void => {
    waiting -= count;
    for (const { thread, cores } of processes) {
      hold(simulation, [thread, cores], { ms: count * cost.event, next: () => undefined });
    }
    for (const n of owners.keys()) pump(n);
  };

  const pump = (n: number): void => {
    const queue = queues[n]!;
    if (is_busy[n] || queue.length === 0 || waiting > most_waiting) return;
    is_busy[n] = true;
    const batch = queue.splice(0, most_in_batch);
    const ms = cost.transaction + batch.length * cost.postgres;
    const commit = (): void =>
      simulation.after(cost.commit_wait, () => {
        is_busy[n] = false;
        if (simulation.now() > warm_ms) [done, batches] = [done + batch.length, batches + 1];
        for (const answer of batch) answer();
        follow(batch.length);
        pump(n);
      });
    const write = (): void => hold(simulation, [postgres], { ms, next: commit });
    const { thread, cores } = owners[n]!;
    hold(simulation, [thread, cores], { ms: cost.owner_transaction, next: write });
  };

  const ask = (n: number): void => {
    const asked = processes[n]!;
    const to = Math.floor(simulation.random() * owners.length);
    const owner = owners[to]!;
    const handed = owner === asked ? 0 : cost.handed;
    const enqueue = (): void => {
      queues[to]!.push(() => ask(n));
      pump(to);
    };
    const judge = (): void => {
      const ms = simulation.exponential(cost.owner + handed);
      hold(simulation, [owner.thread, owner.cores], { ms, next: enqueue });
    };
    const arrive = (): void => {
      const ms = simulation.exponential(cost.front + handed);
      hold(simulation, [asked.thread, asked.cores], { ms, next: judge });
    };
    hold(simulation, on([shared]), { ms: simulation.exponential(cost.client), next: arrive });
  };
  for (let n = 0; n < in_flight; n += 1) ask(n % processes.length);
  simulation.run(warm_ms);
  const all = {
    owner: owners.map(({ thread }) => thread),
    'api cores': machines.pools,
    postgres: [postgres],
    api: processes.flatMap(({ owns, thread }) => (owns ? [] : thread)),
    relay: [relay],
    redis: [redis],
    signer: [signer],
  };
  for (const list of Object.values(all)) for (const one of list) one.takeUtilisation(1);
  simulation.run(warm_ms + seconds * 1_000);
  const busy = Object.entries(all).map(([name, list]) => {
    const shares = list.map((one) => one.takeUtilisation(seconds * 1_000));
    return [name, Math.max(0, ...shares)] as const;
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
  const { shared, processes, relay } = makeMachines(simulation, layout);
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
    hold(simulation, on([relay, shared]), { ms, next: spread });
  };
  for (let n = 0; n < window; n += 1) publish();
  simulation.run(seconds * 1_000);
  return done / seconds;
};
