import type { Sample, Summaries } from '../frame/bench.js';
import {
  type FanoutCost,
  type Layout,
  type ReadCost,
  simulateFanout,
  simulateReads,
  simulateWrites,
  type WriteCost,
} from './model.js';

/** Service times out of what was measured with one and two api processes. */

/** The machine of the bench: everything, and the load generator, on the same cores. */
export const sharedLayout = (cores: number, api_processes: number): Layout => ({
  nodes: [{ cores, api_processes }],
  postgres_cores: null,
});

/** Milliseconds of CPU for one operation, by where they were spent. */
const costOf = (sample: Sample | undefined, name: string, per = 1): number =>
  (1_000 * (sample?.[`${name}_cores`] ?? Number.NaN) * per) /
  (sample?.['per_second'] ?? Number.NaN);

/** Sockets of the bench of fan-out. */
const subscribers = 2_000;

const mean = (a: number, b: number): number => (a + b) / 2;

const short = { seconds: 6 };

/** The value between two at which a falling function is nought, near enough. */
const solve = (low: number, high: number, falling: (value: number) => number): number => {
  for (let step = 0; step < 9; step += 1) {
    const middle = mean(low, high);
    if (falling(middle) > 0) low = middle;
    else high = middle;
  }
  return mean(low, high);
};

/** Every time of a cost as many times as long. */
const scale = <T extends object>(cost: T, factor: number): T =>
  Object.fromEntries(
    Object.entries(cost).map(([name, ms]) => [name, name === 'commit_wait' ? ms : ms * factor]),
  ) as T;

/** Interrupts, switches and what a host takes away: so much longer than CPU in `/proc`, at most. */
const most_overhead = 1.6;

/** The overhead at which two processes come out as measured. */
const withOverhead = <T extends object>(cost: T, measured: number, simulate: (cost: T) => number) =>
  scale(
    cost,
    solve(1, most_overhead, (factor) => simulate(scale(cost, factor)) - measured),
  );

/**
 * What belongs to an operation and what to its transaction, out of two sizes of a batch; the latter
 * is at most half of the first figure: two measurements say no more than that.
 */
const separate = (
  [first, second]: readonly [number, number],
  [batch_1, batch_2]: readonly [number, number],
) => {
  const apart = 1 / batch_2 - 1 / batch_1;
  const wanted = apart > 0.001 ? (second - first) / apart : 0;
  const transaction = Math.min(Math.max(0, wanted), 0.5 * first * batch_1);
  const each = mean(first - transaction / batch_1, second - transaction / batch_2);
  return { transaction, each: Math.max(0.01, each) };
};

/** What was measured of one kind of write. */
export interface MeasuredWrites {
  /** One process, with few and with many calls in flight. */
  readonly few: Sample | undefined;
  readonly many: Sample | undefined;
  /** Two processes with few. */
  readonly two: Sample | undefined;
}

export const in_flight = { few: 64, many: 256 } as const;

/**
 * What a write costs. With more in flight batches are larger, which tells the CPU of a transaction
 * from that of an operation. Of two processes one owns all questions and half of the calls are
 * handed over to it: what the other one needs, and what both need more than one alone, tells what
 * is done where a call comes in from what the owner does. Two unknowns are left, which the two rates
 * say: the wait for the disk, in which nothing computes, is so long that one process comes out as
 * measured, and the overhead is so large that two do.
 */
export const calibrateWrites = (
  { few, many, two }: MeasuredWrites,
  { cores, event }: { readonly cores: number; readonly event: number },
): WriteCost => {
  const both = (name: string): number => mean(costOf(few, name), costOf(two, name));
  const [rate_1, rate_2] = [few?.['per_second'] ?? Number.NaN, two?.['per_second'] ?? Number.NaN];
  const [api_1, api_2] = [costOf(few, 'api'), costOf(two, 'api')];
  const other = api_2 - costOf(two, 'owner');
  const followed = Math.min(event, 0.8 * other);
  const handed = Math.max(0, api_2 - api_1 - followed);
  const front = Math.max(0.01, 2 * (other - followed) - handed);
  const owner = Math.max(0.01, api_1 - followed - front);
  let cost: WriteCost = {
    front,
    owner,
    handed,
    event: followed,
    owner_transaction: 0,
    postgres: costOf(few, 'postgres'),
    transaction: 0,
    commit_wait: 1,
    relay: both('relay'),
    redis: both('redis'),
    signer: both('rest'),
    client: both('client'),
  };
  const simulate = (count: number, of: WriteCost, size: keyof typeof in_flight = 'few') =>
    simulateWrites(sharedLayout(cores, count), of, { in_flight: in_flight[size], ...short });
  let fitted = cost;
  for (let n = 0; n < 3; n += 1) {
    const waiting = (of: WriteCost): WriteCost => {
      const withWait = (commit_wait: number) => ({ ...of, commit_wait });
      const wait = solve(0, 40, (ms) => simulate(1, withWait(ms)).per_second - rate_1);
      return withWait(wait);
    };
    const factor = solve(
      1,
      most_overhead,
      (factor) => simulate(2, waiting(scale(cost, factor))).per_second - rate_2,
    );
    fitted = waiting(scale(cost, factor));
    const batches = [simulate(1, fitted, 'many').batch, simulate(1, fitted).batch] as const;
    const stored = separate([costOf(many, 'postgres'), costOf(few, 'postgres')], batches);
    const elsewhere = followed + front;
    const judged = separate(
      [costOf(many, 'api') - elsewhere, costOf(few, 'api') - elsewhere],
      batches,
    );
    cost = {
      ...cost,
      transaction: stored.transaction,
      postgres: stored.each,
      owner: judged.each,
      owner_transaction: judged.transaction,
    };
  }
  return fitted;
};

