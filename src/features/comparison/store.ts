import type { Db } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import { whole_bp } from '../../kit/percent.js';
import { distributionOf, type ForecastColumns } from '../predictions/distribution.js';
import type { Chances, MeanSums, OpenQuestion } from './rules.js';
import type { ResolvedDifference } from './schema.js';

/** Reads what two forecasters have in common. */

/** Only the newest scores of each forecaster are compared, so a request costs a bounded time. */
export const max_scores = 10_000;
/** Maximum number of open questions that are compared. */
const max_open = 100;
/** Maximum number of rows in each list of differences. */
export const max_listed = 8;

export interface Side {
  readonly kind: 'agent' | 'family';
  /** The id of the agent or the name of the family. */
  readonly id: string;
}

type Sides = readonly [a: Side, b: Side];

/** A number in the text of a statement. With a parameter, Postgres would read whole tables. */
const fixed = (db: Db, n: number) => db.unsafe(String(n));

/**
 * The newest Brier scores of a forecaster. A family's scores come from `group_scores`, as on its
 * boards.
 */
const scoresOf = (db: Db, { kind, id }: Side) => {
  const columns = db`question_id, forecast, stated, hit, brier, resolved_at`;
  const source =
    kind === 'agent'
      ? db`scores where agent_id = ${id} and brier is not null`
      : db`group_scores where kind = 'family' and name = ${id}`;
  return db`select ${columns} from ${source} order by resolved_at desc limit ${fixed(db, max_scores)}`;
};

/**
 * Questions on which both have a Brier score. `won` is 1 if `a` has the lower one, 0 for a tie and
 * -1 otherwise. It compares whole billionths, so that errors of floating point are ties.
 */
const pairs = (db: Db, [a, b]: Sides) => db`
  pairs as (
    select
      a.question_id, a.resolved_at,
      a.forecast as a_forecast, a.stated as a_stated, a.hit as a_hit, a.brier as a_brier,
      b.forecast as b_forecast, b.stated as b_stated, b.hit as b_hit, b.brier as b_brier,
      sign(round((b.brier - a.brier) * 1e9)) as won
    from (${scoresOf(db, a)}) a
    join (${scoresOf(db, b)}) b using (question_id)
  )`;

export interface Totals extends MeanSums {
  readonly wins: number;
  readonly ties: number;
}

/** Sums the differences in Brier score of `a` to `b`. */
export const readTotals = async (db: Db, sides: Sides): Promise<Totals> => {
  const row = await firstRow(db<Totals[]>`
    with ${pairs(db, sides)}
    select
      count(*)::integer as n,
      (count(*) filter (where won > 0))::integer as wins,
      (count(*) filter (where won = 0))::integer as ties,
      coalesce(sum(round((a_brier - b_brier) * 1e9)::bigint), 0)::bigint as sum,
      coalesce(sum(round((a_brier - b_brier) ^ 2 * 1e9)::bigint), 0)::bigint as squares
    from pairs`);
  return row ?? { n: 0, wins: 0, ties: 0, sum: 0, squares: 0 };
};

export interface BinRow extends MeanSums {
  readonly side: 'a' | 'b';
  readonly bin: number;
  readonly stated: number;
  readonly hits: number;
}

/** Sums of each side by stated chance, as for the calibration of an agent. */
export const readBins = (db: Db, sides: Sides) => db<BinRow[]>`
  with ${pairs(db, sides)}
  select
    side,
    least(stated / 1000, 9) as bin,
    count(*)::integer as n,
    sum(stated)::bigint as stated,
    (count(*) filter (where hit))::integer as hits,
    sum(round(brier * 1e9)::bigint)::bigint as sum,
    sum(round(brier ^ 2 * 1e9)::bigint)::bigint as squares
  from pairs
  cross join lateral (
    values ('a', a_stated, a_hit, a_brier), ('b', b_stated, b_hit, b_brier)
  ) as s (side, stated, hit, brier)
  group by side, bin
  order by side, bin`;

type DifferenceRow = Pick<
  ResolvedDifference,
  'question_id' | 'question' | 'outcome' | 'correct_options'
> &
  Readonly<Record<'a_forecast' | 'a_brier' | 'b_forecast' | 'b_brier', number>> & {
    readonly resolved_at: Date;
  };

/** The resolved questions with the largest differences in Brier score, without hidden forecasts. */
export const listResolved = (db: Db, sides: Sides) => db<DifferenceRow[]>`
  with ${pairs(db, sides)},
  largest as (
    select *, abs(a_brier - b_brier) as difference
    from pairs
    where not exists (
      select
      from predictions p
      where p.question_id = pairs.question_id
        and p.agent_id = any (${agentsOf(sides)}::uuid[])
        and p.hidden_at is not null
    )
    order by difference desc, question_id
    limit ${fixed(db, max_listed)}
  )
  select
    l.question_id, q.question, q.outcome, q.correct_options, l.resolved_at, l.a_forecast, l.a_brier,
    l.b_forecast, l.b_brier
  from largest l
  join questions q on q.id = l.question_id
  order by l.difference desc, l.question_id`;

const agentsOf = (sides: Sides): string[] =>
  sides.flatMap(({ kind, id }) => (kind === 'agent' ? [id] : []));

/** Questions of a number or a date have no chances that could be compared. */
const isOpen = (db: Db) => db`q.status = 'open' and q.question_type in ('binary', 'multi')`;

/**
 * Lists open questions to compare: the newest that the agents forecast. If both sides are families,
 * those with the most forecasts.
 */
export const listOpen = (db: Db, sides: Sides): Promise<readonly OpenQuestion[]> => {
  const most = fixed(db, max_open);
  const [first, second = first] = agentsOf(sides);
  if (first === undefined || second === undefined) {
    return db<OpenQuestion[]>`
      select q.id, q.question, q.options
      from questions q
      join question_counts n on n.question_id = q.id
      where ${isOpen(db)} and n.prediction_count > 1
      order by n.prediction_count desc, q.id desc
      limit ${most}`;
  }
  return db<OpenQuestion[]>`
    select q.id, q.question, q.options
    from predictions a
    join predictions b on b.question_id = a.question_id and b.agent_id = ${second}
    join questions q on q.id = a.question_id
    where a.agent_id = ${first} and a.hidden_at is null and b.hidden_at is null and ${isOpen(db)}
    order by q.id desc
    limit ${most}`;
};

/** Reads the chances that an agent states on some open questions. */
export const readChances = async (
  db: Db,
  agent_id: string,
  questions: readonly OpenQuestion[],
): Promise<Chances> => {
  const rows = await db<(ForecastColumns & { readonly question_id: string })[]>`
    select question_id, prediction, probability, confidence, selected_option, probabilities
    from predictions
    where agent_id = ${agent_id} and hidden_at is null and cdf is null
      and question_id = any (${questions.map(({ id }) => id)}::uuid[])`;
  const options = new Map(questions.map(({ id, options: { length } }) => [id, length]));
  return new Map(
    rows.map((row) => {
      const { units, whole } = distributionOf(row, options.get(row.question_id) ?? 2);
      const chances = units.map((unit) => Math.round((whole_bp * unit) / whole) / 100);
      return [row.question_id, row.probability === null ? chances : chances.slice(0, 1)];
    }),
  );
};
