import { type Db, readPages, type Tx } from '../../db/client.js';
import type { Fit, Measured, ResolvedQuestion } from './correlation.js';

/** Fits of ρ, and the forecasts from which they are measured. */

/** Returns all fits, oldest first. */
export const readFits = (db: Db) => db<Fit[]>`
  select number, rho, extract(epoch from from_at)::float8 * 1000 as from_ms
  from consensus_fits
  order by number`;

/** Reads resolved yes/no questions with the final forecasts, in pages. */
export const readResolved = (tx: Tx) =>
  readPages(
    tx,
    tx<ResolvedQuestion[]>`
    select
      q.outcome,
      json_agg(json_build_object(
        'agent', p.agent_id, 'owner', coalesce(p.owner_id, p.agent_id),
        'family', p.model_family, 'value', p.probability
      )) as forecasts
    from questions q
    join predictions p on p.question_id = q.id
    where q.status = 'resolved' and q.question_type = 'binary'
    group by q.id`,
    100,
  );

/** Lets one timer at a time continue. Returns whether this day already has a fit. */
export const lockFits = async (tx: Tx, day: Date): Promise<boolean> => {
  await tx`lock table consensus_fits in share row exclusive mode`;
  const rows = await tx`select number from consensus_fits where fitted_at >= ${day} limit 1`;
  return rows.length > 0;
};

export const putFit = async (
  tx: Tx,
  { measured, questions, rho }: Measured,
  { fitted_at, from_at }: { readonly fitted_at: Date; readonly from_at: Date },
): Promise<void> => {
  await tx`
    insert into consensus_fits (number, rho, measured, questions, fitted_at, from_at)
    select
      coalesce(max(number), 0) + 1, ${rho}, ${measured}, ${questions}, ${fitted_at}, ${from_at}
    from consensus_fits`;
};
