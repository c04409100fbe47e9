import type { Sql } from '../../../src/db/client.js';
import { makeId } from '../../../src/kit/ids.js';

/** Questions written straight into the tables, so that each list has ties and many pages. */

export interface Seeded {
  readonly status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
  readonly closes_at: string;
  readonly resolved_at: string | null;
  readonly category: string;
  readonly tags: string;
  readonly options: string;
  readonly question: string;
  readonly description: string;
  readonly predictions: number;
  readonly yes: number;
  readonly no: number;
  readonly counts: string;
}

const base_ms = Date.parse('2027-01-01T00:00:00.000Z');
export const at = (minutes: number): string => new Date(base_ms + minutes * 60_000).toISOString();

export const seedOne = (fields: Partial<Seeded>): Seeded => ({
  ...{ status: 'open', closes_at: at(600), resolved_at: null, category: 'society', tags: '{}' },
  ...{ options: '{}', question: 'Will the measured series end above its median?' },
  ...{ description: '', predictions: 0, yes: 0, no: 0, counts: '{}' },
  ...fields,
});

/** Gives the ids, in the order of the rows. */
export const seed = async (sql: Sql, rows: readonly Seeded[]): Promise<readonly string[]> => {
  const ids = rows.map(() => makeId());
  const column = (name: keyof Seeded) => rows.map((row) => row[name]) as string[];
  await sql`
    insert into questions (
      id, question, description, category, tags, question_type, options, status, timeframe,
      opens_at, closes_at, resolution_date, published_at, closed_at, resolved_at, voided_at, outcome,
      correct_options
    )
    select
      id, question, description, category, tags::text[],
      case when options = '{}' then 'binary' else 'multi' end, options::text[], status,
      'mid', '2026-12-01', closes_at, closes_at,
      case when status <> 'draft' then now() end,
      case when status = 'closed' then now() end,
      resolved_at,
      case when status = 'voided' then now() end,
      case when status = 'resolved' then true end,
      null
    from unnest(
      ${ids}::uuid[], ${column('question')}::text[], ${column('description')}::text[],
      ${column('category')}::text[], ${column('tags')}::text[], ${column('options')}::text[],
      ${column('status')}::text[], ${column('closes_at')}::timestamptz[],
      ${column('resolved_at')}::timestamptz[]
    ) as given (
      id, question, description, category, tags, options, status, closes_at, resolved_at
    )`;
  await sql`
    insert into question_counts (
      question_id, prediction_count, yes_count, no_count, option_counts
    )
    select id, predictions, yes, no, counts::integer[]
    from unnest(
      ${ids}::uuid[], ${column('predictions')}::integer[], ${column('yes')}::integer[],
      ${column('no')}::integer[], ${column('counts')}::text[]
    ) as given (id, predictions, yes, no, counts)`;
  return ids;
};

const statuses = ['open', 'open', 'closed', 'resolved', 'voided', 'draft'] as const;

/** Rows with many equal keys: the id has to decide between them. */
export const many = (count: number): readonly Seeded[] =>
  Array.from({ length: count }, (_, n) => {
    const status = statuses[n % statuses.length] as Seeded['status'];
    const is_multi = n % 4 === 0;
    const some = n % 5;
    return seedOne({
      status,
      category: n % 50 === 0 ? 'industry' : 'society',
      closes_at: at((n * 7) % 11),
      resolved_at: status === 'resolved' ? at((n * 3) % 5) : null,
      options: is_multi ? '{a,b,c}' : '{}',
      ...(is_multi
        ? { predictions: some + 2, counts: `{${some},1,1}` }
        : { predictions: some + 2, yes: some, no: 2 }),
      question: `Will the ${n % 3 === 0 ? 'harbour' : 'station'} of series ${n} be rebuilt?`,
      description: n % 7 === 0 ? 'The harbour again, and the harbour once more.' : '',
    });
  });