/** What a read costs with one process and with more, whose caches are colder. */
const calibrateReads = (cores: number, one?: Sample, two?: Sample) => {
  const [api_1, api_2] = [costOf(one, 'api'), costOf(two, 'api')];
  const client = mean(costOf(one, 'client'), costOf(two, 'client'));
  const colder = Math.max(0, api_2 - api_1);
  const measured = two?.['per_second'] ?? Number.NaN;
  const simulate = (cost: ReadCost) =>
    simulateReads(sharedLayout(cores, 2), cost, { in_flight: 64 });
  const fitted = withOverhead({ api: api_2, client }, measured, simulate);
  const overhead = fitted.client / client;
  // With three they are as cold as they get: each has a third.
  return { ...fitted, api: (api_2 + colder) * overhead };
};

/** What one event costs an api process, whatever its sockets: a second process adds it. */
const eventCost = (one?: Sample, two?: Sample): number =>
  Math.max(0, costOf(two, 'api', subscribers) - costOf(one, 'api', subscribers));

const calibrateFanout = (cores: number, one?: Sample, two?: Sample): FanoutCost => {
  const api_1 = costOf(one, 'api', subscribers);
  const event = eventCost(one, two);
  const names = ['relay', 'postgres', 'redis', 'rest'];
  const stores = names
    .map((name) => mean(costOf(one, name, subscribers), costOf(two, name, subscribers)))
    .reduce((sum, ms) => sum + ms);
  const client = mean(costOf(one, 'client'), costOf(two, 'client'));
  const cost = { frame: (api_1 - event) / subscribers, event, stores, client };
  const measured = mean(one?.['per_second'] ?? Number.NaN, two?.['per_second'] ?? Number.NaN);
  const simulate = (of: FanoutCost) =>
    subscribers * simulateFanout(sharedLayout(cores, 2), of, { sockets: subscribers });
  return withOverhead(cost, measured, simulate);
};

export interface DeliveryCost {
  readonly signer: number;
  readonly postgres: number;
}

export const write_loads = ['predict_hot', 'predict_wide', 'comment_wide'] as const;
export type WriteName = (typeof write_loads)[number];

/** All service times, and what three processes would do by them beside what they did. */
export const calibrate = (measured: Summaries, cores: number) => {
  const of = (name: string, count: number) => measured[`${name}_${count}`];
  const rate = (name: string) => of(name, 3)?.['per_second'] ?? Number.NaN;
  const three = sharedLayout(cores, 3);
  const fanouts = [of('fanout', 1), of('fanout', 2)] as const;
  const event = eventCost(...fanouts);
  const writes = Object.fromEntries(
    write_loads.map((name) => {
      const found = { few: of(name, 1), many: measured[`${name}_many`], two: of(name, 2) };
      return [name, calibrateWrites(found, { cores, event })];
    }),
  ) as Record<WriteName, WriteCost>;
  const read = calibrateReads(cores, of('read', 1), of('read', 2));
  const fanout = calibrateFanout(cores, ...fanouts);
  const simulated = {
    ...Object.fromEntries(
      write_loads.map((name) => [
        name,
        simulateWrites(three, writes[name], { in_flight: in_flight.few }).per_second,
      ]),
    ),
    read: simulateReads(three, read, { in_flight: 64 }),
    fanout: subscribers * simulateFanout(three, fanout, { sockets: subscribers }),
  };
  const checks = Object.entries(simulated).map(([name, per_second]) => ({
    name,
    simulated: per_second,
    measured: rate(name),
    ratio: per_second / rate(name),
  }));
  const delivery: DeliveryCost = {
    signer: costOf(measured['delivery'], 'rest'),
    postgres: costOf(measured['delivery'], 'postgres'),
  };
  return { cores, writes, read, fanout, delivery, checks };
};
export type Calibration = ReturnType<typeof calibrate>;
