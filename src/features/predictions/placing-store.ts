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
  readonly stake: number;
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

/**
 * A draft with what it was compared with, and the number it gets when that still holds. Drafts of
 * one agent stand in the order in which they take their stakes, each on another question.
 */
export interface NumberedDraft {
  readonly draft: PredictionDraft;
  /** The last number of its question, and the count of its agent's predictions. */
  readonly seen: number;
  readonly agent_seen: number;
  readonly seq: number;
  /** Its place among the drafts of its agent in the batch, from 0, and how many they are. */
  readonly nth: number;
  readonly of: number;
}

export type StoredVerdict =
  | {
      readonly kind: 'placed';
      readonly balance: number;
      readonly staked: number;
      readonly equity: number;
    }
  /**
   * Others were stored on the question or by the agent since it was compared, or one of its agent
   * before it in the batch is stale.
   */
  | { readonly kind: 'stale' }
  | { readonly kind: 'not_open' }
  | { readonly kind: 'tier'; readonly equity: number }
  | { readonly kind: 'poor'; readonly balance: number }
  | { readonly kind: 'taken' };

interface VerdictRow {
  readonly id: string;
  readonly placed: boolean;
  readonly open: boolean;
  readonly current: boolean;
  readonly taken: boolean;
  /** One of its agent before it is stale. */
  readonly behind: boolean;
  /** Before the batch; and before this draft, as those of its agent before it leave it. */
  readonly balance: number | null;
  readonly met: number | null;
  readonly staked: number | null;
  readonly debt: number | null;
}

/** Equity from which an agent may predict: the Predictor tier. */
const least_equity = 1_000;

const judge = ({ stake }: PredictionDraft, row: VerdictRow | undefined): StoredVerdict => {
  if (row === undefined) throw new Error('a draft has no verdict');
  const before = row.balance ?? 0;
  const staked = row.staked ?? 0;
  const met = row.met ?? 0;
  // A stake moves points from one to the other, so equity is the same before and after it.
  const equity = before + staked - (row.debt ?? 0);
  if (row.placed) {
    const balance = met - stake;
    return { kind: 'placed', balance, staked: staked + before - balance, equity };
  }
  if (!row.open) return { kind: 'not_open' };
  if (!row.current) return { kind: 'stale' };
  if (row.taken) return { kind: 'taken' };
  if (equity < least_equity) return { kind: 'tier', equity };
  if (row.behind) return { kind: 'stale' };
  return met < stake ? { kind: 'poor', balance: met } : { kind: 'taken' };
};

// The client reads the type of an array off its first element, so booleans and dates go as texts.
const nullable = <T>(values: readonly T[]): T[] => values as T[];

const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

/** Each once, in the order of ids. */
const inOrder = (ids: readonly string[]): string[] => [...new Set(ids)].sort();

