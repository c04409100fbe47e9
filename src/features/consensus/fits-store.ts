import { type Db, readPages, type Tx } from '../../db/client.js';
import type { Fit, Measured, ResolvedQuestion } from './correlation.js';

/** Fits of ρ, and what they are measured on. */

/** Oldest first. */
export const readFits = (db: Db) => db<Fit[]>`
  select number, rho, extract(epoch from from_at)::float8 * 1000 as from_ms
  from consensus_fits
  order by number`;

type ResolvedRow = Omit<ResolvedQuestion, 'forecasts'> &
  ResolvedQuestion['forecasts'][number] & { readonly question_id: string };

/** Resolved yes/no questions with what stood at their close, question by question. */
export async function* readResolved(tx: Tx): AsyncGenerator<ResolvedQuestion> {
  const rows = tx<ResolvedRow[]>`
    select
      q.id as question_id, q.outcome, p.agent_id as agent, p.model_family as family,
      coalesce(p.owner_id, p.agent_id) as owner, p.probability as value
    from questions q
    join predictions p on p.question_id = q.id
    where q.status = 'resolved' and q.question_type = 'binary'
    order by q.id`;
  let forecasts: ResolvedRow[] = [];
  for await (const page of readPages<ResolvedRow>(tx, rows, 1_000)) {
    for (const row of page) {
      const [first] = forecasts;
      if (first !== undefined && first.question_id !== row.question_id) {
        yield { outcome: first.outcome, forecasts };
        forecasts = [];
      }
      forecasts.push(row);
    }
  }
  if (forecasts[0] !== undefined) yield { outcome: forecasts[0].outcome, forecasts };
}

/** Of one timer at a time: whether there is a fit of this day already. */
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
