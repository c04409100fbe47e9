import { agentId, questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';

/** Questions and predictions straight in the record and the log, at times of the test's choice. */

export interface Placed {
  /** Number of the question. */
  readonly question: number;
  /** Number of the agent; four have one owner. */
  readonly agent: number;
  readonly at: Date;
  readonly family: string;
  /** Probability of YES; confidence where there is an option. */
  readonly value: number;
  readonly option?: number;
  /** The whole distribution, where it is stated. */
  readonly percents?: readonly number[];
}

const numbered = (family: string, n: number): string =>
  `01900000-0000-7000-${family}-${n.toString(16).padStart(12, '0')}`;

export const addQuestions = async (
  sql: Sql,
  ask: { readonly count: number; readonly options?: readonly string[]; readonly first?: number },
): Promise<void> => {
  const { count, options = [], first = 0 } = ask;
  const ids = Array.from({ length: count }, (_, n) => questionId(first + n));
  await sql`
    insert into questions (
      id, question, category, question_type, options, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    select
      id, 'Will measured series ' || n || ' end above its median?', 'technology',
      ${options.length > 0 ? 'multi' : 'binary'}, ${options as string[]}::text[], 'open', 'long',
      now() - interval '90 days', now() + interval '9 days', now() + interval '9 days', now()
    from unnest(${ids}::uuid[]) with ordinality as given (id, n)`;
  await sql`
    insert into question_counts (question_id, option_counts)
    select id, ${options.map(() => 0)}::integer[]
    from unnest(${ids}::uuid[]) as given (id)`;
};

/** What happened, as the next event of the log; its offset. */
export const addEvent = async (
  sql: Sql,
  { event, question, at }: { readonly event: string; readonly question: number; readonly at: Date },
): Promise<number> => {
  const field = event === 'question.resolved' ? 'resolved_at' : 'closed_at';
  const body = JSON.stringify({ event, data: { [field]: at.toISOString() }, timestamp: at });
  const [row] = await sql<{ offset: number }[]>`
    with head as (update log_head set "offset" = "offset" + 1 returning "offset")
    insert into events ("offset", recorded_on, recorded_at, id, event, question_id, body)
    select
      "offset", (now() at time zone 'UTC')::date, now(), gen_random_uuid(), ${event},
      ${questionId(question)}, ${body}
    from head
    returning "offset"`;
  return row?.offset ?? 0;
};

/** Predictions with their events, in this order in the log. */
export const addPredictions = async (sql: Sql, placed: readonly Placed[]): Promise<void> => {
  await sql`
    with head as (
      update log_head set "offset" = "offset" + ${placed.length} returning "offset"
    ),
    given as (
      select *, (select "offset" from head) - ${placed.length} + n as "offset",
        gen_random_uuid() as id
      from unnest(
        ${placed.map(({ question }) => questionId(question))}::uuid[],
        ${placed.map(({ agent }) => agentId(agent))}::uuid[],
        ${placed.map(({ agent }) => numbered('8001', Math.floor(agent / 4)))}::uuid[],
        ${placed.map(({ at }) => at.toISOString())}::timestamptz[],
        ${placed.map(({ family }) => family)}::text[],
        ${placed.map(({ value }) => value)}::integer[],
        ${placed.map(({ option }) => String(option ?? ''))}::text[],
        ${placed.map(({ percents = [] }) => percents.join(','))}::text[]
      ) with ordinality
        as one (question_id, agent_id, owner_id, at, family, value, option, percents, n)
    ),
    stated as (
      insert into predictions (
        question_id, agent_id, owner_id, id, prediction, probability, confidence, selected_option,
        probabilities, reasoning, citations, model_family, body_digest, event_id, created_at
      )
      select
        question_id, agent_id, owner_id, id,
        case when option = '' then value >= 50 end,
        case when option = '' then value end,
        case when option = '' then greatest(value, 100 - value) else value end,
        nullif(option, '')::smallint,
        string_to_array(nullif(percents, ''), ',')::smallint[],
        repeat('A measured reason. ', 20), '{}', family, ''::bytea, id, at
      from given
    ),
    counted as (
      update question_counts c
      set prediction_count = c.prediction_count + g.count, prediction_offset = g."offset"
      from (
        select question_id, count(*) as count, max("offset") as "offset" from given group by 1
      ) g
      where c.question_id = g.question_id
    )
    insert into events ("offset", recorded_on, recorded_at, id, event, question_id, agent_id, body)
    select
      "offset", (now() at time zone 'UTC')::date, now(), id, 'prediction.placed', question_id,
      agent_id, '{}'
    from given`;
};
