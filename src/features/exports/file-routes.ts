import { type TObject, Type } from '@sinclair/typebox';
import { readAddressText } from '../../http/call.js';
import type { Deps } from '../../http/deps.js';
import { type Context, type Reply, reply, replyStream, routeFor } from '../../http/route.js';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { firstIdAt } from '../../kit/ids.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import * as columns from './columns.js';
import type { Subject } from './content.js';
import { cutSlowReaders, type Exports, type Job } from './exports.js';
import * as wire from './schema.js';
import { content_types } from './schema.js';
import * as store from './select-store.js';
import { type Snapshot, takeSnapshot } from './snapshot-store.js';

export interface ExportParts {
  readonly exports: Exports;
}

type Parts = Deps & ExportParts & TaxonomyParts;
type Ctx = Context<unknown, wire.PredictionsQuery>;

const route = routeFor<Parts>();

const filtersOf = (query: wire.PredictionsQuery) =>
  Object.fromEntries(
    wire.filter_names.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])),
  );

interface Opened {
  readonly job: Job;
  readonly at: Snapshot;
  readonly freeSlot: () => void;
}

const refuseExcel = (format: wire.Format): Fault => {
  const message = `excel=true is for CSV only. Leave it out for ${format}.`;
  const fields = [{ path: 'query.excel', message }];
  return refuseFields(fields, message);
};

const openJob = async (subject: Subject, ctx: Ctx, deps: Parts): Promise<Opened | Fault> => {
  const { query } = ctx;
  const for_excel = query.excel === true;
  const format = query.format ?? (for_excel ? 'csv' : 'ndjson');
  if (for_excel && format !== 'csv') return refuseExcel(format);
  const at = (await deps.taxonomy.checkQuery(query)) ?? (await takeSnapshot(deps, query));
  if (isFault(at)) return at;
  const freeSlot = deps.exports.takeSlot(readAddressText(ctx.ip).limit_key);
  if (freeSlot === null) {
    return refuse(wire.export_faults.TOO_MANY_EXPORTS, { headers: { 'Retry-After': '5' } });
  }
  const scope = {
    ...filtersOf(query),
    below: firstIdAt(at.snapshot.getTime()),
    as_of: at.as_of.toISOString(),
    names: query.names === true,
    hides_open: deps.config.HIDE_REASONING,
  };
  return { job: { subject, format, for_excel, scope }, at, freeSlot };
};

/** Returns whether the client accepts gzip: by name or by `*`, and not with a weight of 0. */
const takesGzip = (accept_encoding: string): boolean =>
  accept_encoding.split(',').some((part) => {
    const [name = '', ...weights] = part.split(';').map((text) => text.trim().toLowerCase());
    return (name === 'gzip' || name === '*') && !weights.some((text) => /^q=0(\.0*)?$/.test(text));
  });

const stamp = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+/g, '');

const sendFile = async (subject: Subject, ctx: Ctx, deps: Parts): Promise<Reply | Fault> => {
  const { query } = ctx;
  const opened = await openJob(subject, ctx, deps);
  if (isFault(opened)) return opened;
  const { job, at, freeSlot } = opened;
  const { format } = job;
  const is_file = query.gzip === true;
  const in_transport = !is_file && format !== 'parquet' && takesGzip(ctx.header('accept-encoding'));
  const options = { gzip: is_file || in_transport, skip_bytes: query.skip_bytes ?? 0 };
  const name = `${subject.name}-${stamp(at.snapshot)}.${format}${is_file ? '.gz' : ''}`;
  try {
    const rows = query.count === true ? await deps.exports.countRows(job) : null;
    return replyStream(
      is_file ? 'application/gzip' : content_types[format],
      {
        produce: (signal) => cutSlowReaders(deps.exports.run(job, { signal, ...options })),
        onEnd: freeSlot,
      },
      {
        'Cache-Control': 'no-store',
        'Content-Disposition': `attachment; filename="${name}"`,
        'X-Export-Snapshot': at.snapshot.toISOString(),
        'X-Export-As-Of': at.as_of.toISOString(),
        Vary: 'Accept-Encoding',
        ...(in_transport ? { 'Content-Encoding': 'gzip' } : {}),
        ...(rows === null ? {} : { 'X-Export-Rows': String(rows) }),
      },
    );
  } catch (error) {
    freeSlot();
    throw error;
  }
};

/** Returns the licence of the data and how to cite them. */
const rightsOf = (
  { config, public_url }: Deps,
  subject: Subject,
  { as_of, snapshot }: Snapshot,
) => ({
  license: config.DATA_LICENSE,
  citation:
    `prediction-forum at ${public_url}: ${subject.name} (${subject.schema}) as of ` +
    `${as_of.toISOString()}, snapshot ${snapshot.toISOString()}.`,
});

