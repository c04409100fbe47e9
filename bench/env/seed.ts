import { createHash } from 'node:crypto';
import type { Sql } from '../../src/db/client.js';

/**
 * Agents, open questions and their predictions, written directly into a migrated database. Ids are
 * computed from numbers, so every process of a bench knows them without reading them.
 */

const numbered = (family: string, n: number): string =>
  `01900000-0000-7000-${family}-${n.toString(16).padStart(12, '0')}`;

export const humanId = (n: number): string => numbered('8001', n);
export const agentId = (n: number): string => numbered('8002', n);
export const questionId = (n: number): string => numbered('8003', n);
/** The common prefix of all ids of a family. SQL adds the number. */
const startOf = (family: string): string => numbered(family, 0).slice(0, 24);

const models = [
  'gpt-5',
  'claude-opus-4-5',
  'gemini-3-pro',
  'llama-4-maverick',
  'mistral-large-3',
  'deepseek-v3.2',
  'qwen3-max',
  'grok-4',
];
/** `qwen3-max` belongs to the family `qwen`. */
const familyOf = (model: string): string => /^[a-z]+/.exec(model)![0];

export interface SeedSize {
  /** API keys. Agent n has key n. */
  readonly keys: readonly string[];
  readonly questions: number;
  /** Options of question n. Empty for a yes/no question. */
  readonly optionsOf?: (n: number) => readonly string[];
}

const points = 5_000;
const agents_of_an_owner = 4;

/** Fills a migrated, empty database and updates the statistics of Postgres. */
export const seed = async (sql: Sql, size: SeedSize): Promise<void> => {
  const { keys, questions: count, optionsOf = () => [] } = size;
  await sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    select
      (${startOf('8001')} || lpad(to_hex(n), 12, '0'))::uuid, email, email, 'not-a-hash', now()
    from generate_series(0, ${Math.ceil(keys.length / agents_of_an_owner) - 1}::integer) as n,
      lateral (select 'owner' || n || '@bench-people.org' as email) named`;
  const agents = keys.map((key, n) => {
    const model = models[n % models.length]!;
    const owner_id = humanId(Math.floor(n / agents_of_an_owner));
    const digest = createHash('sha256').update(key).digest('hex');
    return { n, id: agentId(n), model, model_family: familyOf(model), owner_id, digest };
  });
  await sql`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
      referral_code, owner_id, linked_at, key_digest
    )
    select
      id, 'Bench agent ' || n, 'bench agent ' || n, model, model_family, 'data_driven', 'moderate',
      '{predictor}', 'bench' || n + 1, owner_id, now(), decode(digest, 'hex')
    from json_to_recordset(${JSON.stringify(agents)}::text::json) as d (
      n integer, id uuid, model text, model_family text, owner_id uuid, digest text
    )`;
  await sql`insert into accounts (agent_id, balance) select id, ${points} from agents`;
  await sql`
    insert into ledger (agent_id, id, reason, amount, balance_after)
    select id, gen_random_uuid(), 'registration', ${points}, ${points}
    from agents`;
  await sql`insert into standing_changes (agent_id) select id from agents`;
  const questions = Array.from({ length: count }, (_, n) => ({
    n,
    id: questionId(n),
    options: optionsOf(n),
  }));
  await sql`
    insert into questions (
      id, question, category, subcategory, question_type, options, status, timeframe, weight,
      opens_at, closes_at, resolution_date, published_at
    )
    select
      id, 'Will the measured series number ' || n + 1 || ' end the quarter above its median?',
      'technology', 'data', case when options = '{}' then 'binary' else 'multi' end, options,
      'open', 'long', 1, now() - interval '1 day', now() + interval '60 days',
      now() + interval '61 days', now() - interval '1 day'
    from json_to_recordset(${JSON.stringify(questions)}::text::json) as d (
      n integer, id uuid, options text[]
    )`;
  await sql`insert into question_counts (question_id) select id from questions`;
  await sql`vacuum analyze`;
};

const sentences =
  'The base rate of such events over the last decade is close to a third. Filings of the second ' +
  'quarter show orders that grew by four percent while inventories fell. Two of the three earlier ' +
  'programmes of this kind were late by more than a season, and the third was on time only after ' +
  'its scope was cut. The committee has published minutes that name the autumn as the earliest ' +
  'date. Survey figures moved by less than their margin of error since the spring. Analysts who ' +
  'were right about the last two decisions now disagree with each other. A delay would have to be ' +
  'announced four weeks ahead, and nothing of the kind has been seen so far. ';

interface Rows {
  readonly first_question: number;
  readonly questions: number;
  readonly first_agent: number;
  readonly agents: number;
  /** Time of the first prediction. Each further prediction is a millisecond later. */
  readonly from_ms: number;
}

/** The id of seeded prediction `n`. Its agent is `n` modulo the number of agents. */
export const seededId = (from_ms: number, n: number): string => {
  const hex = (value: number) => value.toString(16).padStart(12, '0');
  const time = hex(from_ms + n);
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${hex(n)}`;
};

/**
 * Postgres itself generates one prediction per agent on each question. Reasoning texts have a
 * realistic length (600 to 1,400 characters), and a tenth of them contain quotes, line breaks and
 * non-ASCII letters.
 */
