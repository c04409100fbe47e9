import { net as netOf } from '../../features/points/index.js';
import { distributionOf } from '../../features/predictions/index.js';
import { scoreForecast } from '../../features/scores/index.js';
import type { Tx } from '../../kit/pg/client.js';
import { chunk, makeFindings } from './parts.js';
import { type PaidPrediction, streamPaid } from './payout-store.js';

/**
 * What each prediction was paid, worked out again from what was stated and what was decided: open,
 * its stake is held; voided, it is back; resolved, stake and net are paid, once, at the latest
 * revision that has come to it.
 */

const correctOf = ({ outcome, correct_options, options }: PaidPrediction): readonly number[] =>
  outcome === null
    ? (correct_options ?? []).map((option) => options.indexOf(option))
    : [outcome ? 0 : 1];

/** Sums of the same terms in another order differ in their last bits. */
const tolerance = 1e-9;

const checkOne = (paid: PaidPrediction): string | null => {
  const { id, kind, stake, total, returned, revision, scored_net, scored_revision } = paid;
  const is_scored = scored_revision !== null;
  if (kind === null) {
    if (total === -stake && !is_scored) return null;
    return `prediction ${id} is open with a stake of ${stake}, the ledger holds ${-total}`;
  }
  if (returned !== stake) return `prediction ${id} staked ${stake} and got ${returned} back`;
  if (kind === 'void') {
    if (total === 0 && !is_scored) return null;
    return `prediction ${id} is void, and the ledger says ${total}`;
  }
  const distribution = distributionOf(paid, paid.options.length === 0 ? 2 : paid.options.length);
  const correct = correctOf(paid);
  const net = netOf(paid.weight, distribution, correct);
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
