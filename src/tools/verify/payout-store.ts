import type { PointsRule } from '../../features/points/index.js';
import type { Stated } from '../../features/predictions/index.js';
import { readPages, type Tx } from '../../kit/pg/client.js';

/** Every prediction with what the ledger, the scores and the decisions say of it. */

export interface PaidPrediction extends Stated {
  readonly id: string;
  readonly agent_id: string;
  readonly weight: number;
  readonly options: readonly string[];
  /** The latest decision that has come to this agent; null while the prediction is open. */
  readonly kind: 'resolve' | 'void' | null;
  readonly revision: number | null;
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly points_rule: PointsRule | null;
  readonly scored_net: number | null;
  readonly scored_revision: number | null;
  readonly brier: number | null;
  /** Settlements and reversals together. */
  readonly total: number;
}

export const streamPaid = (tx: Tx, most: number): AsyncIterable<readonly PaidPrediction[]> =>
  readPages(
    tx,
    tx<PaidPrediction[]>`
    with paid as (
      select agent_id, subject_id, sum(amount)::integer as total
      from ledger
      where reason in ('settlement', 'reversal')
      group by agent_id, subject_id
    )
    select
      p.id, p.agent_id, p.prediction, p.probability, p.confidence, p.selected_option,
      p.probabilities, q.weight, q.options, d.kind, d.revision, d.outcome, d.correct_options,
      d.points_rule, s.net as scored_net, s.revision as scored_revision, s.brier,
      coalesce(l.total, 0) as total
    from predictions p
    join questions q on q.id = p.question_id
    left join paid l on l.agent_id = p.agent_id and l.subject_id = p.id
    left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id
    left join lateral (
      select r.kind, r.revision, r.outcome, r.correct_options, r.points_rule
      from resolutions r
      where r.question_id = p.question_id
        and (r.state = 'done' or p.agent_id <= r.cursor_agent)
      order by r.revision desc
      limit 1
    ) d on true`,
    most,
  );
