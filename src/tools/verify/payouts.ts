import { net as netOf, points_rule } from '../../features/points/index.js';
import { distributionOf } from '../../features/predictions/index.js';
import { scoreForecast } from '../../features/scores/index.js';
import type { Tx } from '../../kit/pg/client.js';
import { chunk, makeFindings } from './parts.js';
import { type PaidPrediction, streamPaid } from './payout-store.js';

/**
 * What each prediction was paid, worked out again from what was stated and what was decided: open
 * or voided, nothing; resolved, the net, once, at the latest revision that has come to it.
 */

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
  for await (const page of streamPaid(tx, chunk)) {
    for (const paid of page) {
      const problem = checkOne(paid);
      if (problem !== null) found.add(problem);
    }
  }
  return found.lines;
};
