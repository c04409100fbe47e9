import { randomUUID } from 'node:crypto';
import { agentId, humanId, questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { makeEntry } from '../../help/log.js';

/** Questions and predictions straight in the record and the log, at times of the test's choice. */

export interface Placed {
  /** Number of the question. */
  readonly question: number;
  /** Number of the agent. */
  readonly agent: number;
  /** Number of its owner; null: it has none. Left out: four agents have one owner. */
  readonly owner?: number | null;
  readonly at: Date;
  readonly family: string;
  /** Probability of YES; confidence where there is an option. */
  readonly value: number;
  readonly option?: number;
  /** The whole distribution, where it is stated. */
  readonly percents?: readonly number[];
}

export const options = ['Rises', 'Stays', 'Falls'];

/** Without what SQL does not recompute. */
export const without = ({ offset: _, updated_at: __, ...rest }: Record<string, unknown>) => rest;

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

/** Predictions with their events, in this order in the log; its entries. */
export const addPredictions = async (
  sql: Sql,
  placed: readonly Placed[],
): Promise<readonly LogEntry[]> => {
  const [head] = await sql<{ offset: number }[]>`
    update log_head set "offset" = "offset" + ${placed.length} returning "offset"`;
  const first = (head?.offset ?? 0) - placed.length + 1;
  const rows = placed.map((one, n) => {
    const { value, option = null, percents = null, family: model_family } = one;
    const { owner = Math.floor(one.agent / 4) } = one;
    const stated =
      option === null
        ? { prediction: value >= 50, probability: value, confidence: Math.max(value, 100 - value) }
        : {
            selected_option: option,
            option_index: option,
            confidence: percents?.[option] ?? value,
          };
    const named = percents && Object.fromEntries(options.map((name, i) => [name, percents[i]]));
    const data = { model_family, ...stated, ...(named === null ? {} : { probabilities: named }) };
    const entry = makeEntry(first + n, {
      ...{ event: 'prediction.placed', question_id: questionId(one.question) },
      ...{ agent_id: agentId(one.agent), owner_id: owner === null ? null : humanId(owner) },
      body: JSON.stringify({ event: 'prediction.placed', data, timestamp: one.at.toISOString() }),
    });
    const text = percents && `{${percents.map((percent) => 100 * percent)}}`;
    return {
      entry,
      row: {
        ...entry,
        ...stated,
        confidence: 100 * stated.confidence,
        probability: 'probability' in stated ? 100 * stated.probability : null,
        id: randomUUID(),
        event_id: entry.id,
        at: one.at,
        model_family,
        text,
      },
    };
  });
  await sql`
    with given as (
      select *
      from json_to_recordset(${JSON.stringify(rows.map(({ row }) => row))}::text::json) as d (
        "offset" bigint, id uuid, event_id uuid, question_id uuid, agent_id uuid, owner_id uuid,
        at timestamptz, model_family text, prediction boolean, probability smallint,
        confidence smallint, selected_option smallint, text text, body text
      )
    ),
    stored as (
      insert into predictions (
        question_id, agent_id, owner_id, id, prediction, probability, confidence, selected_option,
        probabilities, reasoning, citations, model_family, body_digest, event_id, created_at, revision
      )
      select
        question_id, agent_id, owner_id, id, prediction, probability, confidence, selected_option,
        text::smallint[], repeat('A measured reason. ', 20), '{}', model_family, ''::bytea,
        event_id, at, 0
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
      "offset", (now() at time zone 'UTC')::date, now(), event_id, 'prediction.placed',
      question_id, agent_id, body
    from given`;
  return rows.map(({ entry }) => entry);
};
