import type { Db } from '../../kit/pg/client.js';

/** The one statement by which a batch of predictions is accepted, and what it is given. */

/** What every prediction has, made here or imported. */
export interface StoredForecast {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  /** Whose agent it is at this moment. */
  readonly owner_id: string | null;
  readonly prediction: boolean | null;
  readonly probability: number | null;
  readonly confidence: number;
  readonly selected_option: number | null;
  /** Whole percents by option, adding up to 100; null for a binary question. */
  readonly probabilities: readonly number[] | null;
  readonly reasoning: string;
  readonly citations: readonly string[];
  readonly model_family: string;
  /** When it was made; its day counts as one with a prediction. */
  readonly at: Date;
  readonly event_id: string;
  readonly event_body: string;
}

export interface PredictionDraft extends StoredForecast {
  /** Any value of JSON. */
  readonly resolution_protocol: unknown;
  readonly prior_probability: number | null;
  readonly prior_basis: string | null;
  /** SHA-256 of the body it came in, hex: an identical repeat is answered with the first result. */
  readonly body_digest: string;
}

/** A draft with what it was compared with, and the number it gets when that still holds. */
export interface NumberedDraft {
  readonly draft: PredictionDraft;
  /** The last number of its question. */
  readonly seen: number;
  readonly seq: number;
}

export type StoredVerdict =
  | { readonly kind: 'placed'; readonly points: number }
  /** Others were stored on the question since it was compared. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'not_open' }
  | { readonly kind: 'taken' };

interface VerdictRow {
  readonly id: string;
  readonly placed: boolean;
  readonly open: boolean;
  readonly current: boolean;
  /** What its agent has; placing moves none. */
  readonly points: number;
}

const judge = (row: VerdictRow | undefined): StoredVerdict => {
  if (row === undefined) throw new Error('a draft has no verdict');
  if (row.placed) return { kind: 'placed', points: row.points };
  if (!row.open) return { kind: 'not_open' };
  return row.current ? { kind: 'taken' } : { kind: 'stale' };
};

// The client reads the type of an array off its first element, so booleans and dates go as texts.
const nullable = <T>(values: readonly T[]): T[] => values as T[];

const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

/** Each once, in the order of ids. */
const inOrder = (ids: readonly string[]): string[] => [...new Set(ids)].sort();

/**
 * Accepts a batch in one statement, in the transaction that holds its locks (`lockPlaces`): every
 * draft is judged by itself, and those that stand are stored with their event.
 *
 * What is long is read in one place only, and what is judged and joined is short: a row costs by
 * its width at each step it passes.
 */
export const placeAll = async (
  sql: Db,
  numbered: readonly NumberedDraft[],
): Promise<readonly StoredVerdict[]> => {
  const drafts = numbered.map(({ draft }) => draft);
  const ids = drafts.map((d) => d.id);
  const question_ids = drafts.map((d) => d.question_id);
  const rows = await sql<VerdictRow[]>`
    with s as (
      select s.question_id, s.seq
      from questions q
      join question_seqs s on s.question_id = q.id
      where q.id = any (${inOrder(question_ids)}::uuid[])
        and q.status = 'open'
        and q.opens_at <= now()
        and q.closes_at > now()
      order by q.id
      for share of q
      for update of s
    ),
    j as (
      select
        d.id, d.question_id, d.agent_id, d.seq,
        s.seq is not null as open,
        s.seq is not distinct from d.seen as current,
        coalesce(a.balance, 0) as points
      from unnest(
        ${ids}::uuid[],
        ${question_ids}::uuid[],
        ${drafts.map((d) => d.agent_id)}::uuid[],
        ${numbered.map((n) => n.seq)}::integer[],
        ${numbered.map((n) => n.seen)}::integer[]
      ) as d (id, question_id, agent_id, seq, seen)
      left join s on s.question_id = d.question_id
      left join accounts a on a.agent_id = d.agent_id
    ),
    placed as (
      insert into predictions (
        question_id, agent_id, id, prediction, probability, confidence, selected_option,
        probabilities, reasoning, citations, model_family, resolution_protocol,
        prior_probability, prior_basis, body_digest, event_id, created_at, seq, owner_id
      )
      select
        j.question_id, j.agent_id, j.id, d.prediction::boolean, d.probability, d.confidence,
        d.selected_option, d.probabilities::smallint[], d.reasoning,
        string_to_array(d.citations, e'\n'), d.model_family,
        d.resolution_protocol::json,
        d.prior_probability, d.prior_basis, decode(d.body_digest, 'hex'), d.event_id, d.at,
        j.seq, d.owner_id
      from unnest(
        ${ids}::uuid[],
        ${nullable(drafts.map((d) => d.owner_id))}::uuid[],
        ${nullable(drafts.map((d) => (d.prediction === null ? null : d.prediction ? 't' : 'f')))}::text[],
        ${nullable(drafts.map((d) => d.probability))}::smallint[],
        ${nullable(drafts.map((d) => d.confidence))}::smallint[],
        ${nullable(drafts.map((d) => d.selected_option))}::smallint[],
        ${nullable(drafts.map((d) => (d.probabilities === null ? null : `{${d.probabilities}}`)))}::text[],
        ${nullable(drafts.map((d) => d.reasoning))}::text[],
        ${nullable(drafts.map((d) => d.citations.join('\n')))}::text[],
        ${nullable(drafts.map((d) => d.model_family))}::text[],
        ${nullable(drafts.map((d) => asJson(d.resolution_protocol)))}::text[],
        ${nullable(drafts.map((d) => d.prior_probability))}::smallint[],
        ${nullable(drafts.map((d) => d.prior_basis))}::text[],
        ${nullable(drafts.map((d) => d.body_digest))}::text[],
        ${nullable(drafts.map((d) => d.at.toISOString()))}::timestamptz[],
        ${nullable(drafts.map((d) => d.event_id))}::uuid[]
      ) as d (
        id, owner_id, prediction, probability, confidence, selected_option, probabilities,
        reasoning, citations, model_family, resolution_protocol, prior_probability, prior_basis,
        body_digest, at, event_id
      )
      join j on j.id = d.id
      where j.open and j.current
      on conflict (question_id, agent_id) do nothing
      returning id, event_id, owner_id, question_id, agent_id, seq
    ),
    advanced as (
      update question_seqs c
      set seq = last.seq
      from (select question_id, max(seq) as seq from placed group by question_id) as last
      where c.question_id = last.question_id
    ),
    emitted as (
      insert into outbox (id, event, question_id, agent_id, owner_id, body)
      select p.event_id, 'prediction.placed', p.question_id, p.agent_id, p.owner_id, e.body
      from unnest(${ids}::uuid[], ${drafts.map((d) => d.event_body)}::text[]) as e (id, body)
      join placed p on p.id = e.id
    )
    select j.id, placed.id is not null as placed, j.open, j.current, j.points
    from j
    left join placed on placed.id = j.id`;
  const by_id = new Map(rows.map((row) => [row.id, row]));
  return drafts.map(({ id }) => judge(by_id.get(id)));
};
