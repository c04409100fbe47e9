import { type Static, Type } from '@sinclair/typebox';
import { textEnum, time_schema, uuid_schema } from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { model_families } from '../taxonomy/model-family.js';

export const format_names = ['csv', 'ndjson', 'json', 'parquet'] as const;
export type Format = (typeof format_names)[number];

export const content_types: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
};

export const export_faults = defineFaults({
  TOO_MANY_EXPORTS: [
    429,
    'limit',
    'Too many exports are running. Try again when one of them has finished.',
    true,
  ],
});

const slug = Type.String({ maxLength: 60 });

/** Selects predictions and the time of the export. All exports share these members. */
export const filter_properties = {
  since: Type.Optional(time_schema),
  until: Type.Optional(time_schema),
  question_id: Type.Optional(uuid_schema),
  category: Type.Optional(slug),
  subcategory: Type.Optional(slug),
  model_family: Type.Optional(textEnum(model_families)),
  as_of: Type.Optional(time_schema),
  snapshot: Type.Optional(time_schema),
};

export const filter_names = [
  'since',
  'until',
  'question_id',
  'category',
  'subcategory',
  'model_family',
  'status',
] as const;

const file_properties = {
  format: Type.Optional(textEnum(format_names)),
  excel: Type.Optional(
    Type.Boolean({ description: 'CSV with `;` between cells and a byte order mark.' }),
  ),
  gzip: Type.Optional(Type.Boolean()),
  skip_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
};

export const predictions_query = Type.Object({
  ...file_properties,
  ...filter_properties,
  status: Type.Optional(textEnum(['open', 'closed', 'resolved', 'voided'])),
  names: Type.Optional(Type.Boolean()),
  count: Type.Optional(Type.Boolean()),
});

export const history_query = Type.Object({
  ...file_properties,
  ...filter_properties,
  count: Type.Optional(Type.Boolean()),
});

const { model_family: _family, ...of_questions } = filter_properties;
const { since: _since, until: _until, ...of_moment } = of_questions;
const { status, names, count } = predictions_query.properties;

export const questions_query = Type.Object({ ...file_properties, ...of_moment, status, count });
export const resolutions_query = Type.Object({ ...file_properties, ...of_moment, count });
export const comments_query = Type.Object({ ...file_properties, ...of_questions, names, count });

export type PredictionsQuery = Static<typeof predictions_query>;

export const manifest_schema = Type.Object({
  schema: Type.String(),
  format: textEnum(format_names),
  as_of: time_schema,
  snapshot: time_schema,
  log_offset: Type.Integer(),
  filters: Type.Record(Type.String(), Type.Union([Type.String(), Type.Boolean()])),
  rows: Type.Integer(),
  columns: Type.Array(
    Type.Object({ name: Type.String(), type: Type.String(), about: Type.String() }),
  ),
  file: Type.Object({ bytes: Type.Integer(), sha256: Type.String() }),
  /** Licence of the data, from DATA_LICENSE. */
  license: Type.String(),
  citation: Type.String(),
});