/**
 * Accepts a batch in one statement, and so in one transaction: every draft is judged by itself, and
 * those that stand are stored with their stake, ledger entry and event. Several of one agent take
 * their stakes in their order, and none overtakes one that is stale.
 *
 * Locks are taken in the order of ids: of each question, shared, and then of its number, then of
 * accounts; a question has a number since it was made. What is long is read in one place
 * only, and what is judged and joined is short: a row costs by its width at each step it passes,
 * and a part of the statement costs whatever is in it.
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
    a as (
      select agent_id, balance, staked, debt, prediction_count
      from accounts
      where agent_id = any (${inOrder(drafts.map((d) => d.agent_id))}::uuid[])
        -- Whoever else locks numbers and accounts locks the numbers first.
        and (select count(*) from s) >= 0
      order by agent_id
      for update
    ),
    j as (
      select
        d.id, d.question_id, d.agent_id, d.stake, d.seq, d.nth, d.of,
        a.balance, a.staked, a.debt, a.prediction_count,
        s.seq is not null as open,
        s.seq is not distinct from d.seen
          and coalesce(a.prediction_count, d.agent_seen) = d.agent_seen as current,
        -- Those behind it need to know, and who cannot pay for it again; else the conflict tells.
        (d.of > 1 or a.balance < d.stake or a.balance + a.staked - a.debt < ${least_equity})
          and exists (
            select from predictions p
            where (p.question_id, p.agent_id) = (d.question_id, d.agent_id)
          ) as taken
      from unnest(
        ${ids}::uuid[],
        ${question_ids}::uuid[],
        ${drafts.map((d) => d.agent_id)}::uuid[],
        ${drafts.map((d) => d.stake)}::integer[],
        ${numbered.map((n) => n.seq)}::integer[],
        ${numbered.map((n) => n.seen)}::integer[],
        ${numbered.map((n) => n.agent_seen)}::integer[],
        ${numbered.map((n) => n.nth)}::integer[],
        ${numbered.map((n) => n.of)}::integer[]
      ) as d (id, question_id, agent_id, stake, seq, seen, agent_seen, nth, of)
      left join s on s.question_id = d.question_id
      left join a on a.agent_id = d.agent_id
    ),
    first_stale as (
      select agent_id, min(nth) as nth
      from j
      where of > 1 and open and not current
      group by agent_id
    ),
    met as (
      select u.id, u.balance
      from (
        select
          array_agg(id order by nth) as ids,
          balances_before(min(balance), array_agg(stake order by nth)) as balances
        from j
        where of > 1
          and open and current and not taken and balance + staked - debt >= ${least_equity}
        group by agent_id
      ) as of_agent
      cross join lateral unnest(ids, balances) as u (id, balance)
    ),
    placed as (
      insert into predictions (
        question_id, agent_id, id, prediction, probability, confidence, selected_option,
        probabilities, reasoning, citations, stake, model_family, resolution_protocol,
        prior_probability, prior_basis, body_digest, event_id, created_at, seq, owner_id
      )
      select
        j.question_id, j.agent_id, j.id, d.prediction::boolean, d.probability, d.confidence,
        d.selected_option, d.probabilities::smallint[], d.reasoning,
        string_to_array(d.citations, e'\n'), j.stake, d.model_family,
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
      left join met on met.id = j.id
      left join first_stale f on f.agent_id = j.agent_id
      where j.open and j.current and not j.taken and (f.nth < j.nth) is not true
        and coalesce(met.balance, j.balance) >= j.stake
        and j.balance + j.staked - j.debt >= ${least_equity}
      on conflict (question_id, agent_id) do nothing
      returning id, event_id, owner_id, created_at
    ),
    p as (
      select
        placed.*, j.question_id, j.agent_id, j.stake, j.seq, j.balance, j.staked,
        j.prediction_count, coalesce(met.balance, j.balance) - j.stake as balance_after
      from placed
      join j on j.id = placed.id
      left join met on met.id = j.id
    ),
    advanced as (
      update question_seqs c
      set seq = last.seq
      from (select question_id, max(seq) as seq from p group by question_id) as last
      where c.question_id = last.question_id
    ),
    moved as (
      -- From the locked values: the checks of the table are made before it is known whether the row
      -- has changed since the statement began.
      update accounts c
      set
        balance = of_agent.balance - of_agent.stakes,
        staked = of_agent.staked + of_agent.stakes,
        prediction_count = of_agent.prediction_count + of_agent.placed
      from (
        select
          agent_id, balance, staked, prediction_count,
          sum(stake)::integer as stakes, count(*)::integer as placed
        from p
        group by agent_id, balance, staked, prediction_count
      ) as of_agent
      where c.agent_id = of_agent.agent_id
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select agent_id, id, 'stake', -stake, balance_after, id, question_id, created_at
      from p
    ),
    emitted as (
      insert into outbox (id, event, question_id, agent_id, owner_id, body)
      select p.event_id, 'prediction.placed', p.question_id, p.agent_id, p.owner_id, e.body
      from unnest(${ids}::uuid[], ${drafts.map((d) => d.event_body)}::text[]) as e (id, body)
      join p on p.id = e.id
    )
    select
      j.id, placed.id is not null as placed, j.open, j.current, j.taken,
      (f.nth < j.nth) is true as behind, j.balance, j.staked, j.debt,
      coalesce(met.balance, j.balance) as met
    from j
    left join placed on placed.id = j.id
    left join met on met.id = j.id
    left join first_stale f on f.agent_id = j.agent_id`;
  const by_id = new Map(rows.map((row) => [row.id, row]));
  return drafts.map((draft) => judge(draft, by_id.get(draft.id)));
};