/**
 * Sends the manifest of an export, which is enough to request the same file again and to check it.
 */
const sendManifest = async (subject: Subject, ctx: Ctx, deps: Parts): Promise<Reply | Fault> => {
  const opened = await openJob(subject, ctx, deps);
  if (isFault(opened)) return opened;
  const { job, at, freeSlot } = opened;
  const gone = new AbortController();
  ctx.onGone(() => gone.abort());
  try {
    const { rows, ...file } = await deps.exports.sumUp(job, gone.signal);
    const names = job.scope.names ? { names: true } : {};
    const answer = {
      schema: subject.schema,
      format: job.format,
      ...at,
      filters: { ...filtersOf(ctx.query), ...names },
      rows,
      file,
      columns: subject.columns.map(columns.describeColumn),
      ...rightsOf(deps, subject, at),
    };
    return reply(200, answer, { 'Cache-Control': 'no-store' });
  } finally {
    freeSlot();
  }
};

interface Routed {
  readonly id: string;
  readonly summary: string;
  readonly query: TObject;
}

const routesOf = (subject: Subject, { id, summary, query }: Routed) => {
  const common = {
    method: 'GET',
    tag: 'exports',
    auth: 'public',
    limits: ['exports'],
    query,
    faults: [
      wire.export_faults.TOO_MANY_EXPORTS,
      taxonomy_faults.INVALID_CATEGORY,
      taxonomy_faults.INVALID_SUBCATEGORY,
    ],
  } as const;
  const path = `/api/export/${subject.name}`;
  return [
    route({
      ...common,
      id,
      path,
      summary,
      returns: { 200: Type.String() },
      produces: content_types.ndjson,
      // An export that resumes after `skip_bytes` computes all skipped bytes again.
      longest_ms: 600_000,
      also_produces: [
        'text/csv',
        content_types.json,
        content_types.parquet,
        // The content type of every format with `gzip=true`.
        'application/gzip',
      ],
      handle: (ctx, deps) => sendFile(subject, ctx as Ctx, deps),
    }),
    route({
      ...common,
      id: `${id}Manifest`,
      path: `${path}/manifest`,
      summary: 'Manifest of an export with the same parameters: columns, rows, bytes, SHA-256',
      returns: { 200: wire.manifest_schema },
      // Counting and hashing a large export takes as long as the export itself.
      longest_ms: 600_000,
      handle: (ctx, deps) => sendManifest(subject, ctx as Ctx, deps),
    }),
  ];
};

export const file_routes = [
  ...routesOf(
    {
      name: 'predictions',
      schema: columns.predictions_schema,
      columns: columns.prediction_columns,
      list: 'predictions',
      select: store.selectPredictions,
    },
    {
      id: 'exportPredictions',
      summary: 'Predictions at one moment, as a streamed CSV, NDJSON, JSON or Parquet file',
      query: wire.predictions_query,
    },
  ),
  ...routesOf(
    {
      name: 'revisions',
      schema: columns.revisions_schema,
      columns: columns.revision_columns,
      list: 'revisions',
      select: store.selectRevisions,
    },
    {
      id: 'exportRevisions',
      summary: 'Every forecast with its time, including replaced ones, as a streamed file',
      query: wire.predictions_query,
    },
  ),
  ...routesOf(
    {
      name: 'questions',
      schema: columns.questions_schema,
      columns: [...columns.question_columns, ...columns.question_details],
      list: 'questions',
      select: store.selectQuestions,
    },
    {
      id: 'exportQuestions',
      summary: 'Questions with their outcomes, as a streamed file',
      query: wire.questions_query,
    },
  ),
  ...routesOf(
    {
      name: 'resolutions',
      schema: columns.resolutions_schema,
      columns: columns.resolution_columns,
      list: 'resolutions',
      select: store.selectResolutions,
    },
    {
      id: 'exportResolutions',
      summary: 'Every decision about a question, as a streamed file',
      query: wire.resolutions_query,
    },
  ),
  ...routesOf(
    {
      name: 'comments',
      schema: columns.comments_schema,
      columns: columns.comment_columns,
      list: 'comments',
      select: store.selectComments,
    },
    {
      id: 'exportComments',
      summary: 'Comments and replies, as a streamed file',
      query: wire.comments_query,
    },
  ),
  ...routesOf(
    {
      name: 'consensus-history',
      schema: columns.consensus_schema,
      columns: columns.consensus_columns,
      list: 'moments',
      select: store.selectStated,
    },
    {
      id: 'exportConsensusHistory',
      summary: 'The consensus of each question after each of its predictions, as a streamed file',
      query: wire.history_query,
    },
  ),
];
