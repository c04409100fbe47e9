import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { readAddressText } from '../../kit/http/request.js';
import { type Context, type Reply, reply, replyStream, routeFor } from '../../kit/http/route.js';
import { firstIdAt } from '../../kit/ids.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import {
  type Column,
  consensus_columns,
  consensus_schema,
  prediction_columns,
  predictions_schema,
} from './columns.js';
import { type ManifestParts, makeManifest, type Result } from './content.js';
import { cutSlowReaders, type Exports, type Job, type Subject } from './exports.js';
import { content_types } from './formats.js';
import {
  export_faults,
  filter_names,
  history_query,
  manifest_schema,
  type PredictionsQuery,
  predictions_query,
} from './schema.js';
import type { ExportAsk } from './select-store.js';
import { type Snapshot, takeSnapshot } from './snapshot.js';

export interface ExportParts {
  readonly exports: Exports;
}

type Parts = Deps & ExportParts & TaxonomyParts;
type Ctx = Context<unknown, PredictionsQuery>;

const route = routeFor<Parts>();

/** What there is to export as files. */
interface Kind {
  readonly subject: Subject;
  readonly schema: string;
  readonly columns: readonly Column[];
  /** What the list of rows is called in a JSON document. */
  readonly name: string;
}

const predictions: Kind = {
  subject: 'predictions',
  schema: predictions_schema,
  columns: prediction_columns,
  name: 'predictions',
};

const history: Kind = {
  subject: 'consensus-history',
  schema: consensus_schema,
  columns: consensus_columns,
  name: 'moments',
};

const filtersOf = (query: PredictionsQuery): Record<string, string | boolean> => {
  const filters: Record<string, string | boolean> = {};
  for (const name of filter_names) {
    const value = query[name];
    if (value !== undefined) filters[name] = value;
  }
  return query.names === true ? { ...filters, names: true } : filters;
};

const makeParts = (kind: Kind, query: PredictionsQuery, at: Snapshot): ManifestParts => ({
  schema: kind.schema,
  format: query.format ?? 'ndjson',
  columns: kind.columns,
  filters: filtersOf(query),
  as_of: at.as_of.toISOString(),
  snapshot: at.snapshot.toISOString(),
  log_offset: at.log_offset,
});

const makeAsk = (query: PredictionsQuery, at: Snapshot): ExportAsk => ({
  below: firstIdAt(at.snapshot.getTime()),
  as_of: at.as_of.toISOString(),
  since: query.since,
  until: query.until,
  question_id: query.question_id,
  category: query.category,
  subcategory: query.subcategory,
  model_family: query.model_family,
  status: query.status,
  names: query.names === true,
});

const makeJob = (kind: Kind, query: PredictionsQuery, at: Snapshot): Job => {
  const manifest = makeParts(kind, query, at);
  const { format } = manifest;
  const { subject, name } = kind;
  return {
    subject,
    ask: makeAsk(query, at),
    content: { manifest, name, format, with_manifest: query.manifest === true },
    gzip: false,
    skip_bytes: query.skip_bytes ?? 0,
  };
};

/** Whether the client takes gzip: named or by `*`, and not with a weight of 0. */
export const takesGzip = (accept_encoding: string): boolean =>
  accept_encoding.split(',').some((part) => {
    const [name = '', ...weights] = part.split(';').map((text) => text.trim().toLowerCase());
    return (name === 'gzip' || name === '*') && !weights.some((text) => /^q=0(\.0*)?$/.test(text));
  });

const stamp = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+/g, '');

const headersOf = (job: Job, at: Snapshot, encoding: 'file' | 'transport' | 'none') => ({
  'Cache-Control': 'no-store',
  'Content-Disposition': `attachment; filename="${job.subject}-${stamp(at.snapshot)}.${
    job.content.format
  }${encoding === 'file' ? '.gz' : ''}"`,
  'X-Export-Snapshot': at.snapshot.toISOString(),
  'X-Export-As-Of': at.as_of.toISOString(),
  Vary: 'Accept-Encoding',
  ...(encoding === 'transport' ? { 'Content-Encoding': 'gzip' } : {}),
});

/** Sums of an export that went through are kept, so that its manifest costs no second pass. */
const kept_s = 3_600;

const sumsKey = ({ config }: Pick<Deps, 'config'>, { subject, ask, content }: Job): string => {
  const text = JSON.stringify([subject, ask, content]);
  const digest = createHash('sha256').update(text).digest('base64url');
  return `${config.REDIS_PREFIX}:export:${digest}`;
};

const keepSums = (deps: Parts, job: Job, result: Result): void => {
  if (deps.redis.status !== 'ready') return;
  deps.redis.set(sumsKey(deps, job), JSON.stringify(result), 'EX', kept_s).catch(() => undefined);
};

const readSums = async (deps: Parts, job: Job): Promise<Result | null> => {
  if (deps.redis.status !== 'ready') return null;
  const text = await deps.redis.get(sumsKey(deps, job)).catch(() => null);
  return text === null ? null : (JSON.parse(text) as Result);
};

