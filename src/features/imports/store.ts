import type { Db } from '../../db/client.js';
import type { ImportedQuestion } from '../predictions/index.js';

/** Finds the things that an import names: questions by their source, agents by their name. */

export interface SourceName {
  readonly source: string;
  readonly source_id: string;
}

type SourcedQuestion = SourceName & ImportedQuestion;

export const findBySource = (db: Db, names: readonly SourceName[]) => db<SourcedQuestion[]>`
  select
    q.source, q.source_id, q.id, q.question_type, q.options, q.range_min, q.range_max,
    q.open_min, q.open_max, q.weight, q.opens_at, q.closes_at,
    q.resolution_url
  from unnest(
    ${names.map(({ source }) => source)}::text[],
    ${names.map(({ source_id }) => source_id)}::text[]
  ) as named (source, source_id)
  join questions q on q.source = named.source and q.source_id = named.source_id
  where q.status <> 'draft'`;

interface ImportedAgent {
  readonly id: string;
  readonly name: string;
  readonly name_key: string;
  readonly model_family: string;
  readonly owner_id: string | null;
}

export const findByName = (db: Db, name_keys: readonly string[]) => db<ImportedAgent[]>`
  select id, name, name_key, model_family, owner_id
  from agents
  where name_key = any (${name_keys as string[]}::text[])`;
