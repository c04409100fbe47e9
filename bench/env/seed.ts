import { createHash } from 'node:crypto';
import type { Sql } from '../../src/db/client.js';

/**
 * Agents and open questions, written straight into a migrated database. Ids are made from numbers,
 * so that every process of a bench can name them without reading them.
 */

const numbered = (family: string, n: number): string =>
  `01900000-0000-7000-${family}-${n.toString(16).padStart(12, '0')}`;

export const humanId = (n: number): string => numbered('8001', n);
export const agentId = (n: number): string => numbered('8002', n);
export const questionId = (n: number): string => numbered('8003', n);

const models = [
  ['gpt-5', 'gpt'],
  ['claude-opus-4-5', 'claude'],
  ['gemini-3-pro', 'gemini'],
  ['llama-4-maverick', 'llama'],
  ['mistral-large-3', 'mistral'],
  ['deepseek-v3.2', 'deepseek'],
  ['qwen3-max', 'qwen'],
  ['grok-4', 'grok'],
] as const;

export interface SeedSize {
  /** Keys of the agents; agent n holds key n. */
  readonly keys: readonly string[];
  readonly questions: number;
  /** Options of question n; without any it is a yes/no question. */
  readonly optionsOf?: (n: number) => readonly string[];
}

const seed_points = 5_000;
const agents_of_an_owner = 4;

const seedHumans = async (sql: Sql, count: number): Promise<void> => {
  await sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    select
      id,
      'owner' || n || '@bench-people.org',
      'owner' || n || '@bench-people.org',
      'not-a-hash',
      now()
    from unnest(${Array.from({ length: count }, (_, n) => humanId(n))}::uuid[])
      with ordinality as given (id, n)`;
};

const seedAgents = async (sql: Sql, keys: readonly string[]): Promise<void> => {
  const rows = keys.map((key, n) => ({
    id: agentId(n),
    name: `Bench agent ${n}`,
    model: models[n % models.length]![0],
    family: models[n % models.length]![1],
    owner: humanId(Math.floor(n / agents_of_an_owner)),
    digest: createHash('sha256').update(key).digest('hex'),
  }));
  await sql`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
      referral_code, owner_id, linked_at, key_digest
    )
    select
      id, name, lower(name), model, family, 'data_driven', 'moderate', '{predictor}',
      'bench' || n, owner, now(), decode(digest, 'hex')
    from unnest(
      ${rows.map((row) => row.id)}::uuid[],
      ${rows.map((row) => row.name)}::text[],
      ${rows.map((row) => row.model)}::text[],
      ${rows.map((row) => row.family)}::text[],
      ${rows.map((row) => row.owner)}::uuid[],
      ${rows.map((row) => row.digest)}::text[]
    ) with ordinality as given (id, name, model, family, owner, digest, n)`;
  await sql`
    insert into accounts (agent_id, balance)
    select id, ${seed_points}
    from agents`;
  await sql`
    insert into ledger (agent_id, id, reason, amount, balance_after)
    select id, gen_random_uuid(), 'registration', ${seed_points}, ${seed_points}
    from agents`;
  await sql`
    insert into standing_changes (agent_id)
    select id
    from agents`;
};

const seedQuestions = async (
  sql: Sql,
  { questions: count, optionsOf = () => [] }: SeedSize,
): Promise<void> => {
  const numbers = Array.from({ length: count }, (_, n) => n);
  const options = numbers.map((n) => JSON.stringify(optionsOf(n)));
  await sql`
    insert into questions (
      id, question, category, subcategory, question_type, options, status, timeframe, weight,
      opens_at, closes_at, resolution_date, published_at
    )
    select
      id,
      'Will the measured series number ' || n || ' end the quarter above its median?',
      'technology', 'data', case options when '[]' then 'binary' else 'multi' end,
      array(select jsonb_array_elements_text(options::jsonb)), 'open', 'long', 1,
      now() - interval '1 day', now() + interval '60 days', now() + interval '61 days',
      now() - interval '1 day'
    from unnest(${numbers.map(questionId)}::uuid[], ${options}::text[])
      with ordinality as given (id, options, n)`;
  await sql`
    insert into question_counts (question_id)
    select id
    from questions`;
};

/** Fills a migrated, empty database and lets Postgres learn its statistics. */
export const seed = async (sql: Sql, size: SeedSize): Promise<void> => {
  await seedHumans(sql, Math.ceil(size.keys.length / agents_of_an_owner));
  await seedAgents(sql, size.keys);
  await seedQuestions(sql, size);
  await sql`vacuum analyze`;
};

export interface SeedForecasts {
  readonly question: number;
  /** Agents by number, each with one prediction. */
  readonly first_agent: number;
  readonly count: number;
  /** With the events that a placed prediction makes; the relay has to carry them. */
  readonly events: boolean;
}

/**
 * Predictions on one yes/no question of weight 1 as if they had been placed: with events where
 * asked for. Agent n states a chance that follows from n.
 */
export const seedForecasts = async (sql: Sql, ask: SeedForecasts): Promise<void> => {
  const { question, first_agent, count, events } = ask;
  await sql`
    with d as (
      select
        ${questionId(question)}::uuid as question_id,
        (${numbered('8002', 0).slice(0, 24)} || lpad(to_hex(n), 12, '0'))::uuid as agent_id,
        (${numbered('8004', 0).slice(0, 24)} || lpad(to_hex(k), 12, '0'))::uuid as id,
        (${numbered('8005', 0).slice(0, 24)} || lpad(to_hex(k), 12, '0'))::uuid as event_id,
        chance >= 50 as prediction,
        chance,
        greatest(chance, 100 - chance) as confidence
      from (
        select
          n,
          n + ${question}::bigint * 16777216 as k,
          (1 + (n * 37) % 99)::smallint as chance
        from generate_series(
          ${first_agent}::integer, ${first_agent + count - 1}::integer
        ) as n
      ) numbers
    ),
    placed as (
      insert into predictions (
        question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
        model_family, body_digest, event_id, created_at
      )
      select
        s.question_id, s.agent_id, s.id, s.prediction, s.chance, s.confidence,
        repeat('Seeded words about the measured series. ', 30), '{}', g.model_family, '',
        s.event_id, now()
      from d s
      join agents g on g.id = s.agent_id
    )
    insert into outbox (id, event, question_id, agent_id, body)
    select
      s.event_id, 'prediction.placed', s.question_id, s.agent_id,
      json_build_object(
        'event', 'prediction.placed',
        'data', json_build_object(
          'question_id', s.question_id, 'prediction_id', s.id, 'user_id', g.id,
          'user_name', g.name, 'model_family', g.model_family, 'confidence', s.confidence,
          'prediction', s.prediction, 'probability', s.chance
        ),
        'timestamp', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      )::text
    from d s
    join agents g on g.id = s.agent_id
    where ${events}`;
};
