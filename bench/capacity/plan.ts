import type { Calibration } from './calibrate.js';
import {
  type Layout,
  simulateFanout,
  simulateReads,
  simulateWrites,
  type WriteCost,
} from './model.js';

/** What so many nodes would do, by the service times of one machine. */

const node = { cores: 4, api_processes: 3 } as const;
/** Of Postgres; relay, Redis and signer have a core each. */
const postgres_cores = 8;
const in_flight_each = 128;
/** Sockets of a process in the figures of fan-out. */
const sockets_each = 5_000;

const node_counts = [1, 2, 4, 8, 16] as const;

/** What is busy all the time, so that more of the rest gives nothing. */
const boundOf = (busy: Readonly<Record<string, number>>): string =>
  Object.entries(busy).reduce((most, one) => (one[1] > most[1] ? one : most))[0];

const planOne = (calibration: Calibration, nodes: number) => {
  const { writes, read, fanout, delivery } = calibration;
  const layout: Layout = { nodes: Array.from({ length: nodes }, () => node), postgres_cores };
  const processes = nodes * node.api_processes;
  const most = (cost: WriteCost) => {
    const load = { in_flight: in_flight_each * processes, seconds: 4 };
    return simulateWrites(layout, { ...cost, client: 0 }, load);
  };
  const wide = most(writes.predict_wide);
  const hot = most(writes.predict_hot);
  const reads = { in_flight: 32 * processes, seconds: 0.5 };
  const sockets = sockets_each * processes;
  const events = simulateFanout(layout, { ...fanout, client: 0 }, { sockets, seconds: 4 });
  return {
    nodes,
    wide: wide.per_second,
    wide_bound: boundOf(wide.busy),
    hot: hot.per_second,
    hot_bound: boundOf(hot.busy),
    comments: most(writes.comment_wide).per_second,
    reads: simulateReads(layout, { ...read, client: 0 }, reads),
    frames: events * sockets,
    // A signer on each node, one thread each.
    deliveries: Math.min(
      (1_000 * nodes) / delivery.signer,
      (1_000 * postgres_cores) / delivery.postgres,
    ),
  };
};

export const makePlan = (calibration: Calibration) =>
  node_counts.map((nodes) => planOne(calibration, nodes));

export interface Results extends Calibration {
  readonly machine: string;
  readonly command: string;
  readonly plan: ReturnType<typeof makePlan>;
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const lines = [head, head.map((_, n) => (n === 0 ? '---' : '---:')), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
};

/** Two digits that count. */
const rounded = (value: number): string =>
  Number.isFinite(value) ? Number(value.toPrecision(2)).toLocaleString('en-US') : '–';
const ms = (value: number): string => (Number.isFinite(value) ? value.toFixed(3) : '–');

/** The tables of docs/capacity.md, by the names of their markers. */
export const renderTables = (results: Results): Readonly<Record<string, string>> => {
  const { writes, read, fanout, delivery, checks, plan } = results;
  const costs = Object.entries(writes).map(([name, cost]) => [
    name.replace('_', ', '),
    ...[cost.front, cost.owner, cost.handed, cost.event, cost.owner_transaction].map(ms),
    ...[cost.postgres, cost.transaction].map(ms),
    ...[cost.relay, cost.redis, cost.signer, cost.commit_wait].map(ms),
  ]);
  const [base] = plan;
  return {
    'capacity-machine': `${results.machine}, by \`${results.command}\`.\n`,
    'capacity-costs': table(
      [
        ...[
          'Operation',
          'api that is asked',
          'owner',
          'each, if handed over',
          'each api, the event',
        ],
        ...['owner, a transaction', 'Postgres', 'Postgres, a transaction'],
        ...['relay', 'Redis', 'signer', 'wait for the disk'],
      ],
      costs,
    ),
    'capacity-others': table(
      ['Operation', 'ms of CPU'],
      [
        ['A read, in the api process', ms(read.api)],
        ['A thousand frames of an event, in the api process', ms(1_000 * fanout.frame)],
        ['An event in each api process, whatever its sockets', ms(fanout.event)],
        ['An event in relay, Postgres, Redis and signer', ms(fanout.stores)],
        ['A signed delivery, in the signer', ms(delivery.signer)],
        ['A signed delivery, in Postgres', ms(delivery.postgres)],
      ],
    ),
    'capacity-checks': table(
      ['Load, three api processes', 'simulated ÷ measured'],
      checks.map(({ name, ratio }) => [name.replace('_', ', '), ratio.toFixed(2)]),
    ),
    'capacity-plan': table(
      [
        ...['Nodes', 'Predictions/s, many questions', 'breaks first', '× one node'],
        ...['Predictions/s, ten hot questions', 'breaks first', 'Comments/s', 'Reads/s'],
        ...['Frames/s', 'Deliveries/s'],
      ],
      plan.map((row) => [
        ...[String(row.nodes), rounded(row.wide), row.wide_bound],
        ...[(row.wide / base!.wide).toFixed(1), rounded(row.hot), row.hot_bound],
        ...[row.comments, row.reads, row.frames, row.deliveries].map(rounded),
      ]),
    ),
  };
};

/** Puts the tables between their markers; throws where a pair is missing. */
export const fillTables = (page: string, results: Results): string =>
  Object.entries(renderTables(results)).reduce((text, [name, content]) => {
    const [begin, end] = [`<!-- ${name}:begin -->\n`, `<!-- ${name}:end -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/capacity.md has no markers of ${name}.`);
    return text.slice(0, from + begin.length) + content + text.slice(to);
  }, page);
