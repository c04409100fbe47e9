import { randomUUID } from 'node:crypto';
import { agentId, humanId, questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { makeEntry } from '../../help/log.js';

/** Writes questions and predictions directly into the tables and the log, at chosen times. */

export interface Placed {
  /** Number of the question. */
  readonly question: number;
  /** Number of the agent. */
  readonly agent: number;
  /** Number of the agent's owner, if any. By default, four consecutive agents share an owner. */
  readonly owner?: number | null;
  readonly at: Date;
  readonly family: string;
  /** The probability of YES, or the confidence if there is an option. In percent. */
  readonly value: number;
  readonly option?: number;
  /** The whole distribution, if it is stated. */
  readonly percents?: readonly number[];
}

export const options = ['Rises', 'Stays', 'Falls'];

/** Removes the members that SQL does not recompute. */
export const without = (consensus: Record<string, unknown>) => {
  const { offset: _, updated_at: __, scale, ...rest } = consensus;
  if (scale !== undefined && scale !== 'percent') throw new Error(`the scale is ${scale}`);
  return rest;
};

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

/** Adds an event to the log and returns its offset. */
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

const basisPoints = (percent: number): number => Math.round(100 * percent);

/** The table columns of a forecast. */
const columnsOf = ({ value, option, percents }: Omit<Placed, 'family'>): Columns => {
  const bp = basisPoints(value);
  if (option === undefined) {
    const confidence = Math.max(bp, 10_000 - bp);
    return { prediction: bp >= 5_000, probability: bp, confidence };
  }
  const probabilities = percents?.map(basisPoints) ?? null;
  return { selected_option: option, confidence: probabilities?.[option] ?? bp, probabilities };
};
interface Columns {
  readonly prediction?: boolean | null;
  readonly probability?: number | null;
  readonly confidence: number;
  readonly selected_option?: number | null;
  readonly probabilities?: readonly number[] | null;
}

/** The same forecast in the form of event data. */
const dataOf = ({ prediction, probability, confidence, ...multi }: Columns) => {
  const { selected_option: index, probabilities } = multi;
  const named = probabilities && options.map((name, n) => [name, (probabilities[n] ?? 0) / 100]);
  return {
    confidence: confidence / 100,
    ...(probability == null ? {} : { prediction, probability: probability / 100 }),
    ...(index == null ? {} : { selected_option: options[index], option_index: index }),
    ...(named ? { probabilities: Object.fromEntries(named) } : {}),
  };
};

const arrayText = (values: readonly number[] | null | undefined): string | null =>
  values ? `{${values}}` : null;

/** Reserves the next offsets of the log and returns the first. */
const takeOffsets = async (sql: Sql, count: number): Promise<number> => {
  const [head] = await sql<{ offset: number }[]>`
    update log_head set "offset" = "offset" + ${count} returning "offset"`;
  return (head?.offset ?? 0) - count + 1;
};

/** Adds predictions with their events, in this log order. Returns the log entries. */
export const addPredictions = async (
  sql: Sql,
  placed: readonly Placed[],
): Promise<readonly LogEntry[]> => {
  const first = await takeOffsets(sql, placed.length);
  const rows = placed.map((one, n) => {
    const { family: model_family, owner = Math.floor(one.agent / 4) } = one;
    const columns = columnsOf(one);
    const data = { model_family, ...dataOf(columns) };
    const entry = makeEntry(first + n, {
      event: 'prediction.placed',
      question_id: questionId(one.question),
      agent_id: agentId(one.agent),
      owner_id: owner === null ? null : humanId(owner),
      body: JSON.stringify({ event: 'prediction.placed', data, timestamp: one.at.toISOString() }),
    });
    const text = arrayText(columns.probabilities);
    return {
      entry,
      row: {
        ...entry,
        ...columns,
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

/** Adds revisions of the agents' earlier forecasts, in this log order. */
export const addRevisions = async (
  sql: Sql,
  revised: readonly Omit<Placed, 'family' | 'owner'>[],
): Promise<readonly LogEntry[]> => {
  const first = await takeOffsets(sql, revised.length);
  const entries: LogEntry[] = [];
  for (const [n, one] of revised.entries()) {
    const [question_id, agent_id] = [questionId(one.question), agentId(one.agent)];
    const own = sql`question_id = ${question_id} and agent_id = ${agent_id}`;
    const [before] = await sql<(Columns & { model_family: string })[]>`
      select model_family, prediction, probability, confidence, selected_option, probabilities
      from predictions
      where ${own}`;
    if (before === undefined) throw new Error('there is nothing to revise');
    const now = columnsOf(one);
    const data = { model_family: before.model_family, ...dataOf(now), previous: dataOf(before) };
    const entry = makeEntry(first + n, {
      event: 'prediction.revised',
      question_id,
      agent_id,
      body: JSON.stringify({ event: 'prediction.revised', data, timestamp: one.at.toISOString() }),
    });
    entries.push(entry);
    await sql`
      with earlier as (
        insert into earlier_forecasts (
          question_id, agent_id, revision, prediction, probability, confidence, selected_option,
          probabilities, reason, event_id, created_at
        )
        select
          question_id, agent_id, revision, prediction, probability, confidence, selected_option,
          probabilities, revision_reason, coalesce(revision_event_id, event_id),
          coalesce(revised_at, created_at)
        from predictions
        where ${own}
      ),
      counted as (
        update question_counts set prediction_offset = ${entry.offset}
        where question_id = ${question_id}
      ),
      logged as (
        insert into events
          ("offset", recorded_on, recorded_at, id, event, question_id, agent_id, body)
        values (
          ${entry.offset}, (now() at time zone 'UTC')::date, now(), ${entry.id}, ${entry.event},
          ${question_id}, ${agent_id}, ${entry.body}
        )
      )
      update predictions
      set
        revision = revision + 1,
        revised_at = ${one.at},
        revision_event_id = ${entry.id},
        prediction = ${now.prediction ?? null},
        probability = ${now.probability ?? null},
        confidence = ${now.confidence},
        selected_option = ${now.selected_option ?? null},
        probabilities = ${arrayText(now.probabilities)}::text::smallint[]
      where ${own}`;
  }
  return entries;
};