const insertPredictions = async (sql: Sql, rows: Rows): Promise<void> => {
  const { first_question, questions, first_agent, agents, from_ms } = rows;
  const first = first_question * agents;
  await sql`
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      model_family, body_digest, event_id, created_at, seq, revision
    )
    select
      (${startOf('8003')} || lpad(to_hex(q), 12, '0'))::uuid,
      g.id,
      (
        lpad(to_hex(${from_ms}::bigint + n), 12, '0') || '7000' || '8000'
          || lpad(to_hex(n), 12, '0')
      )::uuid,
      chance >= 50, 100 * chance, 100 * greatest(chance, 100 - chance),
      left(
        'Forecast ' || n || ': '
          || case when n % 10 = 0 then e'a "narrow" case,\nwith Größe ≥ 3 — 📈. ' else '' end
          || repeat(${sentences}, 3),
        600 + (n * 37 % 800)::integer
      ),
      array[
        'https://figures.example.org/series/' || q || '/' || a,
        'https://reports.example.net/issue/' || n
      ],
      g.model_family, sha256(int8send(n)), gen_random_uuid(),
      to_timestamp((${from_ms}::bigint + n) / 1000.0), a + 1, 0
    from (
      select
        n, (n / ${agents}::integer)::integer as q,
        ${first_agent}::integer + (n % ${agents}::integer)::integer as a,
        (1 + n * 37 % 99)::smallint as chance
      from generate_series(${first}::bigint, ${first + agents * questions - 1}::bigint) as n
    ) made
    join agents g on g.id = (${startOf('8002')} || lpad(to_hex(a), 12, '0'))::uuid`;
  await sql`
    update question_seqs s
    set seq = n.seq
    from (select question_id, max(seq) as seq from predictions group by question_id) n
    where s.question_id = n.question_id`;
};

export interface SeedPredictions extends Pick<Rows, 'questions' | 'agents' | 'from_ms'> {}

/** Adds predictions on all questions, and resolves about a third of the questions. */
export const seedPredictions = async (sql: Sql, size: SeedPredictions): Promise<void> => {
  await insertPredictions(sql, { ...size, first_question: 0, first_agent: 0 });
  const at = new Date(size.from_ms + size.agents * size.questions);
  await sql`
    insert into resolutions (
      question_id, revision, kind, outcome, decided_by, state, created_at, finished_at
    )
    select id, 1, 'resolve', get_byte(sha256(uuid_send(id)), 0) % 2 = 0, 'admin', 'done', ${at}, ${at}
    from questions
    where get_byte(sha256(uuid_send(id)), 1) % 3 = 0`;
  await sql`vacuum analyze predictions, resolutions`;
};

export interface SeedForecasts {
  readonly question: number;
  /** The first of `count` consecutive agents. Each makes one prediction. */
  readonly first_agent: number;
  readonly count: number;
  /** Adds the events that placed predictions emit, which the relay then has to carry. */
  readonly events: boolean;
  /** Number of revisions of each prediction, a quarter of an hour apart. Default: none. */
  readonly revisions?: number;
}

const revise = async (sql: Sql, question: number, revision: number): Promise<void> => {
  const question_id = questionId(question);
  await sql`
    insert into earlier_forecasts (
      question_id, agent_id, revision, prediction, probability, confidence, event_id, created_at
    )
    select
      question_id, agent_id, revision, prediction, probability, confidence, gen_random_uuid(),
      coalesce(revised_at, created_at)
    from predictions
    where question_id = ${question_id}`;
  await sql`
    update predictions p
    set
      revision = ${revision}, revised_at = coalesce(revised_at, created_at) + interval '15 minutes',
      revision_event_id = gen_random_uuid(), probability = chance, prediction = chance >= 5000,
      confidence = greatest(chance, 10000 - chance)
    from (
      select agent_id, (probability::integer * 37 + ${revision}::integer * 1009) % 10001 as chance
      from predictions
      where question_id = ${question_id}
    ) c
    where p.question_id = ${question_id} and p.agent_id = c.agent_id`;
};

/** Adds predictions on one yes/no question, as if they had been placed in the last hour. */
export const seedForecasts = async (sql: Sql, forecasts: SeedForecasts): Promise<void> => {
  const { question, first_agent, count, events } = forecasts;
  const from_ms = Date.now() - 3_600_000;
  await insertPredictions(sql, {
    first_question: question,
    questions: 1,
    first_agent,
    agents: count,
    from_ms,
  });
  for (let n = 1; n <= (forecasts.revisions ?? 0); n += 1) await revise(sql, question, n);
  if (!events) return;
  await sql`
    insert into outbox (id, event, question_id, agent_id, body)
    select
      p.event_id, 'prediction.placed', p.question_id, p.agent_id,
      json_build_object(
        'event', 'prediction.placed',
        'data', json_build_object(
          'question_id', p.question_id, 'prediction_id', p.id, 'user_id', g.id,
          'user_name', g.name, 'model_family', g.model_family, 'confidence', p.confidence / 100,
          'prediction', p.prediction, 'probability', p.probability / 100
        ),
        'timestamp', to_char(p.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      )::text
    from predictions p
    join agents g on g.id = p.agent_id
    where p.question_id = ${questionId(question)}`;
};
