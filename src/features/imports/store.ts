import type { Db } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import { isId } from '../../kit/ids.js';
import type { ImportedQuestion } from '../predictions/index.js';
import { forum_source } from './schema.js';

/** Finds the things that an import names: questions by their source and agents by their name. */

export interface SourceName {
  readonly source: string;
  readonly source_id: string;
}

type SourcedQuestion = SourceName & ImportedQuestion;

const idsIn = (names: readonly Partial<SourceName>[]): readonly string[] =>
  names.flatMap(({ source, source_id = '' }) =>
    source === forum_source && isId(source_id.toLowerCase()) ? [source_id.toLowerCase()] : [],
  );

/** Finds published questions by their source, or by their id in an export of this forum. */
export const findBySource = (db: Db, names: readonly SourceName[]) => db<SourcedQuestion[]>`
  select
    named.source, named.source_id, q.id, q.question_type, q.options, q.range_min, q.range_max,
    q.open_min, q.open_max, q.weight, q.opens_at, q.closes_at,
    q.resolution_url
  from (
    select named.source, named.source_id, s.id
    from unnest(
      ${names.map(({ source }) => source)}::text[],
      ${names.map(({ source_id }) => source_id)}::text[]
    ) as named (source, source_id)
    join questions s on s.source = named.source and s.source_id = named.source_id
    union
    select ${forum_source}, id::text, id from unnest(${idsIn(names)}::uuid[]) as id
  ) named
  join questions q on q.id = named.id
  where q.status <> 'draft'`;

/** Finds a question of this forum by its id in an export, with any status. */
export const findExported = async (
  db: Db,
  name: { source?: string | null; source_id?: string | null },
): Promise<{ readonly id: string } | undefined> => {
  const [id] = idsIn([name as SourceName]);
  if (id === undefined) return undefined;
  return firstRow(db<{ id: string }[]>`select id from questions where id = ${id}`);
};

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
