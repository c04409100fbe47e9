import { type Static, Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, replyRaw, routeFor } from '../../http/route.js';
import { nullable, textEnum, time_schema } from '../../http/schemas.js';
import { isFault } from '../../kit/fault.js';
import { groupBy } from '../../kit/group-by.js';
import { makePause } from '../../kit/loop.js';
import type { SvgTheme } from '../../kit/svg.js';
import * as chart from '../../kit/svg-chart.js';
import { brier_convention } from '../points/score-rules.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import { type Calibration, calibrate } from './calibration-rules.js';
import { csvLine } from './columns.js';
import { readSelected } from './copy-store.js';
import { pseudonymOf, readAgents } from './pseudonym-store.js';
import { filter_properties } from './schema.js';
import { type CalibrationCell, selectCalibration } from './select-store.js';
import { refuseAhead } from './snapshot-store.js';

type Parts = Deps & TaxonomyParts;

const route = routeFor<Parts>();

const { snapshot: _, ...filters } = filter_properties;
const by_schema = textEnum(['all', 'family', 'category', 'agent']);
const event_schema = textEnum(['taken', 'yes']);

const calibration_query = Type.Object({
  ...filters,
  by: Type.Optional(by_schema),
  event: Type.Optional(event_schema),
  bins: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  min_n: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  names: Type.Optional(Type.Boolean()),
});
type Query = Static<typeof calibration_query>;

const bin_schema = Type.Object({
  from: Type.Number(),
  to: Type.Number(),
  n: Type.Integer(),
  mean_forecast: nullable(Type.Number()),
  frequency: nullable(Type.Number()),
  low: nullable(Type.Number()),
  high: nullable(Type.Number()),
});

const group_schema = Type.Object({
  key: Type.String(),
  name: nullable(Type.String()),
  n: Type.Integer(),
  brier: Type.Number(),
  log_score: Type.Number(),
  ece: Type.Number(),
  reliability: Type.Number(),
  resolution: Type.Number(),
  uncertainty: Type.Number(),
  bins: Type.Array(bin_schema),
});

const answer_schema = Type.Object({
  schema: Type.String(),
  as_of: time_schema,
  by: by_schema,
  event: event_schema,
  brier_convention: Type.String(),
  log_score_convention: Type.String(),
  decomposition: Type.String(),
  interval: Type.String(),
  total_groups: Type.Integer(),
  groups: Type.Array(group_schema),
});

const conventions = {
  brier_convention,
  log_score_convention:
    'mean ln of the probability given to the outcome, limited to 0.0001–0.9999; 0 is best',
  decomposition: 'brier = reliability - resolution + uncertainty, except for spread in a bin',
  interval: 'Wilson, 95 %',
};

interface Group extends Calibration {
  readonly key: string;
  readonly name: string | null;
}

const max_groups = 1_000;
/** Number of groups, with 100 bins each, to compute in one turn of the event loop. */
const groups_a_turn = 50;
/**
 * Minimum number of forecasts in the group of an agent. Fewer would say little, and could reveal
 * which agent it is.
 */
const min_of_agent = 10;
const default_bins = 10;

/**
 * Returns the groups, the ones with the most forecasts first; a fault if a filter is unknown or
 * `as_of` is in the future.
 */
const readGroups = async (deps: Parts, query: Query) => {
  const now = deps.clock();
  const refused = (await deps.taxonomy.checkQuery(query)) ?? refuseAhead(query.as_of, now);
  if (refused !== null) return refused;
  const { by = 'all', event = 'taken', bins = default_bins, names = false } = query;
  const least = query.min_n ?? (by === 'agent' ? min_of_agent : 1);
  const as_of = new Date(query.as_of ?? now).toISOString();
  const scope = { ...query, as_of, names, hides_open: false };
  const cells = await readSelected<CalibrationCell>(
    deps.reads,
    selectCalibration(scope, { by, event }),
  );
  const found: (Calibration & { readonly key: string })[] = [];
  const pause = makePause(groups_a_turn);
  for (const [key, mine] of groupBy(cells, ({ key }) => key)) {
    const made = calibrate(mine, bins);
    if (made !== null && made.n >= least) found.push({ key, ...made });
    await pause();
  }
  found.sort((a, b) => b.n - a.n || (a.key < b.key ? -1 : 1));
  const shown = found.slice(0, max_groups);
  const ids = by === 'agent' ? shown.map(({ key }) => key) : [];
  const agents = ids.length === 0 ? null : await readAgents(deps, ids);
  const groups = shown.map(({ key, ...made }): Group => {
    const agent = agents?.get(key);
    const pseudonym = agent?.pseudonym ?? pseudonymOf(deps.config, key);
    const is_id = agents === null || names;
    return { key: is_id ? key : pseudonym, name: (names ? agent?.name : null) ?? null, ...made };
  });
  return { as_of, by, event, total_groups: found.length, groups };
};

export const calibration_columns = [
  'key',
  'name',
  'group_n',
  'brier',
  'log_score',
  'ece',
  'reliability',
  'resolution',
  'uncertainty',
  'bin_from',
  'bin_to',
  'n',
  'mean_forecast',
  'frequency',
  'low',
  'high',
].map((name) => ({ name, type: 'text', is_free: name === 'name' }) as const);

const writeCsv = (groups: readonly Group[]): string => {
  const lines = groups.flatMap(({ bins, n: group_n, ...group }) =>
    bins.map(({ n, from, to, ...bin }) =>
      csvLine(calibration_columns, { ...group, group_n, bin_from: from, bin_to: to, n, ...bin }),
    ),
  );
  return `${calibration_columns.map(({ name }) => name).join(',')}\r\n${lines.join('')}`;
};

