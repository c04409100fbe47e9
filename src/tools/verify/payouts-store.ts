import { readPages, type Tx } from '../../db/client.js';
import {
  net as netOf,
  type PointsRule,
  points_rule,
  scoreForecast,
} from '../../features/points/index.js';
import { distributionOf, type Stated } from '../../features/predictions/index.js';
import { chunk, makeFindings } from './parts.js';

/**
 * What each prediction was paid, worked out again from what was stated and what was decided: open
 * or voided, nothing; resolved, the net, once, at the latest revision that has come to it.
 */

interface PaidPrediction extends Stated {
  readonly id: string;
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

const readPaid = (tx: Tx): AsyncIterable<readonly PaidPrediction[]> =>
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
      p.id, p.prediction, p.probability, p.confidence, p.selected_option, p.probabilities,
      q.weight, q.options, d.kind, d.revision, d.outcome, d.correct_options, d.points_rule,
      s.net as scored_net, s.revision as scored_revision, s.brier, coalesce(l.total, 0) as total
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
    chunk,
  );

const correctOf = ({ outcome, correct_options, options }: PaidPrediction): readonly number[] =>
  outcome === null
    ? (correct_options ?? []).map((option) => options.indexOf(option))
    : [outcome ? 0 : 1];

/** Sums of the same terms in another order differ in their last bits. */
const tolerance = 1e-9;

const checkOne = (paid: PaidPrediction): string | null => {
  const { id, kind, total, revision, scored_net, scored_revision } = paid;
  if (kind !== 'resolve') {
    if (total === 0 && scored_revision === null) return null;
    const state = kind === null ? 'open' : 'void';
    const scored = scored_revision === null ? 'no score' : 'a score';
    return `prediction ${id} is ${state}, the ledger says ${total}, and it has ${scored}`;
  }
  const distribution = distributionOf(paid, paid.options.length === 0 ? 2 : paid.options.length);
  const correct = correctOf(paid);
  const rule = paid.points_rule ?? points_rule;
  const net = netOf({ weight: paid.weight, distribution, correct, rule });
  if (total !== net) return `prediction ${id} earns ${net}, and the ledger says ${total}`;
  if (scored_net !== net || scored_revision !== revision) {
    return `prediction ${id} earns ${net} by revision ${revision}, its score says ${scored_net} by ${scored_revision}`;
  }
  const { brier } = scoreForecast({ distribution, correct, selected: 0 });
  if (Math.abs(brier - (paid.brier ?? 9)) <= tolerance) return null;
  return `prediction ${id} has a Brier score of ${brier}, and ${paid.brier} is kept`;
};

/** Within the snapshot of the other checks of the record. */
export const checkPayouts = async (tx: Tx): Promise<readonly string[]> => {
  const found = makeFindings();
  for await (const page of readPaid(tx)) {
    for (const paid of page) {
      const problem = checkOne(paid);
      if (problem !== null) found.add(problem);
    }
  }
  return found.lines;
};
