import { type Db, readPages, type Tx } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import type { Fit, Measured, ResolvedQuestion } from './correlation.js';
import type { Mixture, ResolvedShape } from './losses.js';
import type { CandidateKind } from './mixture.js';

/** Fits of ρ and of the headline's weights, and the questions from which they are measured. */

export type Mixtures = Readonly<Record<CandidateKind, Mixture>>;

/** Returns all fits, oldest first. */
export const readFits = (db: Db) => db<Fit[]>`
  select
    number,
    rho,
    case when mixture is not null then
      json_build_object(
        'chance', mixture -> 'chance' -> 'weights', 'number', mixture -> 'number' -> 'weights'
      )
    end as weights,
    extract(epoch from from_at)::float8 * 1000 as from_ms
  from consensus_fits
  order by number`;

const max_number = 2 ** 31 - 1;

export interface StoredFit extends Pick<Fit, 'number' | 'rho'> {
  readonly measured: number | null;
  readonly questions: number;
  readonly mixture: Mixtures | null;
  readonly fitted_at: Date;
  readonly from_at: Date;
}

/** Reads one row more than the page, newest first. Number 0 was not measured. */
export const listFits = (db: Db, { after, offset, limit }: PageRequest) => db<
  (StoredFit & { readonly id: string })[]
>`
  select number::text as id, number, rho, measured, questions, mixture, fitted_at, from_at
  from consensus_fits
  where number > 0 and number < ${Number(after?.[0] ?? max_number)}
  order by consensus_fits.number desc
  offset ${offset}
  limit ${limit + 1}`;

export const countFits = (db: Db) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total from consensus_fits where number > 0`);

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

const min_owners = 3;
const page_size = 100;

/** Lists resolved questions with forecasts by at least three owners, by id, in pages. */
export async function* listScored(tx: Tx): AsyncGenerator<ResolvedShape & { readonly id: string }> {
  const toMs = (time: string) => tx.unsafe(`(extract(epoch from ${time}) * 1000)::float8`);
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const page = await tx<(ResolvedShape & { id: string })[]>`
      select
        q.id, q.question_type, q.options, q.range_min, q.range_max, q.outcome, q.correct_options,
        q.outcome_value,
        ${toMs('q.opens_at')} as opens_ms,
        ${toMs('q.closes_at')} as closes_ms,
        ${toMs('greatest(q.opens_at, least(q.closes_at, q.closed_at, r.known_at))')} as ends_ms
      from questions q
      left join resolutions r on r.question_id = q.id and r.revision = q.revision
      where q.status = 'resolved'
        and q.id > ${after}
        and (
          select count(distinct coalesce(p.owner_id, p.agent_id))
          from predictions p
          where p.question_id = q.id
        ) >= ${min_owners}
      order by q.id
      limit ${page_size}`;
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < page_size) return;
    after = last.id;
  }
}

/** Lets one timer at a time continue. Returns whether this day already has a fit. */
export const lockFits = async (tx: Tx, day: Date): Promise<boolean> => {
  await tx`lock table consensus_fits in share row exclusive mode`;
  const rows = await tx`select number from consensus_fits where fitted_at >= ${day} limit 1`;
  return rows.length > 0;
};

interface NewFit {
  readonly measured: Measured;
  readonly mixture: Mixtures;
  readonly fitted_at: Date;
  readonly from_at: Date;
}

export const putFit = async (
  tx: Tx,
  { measured: { measured, questions, rho }, mixture, fitted_at, from_at }: NewFit,
): Promise<void> => {
  await tx`
    insert into consensus_fits (number, rho, measured, questions, mixture, fitted_at, from_at)
    select
      coalesce(max(number), 0) + 1, ${rho}, ${measured}, ${questions},
      ${JSON.stringify(mixture)}::text::json, ${fitted_at}, ${from_at}
    from consensus_fits`;
};