/** The place of an export and its job; what is refused gives the place back. */
const openJob = async (kind: Kind, ctx: Ctx, deps: Parts) => {
  const unknown = await deps.taxonomy.checkQuery(ctx.query);
  if (unknown !== null) return unknown;
  const leave = deps.exports.enter(readAddressText(ctx.ip).limit_key);
  if (leave === null) {
    return refuse(export_faults.TOO_MANY_EXPORTS, { headers: { 'Retry-After': '5' } });
  }
  try {
    const at = await takeSnapshot(deps, ctx.query);
    if (!isFault(at)) return { job: makeJob(kind, ctx.query, at), at, leave };
    leave();
    return at;
  } catch (error) {
    leave();
    throw error;
  }
};

const sendFile = async (kind: Kind, ctx: Ctx, deps: Parts): Promise<Reply | Fault> => {
  const { query } = ctx;
  const opened = await openJob(kind, ctx, deps);
  if (isFault(opened)) return opened;
  const { job: made, at, leave } = opened;
  const { format } = made.content;
  const is_file = query.gzip === true;
  const in_transport = !is_file && format !== 'parquet' && takesGzip(ctx.header('accept-encoding'));
  const job: Job = { ...made, gzip: is_file || in_transport };
  const onResult = (result: Result): void => keepSums(deps, job, result);
  try {
    const counted =
      query.count === true ? { 'X-Export-Rows': String(await deps.exports.countRows(job)) } : {};
    return replyStream(
      is_file ? 'application/gzip' : content_types[format],
      {
        produce: (signal) => cutSlowReaders(deps.exports.run(job, { signal, onResult })),
        onEnd: leave,
      },
      {
        ...headersOf(job, at, is_file ? 'file' : in_transport ? 'transport' : 'none'),
        ...counted,
      },
    );
  } catch (error) {
    leave();
    throw error;
  }
};

const sumUp = async (ctx: Ctx, deps: Parts, job: Job): Promise<Result> => {
  let result: Result | null = null;
  const gone = new AbortController();
  ctx.onGone(() => gone.abort());
  const onResult = (made: Result): void => {
    result = made;
  };
  for await (const _ of deps.exports.run(job, { signal: gone.signal, onResult }));
  if (result === null) throw new Error('an export ended without its sums');
  return result;
};

const sendManifest = async (kind: Kind, ctx: Ctx, deps: Parts): Promise<Reply | Fault> => {
  const opened = await openJob(kind, ctx, deps);
  if (isFault(opened)) return opened;
  const job: Job = { ...opened.job, skip_bytes: 0 };
  try {
    const sums = (await readSums(deps, job)) ?? (await sumUp(ctx, deps, job));
    keepSums(deps, job, sums);
    const answer = { ...makeManifest(job.content.manifest, sums), file: sums.file };
    return reply(200, answer, { 'Cache-Control': 'no-store' });
  } finally {
    opened.leave();
  }
};

const common = {
  method: 'GET',
  tag: 'exports',
  auth: 'public',
  limits: ['exports'],
  faults: [
    export_faults.TOO_MANY_EXPORTS,
    taxonomy_faults.INVALID_CATEGORY,
    taxonomy_faults.INVALID_SUBCATEGORY,
  ],
} as const;

const file = {
  ...common,
  returns: { 200: Type.String() },
  produces: content_types.ndjson,
  also_produces: [
    ...['text/csv', content_types.json, content_types.parquet],
    // With `gzip=true`, whatever is inside.
    'application/gzip',
  ],
};

/** The sums of a large export take as long as the export. */
const manifest = { ...common, returns: { 200: manifest_schema }, longest_ms: 600_000 };

export const file_routes = [
  route({
    ...file,
    id: 'exportPredictions',
    path: '/api/export/predictions',
    summary: 'Predictions as CSV, NDJSON, JSON or Parquet, streamed; one moment of the record',
    query: predictions_query,
    handle: (ctx, deps) => sendFile(predictions, ctx, deps),
  }),
  route({
    ...manifest,
    id: 'exportPredictionsManifest',
    path: '/api/export/predictions/manifest',
    summary: 'What an export with the same parameters holds: columns, rows, bytes, SHA-256',
    query: predictions_query,
    handle: (ctx, deps) => sendManifest(predictions, ctx, deps),
  }),
  route({
    ...file,
    id: 'exportConsensusHistory',
    path: '/api/export/consensus-history',
    summary: 'The consensus of each question after each of its predictions, as a streamed file',
    query: history_query,
    handle: (ctx, deps) => sendFile(history, ctx, deps),
  }),
  route({
    ...manifest,
    id: 'exportConsensusHistoryManifest',
    path: '/api/export/consensus-history/manifest',
    summary: 'What an export of the consensus with the same parameters holds',
    query: history_query,
    handle: (ctx, deps) => sendManifest(history, ctx, deps),
  }),
];