/** More curves than this are hard to distinguish. */
const max_drawn = 4;

const percent = (share: number | null): number => Math.round((share ?? 0) * 1e4) / 100;

/** The area of a dot grows with its bin's share of the forecasts. */
const radiusOf = (n: number, total: number): number => 3 + 9 * Math.sqrt(n / total);

const drawGroup = (plot: chart.Plot, { bins, n: total }: Calibration, series: number) => {
  const seen = bins
    .filter(({ n }) => n > 0)
    .map(({ n, mean_forecast, frequency, low, high }) => ({
      n,
      x: percent(mean_forecast),
      y: percent(frequency),
      low: percent(low),
      high: percent(high),
    }));
  return [
    chart.drawLine(plot, seen, { series, width: 1.5 }),
    ...seen.map((bin) => chart.drawErrorBar(plot, bin, series)),
    ...seen.map((bin) => {
      const label = `predicted ${bin.x} %, observed ${bin.y} %, n = ${bin.n}`;
      return chart.drawDot(plot, bin, { series, radius: radiusOf(bin.n, total), label });
    }),
  ];
};

const none = 'No prediction has been resolved.';

interface Diagram {
  readonly groups: readonly { readonly label: string; readonly calibration: Calibration }[];
  readonly event: 'taken' | 'yes';
  readonly as_of: string;
  readonly theme: SvgTheme;
}

/** Draws the reliability diagram: how often the events with each stated probability happened. */
const drawDiagram = ({ groups, event, as_of, theme }: Diagram): string => {
  const shown = groups.slice(0, max_drawn);
  const desc = shown.map(
    ({ label, calibration: { n, brier, ece } }) =>
      `${label}: ${n} forecasts, Brier score ${brier.toFixed(3)}, ECE ${ece.toFixed(3)}.`,
  );
  const what = event === 'yes' ? 'chance of YES' : 'confidence in the chosen side';
  const ends = [0, 100].map((at) => ({ x: at, y: at }));
  return chart.drawChart({
    title: 'Calibration',
    subtitle: shown.length === 0 ? none : `Predicted ${what} and observed frequency`,
    desc: shown.length === 0 ? none : desc.join(' '),
    legend: [
      { label: 'perfect', series: shown.length, kind: 'dashed' },
      ...shown.map(({ label, calibration: { ece } }, series) => ({
        label: `${label} (ECE ${ece.toFixed(3)})`,
        series,
        kind: 'dot' as const,
      })),
    ],
    source: `Bars: 95 % Wilson interval. Dot size: share of forecasts. As of ${as_of}`,
    x: chart.percentAxis(5, { label: `Mean ${what}` }),
    y: chart.percentAxis(5, { label: 'Observed frequency' }),
    width: 640,
    height: 620,
    theme,
    draw: (plot) => [
      chart.drawLine(plot, ends, { series: shown.length, kind: 'dashed', width: 1.5 }),
      ...(shown.length === 0 ? [chart.drawNote(plot, none)] : []),
      ...shown.flatMap(({ calibration }, series) => drawGroup(plot, calibration, series)),
    ],
  });
};

const common = {
  method: 'GET',
  tag: 'exports',
  auth: 'public',
  limits: ['exports'],
  faults: [taxonomy_faults.INVALID_CATEGORY, taxonomy_faults.INVALID_SUBCATEGORY],
  longest_ms: 90_000,
} as const;

const private_headers = { 'Cache-Control': 'no-store' };

const exportCalibration = route({
  ...common,
  id: 'exportCalibration',
  path: '/api/export/calibration',
  summary: 'Calibration curves with Brier score, ECE, log score and Murphy decomposition',
  query: Type.Object({
    ...calibration_query.properties,
    format: Type.Optional(textEnum(['json', 'csv'])),
  }),
  returns: { 200: answer_schema },
  also_produces: ['text/csv'],
  handle: async ({ query }, deps) => {
    const read = await readGroups(deps, query);
    if (isFault(read)) return read;
    if (query.format !== 'csv') {
      const schema = 'prediction-forum/calibration/1';
      return reply(200, { schema, ...conventions, ...read }, private_headers);
    }
    return replyRaw('text/csv; charset=utf-8; header=present', writeCsv(read.groups), {
      ...private_headers,
      'Content-Disposition': 'attachment; filename="calibration.csv"',
    });
  },
});

const exportDiagram = route({
  ...common,
  id: 'exportCalibrationDiagram',
  path: '/api/export/calibration.svg',
  summary: 'The same calibration as a reliability diagram',
  query: Type.Object({
    ...calibration_query.properties,
    theme: Type.Optional(textEnum(['light', 'dark', 'auto'])),
  }),
  returns: { 200: Type.String() },
  produces: 'image/svg+xml',
  handle: async ({ query }, deps) => {
    const read = await readGroups(deps, query);
    if (isFault(read)) return read;
    const { event, as_of, by } = read;
    const groups = read.groups.map(({ key, name, ...calibration }) => ({
      label: name ?? (by === 'agent' ? key.slice(0, 8) : key),
      calibration,
    }));
    const { theme = 'auto' } = query;
    return replyRaw('image/svg+xml', drawDiagram({ groups, event, as_of, theme }), {
      ...private_headers,
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
    });
  },
});

export const calibration_routes = [exportCalibration, exportDiagram];
