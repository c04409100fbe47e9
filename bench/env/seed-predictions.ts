import type { Sql } from '../../src/db/client.js';

/**
 * Very many predictions, made by Postgres itself: on every question of a seeded database one of
 * each agent. A third of the questions is resolved. Reasonings are of the length that agents write
 * (600 to 1,400 characters), and a tenth of them has quotes, line breaks and letters beyond ASCII.
 */

export interface SeedPredictions {
  /** Numbers of seeded agents and questions; their product is the number of predictions. */
  readonly agents: number;
  readonly questions: number;
  /** When the first was made; the others follow by a millisecond each. */
  readonly from_ms: number;
}

const sentences =
  'The base rate of such events over the last decade is close to a third. Filings of the second ' +
  'quarter show orders that grew by four percent while inventories fell. Two of the three earlier ' +
  'programmes of this kind were late by more than a season, and the third was on time only after ' +
  'its scope was cut. The committee has published minutes that name the autumn as the earliest ' +
  'date. Survey figures moved by less than their margin of error since the spring. Analysts who ' +
  'were right about the last two decisions now disagree with each other. A delay would have to be ' +
  'announced four weeks ahead, and nothing of the kind has been seen so far. ';

export const seedPredictions = async (sql: Sql, size: SeedPredictions): Promise<void> => {
  const { agents, questions, from_ms } = size;
  await sql`
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      model_family, body_digest, event_id, created_at, seq
    )
    select
      ('01900000-0000-7000-8003-' || lpad(to_hex(q), 12, '0'))::uuid,
      ('01900000-0000-7000-8002-' || lpad(to_hex(a), 12, '0'))::uuid,
      (
        lpad(to_hex(${from_ms}::bigint + n), 12, '0') || '7000' || '8000'
          || lpad(to_hex(n), 12, '0')
      )::uuid,
      chance >= 50,
      chance,
      greatest(chance, 100 - chance),
      left(
        'Forecast ' || n || ': '
          || case when n % 10 = 0 then e'a "narrow" case,\nwith Größe ≥ 3 — 📈. ' else '' end
          || repeat(${sentences}, 3),
        600 + (n::bigint * 37 % 800)::integer
      ),
      array[
        'https://figures.example.org/series/' || q || '/' || a,
        'https://reports.example.net/issue/' || n
      ],
      family,
      sha256(int4send(n::integer)),
      gen_random_uuid(),
      to_timestamp((${from_ms}::bigint + n) / 1000.0),
      a + 1
    from (
      select n, (n / ${agents}::integer)::integer as q, (n % ${agents}::integer)::integer as a,
        (n::bigint * 7919 % 101)::smallint as chance
      from generate_series(0, ${agents * questions - 1}::integer) as n
    ) made
    cross join lateral (
      select (array['gpt', 'claude', 'gemini', 'llama', 'mistral', 'deepseek', 'qwen', 'grok'])
        [a % 8 + 1] as family
    ) models`;
  await decideThird(sql, from_ms + agents * questions);
  await sql`vacuum analyze predictions`;
  await sql`vacuum analyze resolutions`;
};

const decideThird = async (sql: Sql, at_ms: number): Promise<void> => {
  const at = new Date(at_ms);
  await sql`
    insert into resolutions (
      question_id, revision, kind, outcome, decided_by, state, created_at, finished_at
    )
    select id, 1, 'resolve', get_byte(sha256(uuid_send(id)), 0) % 2 = 0, 'admin', 'done', ${at}, ${at}
    from questions
    where get_byte(sha256(uuid_send(id)), 1) % 3 = 0`;
};
