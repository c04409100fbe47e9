import { type Static, Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { nullable, textEnum, time_schema } from '../../kit/http/openapi.js';
import { type Reply, reply, replyRaw, routeFor } from '../../kit/http/route.js';
import { brier_convention } from '../scores/index.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import { type Calibration, calibrate } from './calibration-rules.js';
import { type Cell, group_kinds, readCells } from './calibration-store.js';
import { type Column, calibration_columns, calibration_schema } from './columns.js';
import { drawDiagram, most_drawn } from './diagram.js';
import { toLine } from './formats.js';
import { pseudonymOf, readAgents } from './pseudonym-store.js';
import { filter_properties } from './schema.js';

type Parts = Deps & TaxonomyParts;

const route = routeFor<Parts>();

const { snapshot: _, ...filters } = filter_properties;

const calibration_query = Type.Object({
  ...filters,
  by: Type.Optional(textEnum(group_kinds)),
  event: Type.Optional(textEnum(['taken', 'yes'])),
  bins: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  min_n: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  names: Type.Optional(Type.Boolean()),
});

const calibration_file_query = Type.Object({
  ...calibration_query.properties,
  format: Type.Optional(textEnum(['json', 'csv'])),
});

const diagram_query = Type.Object({
  ...calibration_query.properties,
  theme: Type.Optional(textEnum(['light', 'dark', 'auto'])),
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
  mce: Type.Number(),
  reliability: Type.Number(),
  resolution: Type.Number(),
  uncertainty: Type.Number(),
  within_bins: Type.Number(),
  bins: Type.Array(bin_schema),
});

const answer_schema = Type.Object({
  schema: Type.String(),
  as_of: time_schema,
  by: textEnum(group_kinds),
  event: textEnum(['taken', 'yes']),
  brier_convention: Type.String(),
  log_score_convention: Type.String(),
  decomposition: Type.String(),
  interval: Type.String(),
  total_groups: Type.Integer(),
  groups: Type.Array(group_schema),
});

const log_score_convention =
  'mean ln of the probability put on what happened, kept within 0.005 and 0.995; 0 best';
const decomposition = 'brier = reliability - resolution + uncertainty + within_bins';
const interval = 'Wilson, 95 %';

interface Group extends Calibration {
  readonly key: string;
  readonly name: string | null;
}

const most_groups = 1_000;
/** Fewer forecasts of an agent tell nothing, and would tell who it is. */
const least_of_agent = 10;
const default_bins = 10;

const readGroups = async (
  deps: Deps,
  query: Query,
  as_of: string,
): Promise<{ groups: readonly Group[]; total: number }> => {
  const by = query.by ?? 'all';
  const cells = await readCells(deps.sql, { ...query, by, event: query.event ?? 'taken', as_of });
  const of_key = new Map<string, Cell[]>();
  for (const cell of cells) of_key.set(cell.key, [...(of_key.get(cell.key) ?? []), cell]);
  const least = query.min_n ?? (by === 'agent' ? least_of_agent : 1);
  const found = [...of_key].flatMap(([key, mine]) => {
    const made = calibrate(mine, query.bins ?? default_bins);
    return made === null || made.n < least ? [] : [{ key, made }];
  });
  found.sort((a, b) => b.made.n - a.made.n || (a.key < b.key ? -1 : 1));
  const shown = found.slice(0, most_groups);
  const agents = by === 'agent' ? await readAgents(deps, shown) : null;
  const groups = shown.map(({ key, made }) => {
    const agent = agents?.get(key);
    const is_named = query.names === true;
    const unnamed = agent?.pseudonym ?? pseudonymOf(deps.config, key);
    return {
      key: agents === null || is_named ? key : unnamed,
      name: (is_named ? agent?.name : null) ?? null,
      ...made,
    };
  });
  return { groups, total: found.length };
};

/** The time that a calibration is of; a Fault when it has not come yet, or a filter is unknown. */
const readAsOf = async ({ clock, taxonomy }: Parts, query: Query): Promise<string | Fault> => {
  const unknown = await taxonomy.checkQuery(query);
  if (unknown !== null) return unknown;
  const now = clock();
  if (query.as_of === undefined) return now.toISOString();
  const as_of = new Date(query.as_of);
  if (as_of <= now) return as_of.toISOString();
  const fields = [{ path: 'query.as_of', message: 'Must not lie in the future.' }];
  return refuse(common_faults.INVALID_REQUEST, { fields });
};

const writeCsv = (groups: readonly Group[], columns: readonly Column[]): string => {
  const lines = [columns.map(({ name }) => name).join(',')];
  for (const { bins, n: group_n, ...group } of groups) {
    for (const { n, from, to, ...bin } of bins) {
      const row = { ...group, group_n, bin_from: from, bin_to: to, n, ...bin };
      lines.push(toLine('csv', columns, row));
    }
  }
  return lines.map((line) => `${line}\r\n`).join('');
};

const private_headers = { 'Cache-Control': 'no-store' };

const answer = async (
  deps: Parts,
  query: Static<typeof calibration_file_query>,
): Promise<Reply | Fault> => {
  const as_of = await readAsOf(deps, query);
  if (isFault(as_of)) return as_of;
  const { groups, total } = await readGroups(deps, query, as_of);
  if (query.format === 'csv') {
    const text = writeCsv(groups, calibration_columns);
    return replyRaw('text/csv; charset=utf-8; header=present', text, {
      ...private_headers,
      'Content-Disposition': 'attachment; filename="calibration.csv"',
    });
  }
  const { by = 'all', event = 'taken' } = query;
  const head = { schema: calibration_schema, as_of, by, event };
  const how = { brier_convention, log_score_convention, decomposition, interval };
  return reply(200, { ...head, ...how, total_groups: total, groups }, private_headers);
};

const faults = [taxonomy_faults.INVALID_CATEGORY, taxonomy_faults.INVALID_SUBCATEGORY];

const exportCalibration = route({
  id: 'exportCalibration',
  method: 'GET',
  path: '/api/export/calibration',
  summary: 'Calibration curves with Brier score, ECE, log score and Murphy decomposition',
  tag: 'exports',
  auth: 'public',
  limits: ['exports'],
  query: calibration_file_query,
  returns: { 200: answer_schema },
  also_produces: ['text/csv'],
  faults,
  longest_ms: 90_000,
  handle: ({ query }, deps) => answer(deps, query),
});

const exportDiagram = route({
  id: 'exportCalibrationDiagram',
  method: 'GET',
  path: '/api/export/calibration.svg',
  summary: 'The same calibration as a reliability diagram',
  tag: 'exports',
  auth: 'public',
  limits: ['exports'],
  query: diagram_query,
  returns: { 200: Type.String() },
  produces: 'image/svg+xml',
  faults,
  longest_ms: 90_000,
  handle: async ({ query }, deps) => {
    const as_of = await readAsOf(deps, query);
    if (isFault(as_of)) return as_of;
    const { groups } = await readGroups(deps, query, as_of);
    const drawn = groups.slice(0, most_drawn).map(({ key, name, ...calibration }) => ({
      label: name ?? (query.by === 'agent' ? key.slice(0, 8) : key),
      calibration,
    }));
    const { event = 'taken', theme = 'auto' } = query;
    return replyRaw('image/svg+xml', drawDiagram({ groups: drawn, event, as_of, theme }), {
      ...private_headers,
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
    });
  },
});

export const calibration_routes = [exportCalibration, exportDiagram];
