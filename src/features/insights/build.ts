import { capital, counted, grouped, percentText, scoreText } from '../../kit/prose.js';
import type { Mover } from '../history/index.js';
import { brier_convention } from '../scores/index.js';
import {
  contestedOf,
  type DayAsk,
  daily_limits,
  type MeanRow,
  meanOf,
  outcomeText,
  type ResolvedRow,
  type SideRow,
  scoreCrowd,
  thousandth,
} from './rules.js';
import type { Daily } from './schema.js';
import type { AgentDay, Counts, FamilyDay, FamilyScore, ListedRow, ScoreRow } from './store.js';

/** A day from its rows; the same rows make the same day. */

export interface DayInput {
  readonly ask: DayAsk;
  readonly families: readonly FamilyDay[];
  readonly agents: number;
  readonly counts: Counts;
  readonly movers: readonly Mover[];
  readonly names: ReadonlyMap<
    string,
    { readonly question: string; readonly options: readonly string[] }
  >;
  readonly sides: readonly SideRow[];
  readonly published: readonly ListedRow[];
  readonly closing: readonly ListedRow[];
  readonly resolved: readonly ResolvedRow[];
  readonly means: ReadonlyMap<string, readonly MeanRow[]>;
  readonly scores: ReadonlyMap<string, ScoreRow>;
  readonly top_agents: readonly AgentDay[];
  readonly family_scores: readonly FamilyScore[];
}

const listed = (rows: readonly ListedRow[]): Daily['new'] => ({
  total: rows[0]?.total ?? 0,
  questions: rows.map(({ id, question, category, closes_at }) => ({
    ...{ question_id: id, question, category, closes_at: closes_at.toISOString() },
  })),
});

const moversOf = ({ movers, names }: DayInput): Daily['movers'] =>
  movers.flatMap((mover) => {
    const named = names.get(mover.question_id);
    if (named === undefined) return [];
    return [
      {
        question_id: mover.question_id,
        question: named.question,
        option: mover.option === null ? null : (named.options[mover.option] ?? null),
        before: mover.before,
        after: mover.after,
        change: mover.change,
        predictions_before: mover.count_before,
        predictions_after: mover.count_after,
      },
    ];
  });

type ResolvedItem = Daily['resolved']['questions'][number];

const resolvedItem = ({ means, scores }: DayInput, row: ResolvedRow): ResolvedItem => {
  const own = means.get(row.id) ?? [];
  const crowd = scoreCrowd(row, own);
  const agents = scores.get(row.id);
  return {
    question_id: row.id,
    question: row.question,
    outcome: outcomeText(row),
    revision: row.revision,
    predictions: own[0]?.count ?? 0,
    crowd: crowd === null ? null : crowd.crowd,
    crowd_brier: crowd === null ? null : thousandth(crowd.brier),
    even_brier: crowd === null ? null : thousandth(crowd.even),
    median_agent_brier: agents === undefined ? null : thousandth(agents.median),
    best_agent_brier: agents === undefined ? null : thousandth(agents.best),
  };
};

const known = (values: readonly (number | null)[]): number[] =>
  values.filter((value): value is number => value !== null);

const resolvedOf = (input: DayInput): Daily['resolved'] => {
  const items = input.resolved.map((row) => resolvedItem(input, row));
  const scored = items.filter(({ crowd_brier }) => crowd_brier !== null);
  const better = scored.filter(({ crowd_brier, even_brier }) => crowd_brier! < even_brier!);
  const mean = (of: (item: ResolvedItem) => number | null) => meanOf(known(scored.map(of)));
  return {
    total: items.length,
    scored: scored.length,
    better_than_even: better.length,
    crowd_brier: mean((item) => item.crowd_brier),
    even_brier: mean((item) => item.even_brier),
    median_agent_brier: mean((item) => item.median_agent_brier),
    best_agent_brier: mean((item) => item.best_agent_brier),
    brier_convention,
    questions: [...items]
      .sort((a, b) => b.predictions - a.predictions || (a.question_id < b.question_id ? -1 : 1))
      .slice(0, daily_limits.listed),
  };
};

/** Families that predicted on the day or had predictions resolved; the best score first. */
const familiesOf = ({ families, family_scores }: DayInput): Daily['families'] => {
  const names = new Set([...families, ...family_scores].map(({ model_family }) => model_family));
  const rows = [...names].map((model_family) => {
    const day = families.find((one) => one.model_family === model_family);
    const score = family_scores.find((one) => one.model_family === model_family);
    return {
      model_family,
      predictions: day?.predictions ?? 0,
      agents: day?.agents ?? 0,
      resolved: score?.resolved ?? 0,
      correct: score?.correct ?? 0,
      brier: score === undefined ? null : thousandth(score.brier),
    };
  });
  return rows.sort(
    (a, b) =>
      (a.brier ?? 2) - (b.brier ?? 2) ||
      b.predictions - a.predictions ||
      (a.model_family < b.model_family ? -1 : 1),
  );
};

const activityText = ({ predictions, agents, families, questions }: Daily['activity']): string =>
  predictions === 0
    ? 'Nobody predicted.'
    : `${capital(counted(predictions, 'prediction'))} by ${counted(agents, 'agent')} of ` +
      `${counted(families, 'family', 'families')} on ${counted(questions, 'question')}.`;

const lifeText = ({ published, resolved, voided }: Daily['activity']): readonly string[] => {
  const parts = [
    ...(published === 0 ? [] : [`${counted(published, 'question')} published`]),
    ...(resolved === 0 ? [] : [`${grouped(resolved)} resolved`]),
    ...(voided === 0 ? [] : [`${grouped(voided)} voided`]),
  ];
  return parts.length === 0 ? [] : [`${capital(parts.join(', '))}.`];
};

const crowdText = (resolved: Daily['resolved']): readonly string[] => {
  const { scored, crowd_brier, even_brier, better_than_even, median_agent_brier } = resolved;
  if (scored === 0 || crowd_brier === null || even_brier === null) return [];
  const where =
    scored === 1
      ? 'the question that resolved'
      : `the ${grouped(scored)} questions that resolved with predictions`;
  const against = `against ${scoreText(even_brier)} for even forecasts`;
  const on = better_than_even === scored ? 'all' : grouped(better_than_even);
  const better = better_than_even === 0 ? 'none' : on;
  const share = scored === 1 ? '' : `, and did better than these on ${better} of them`;
  const median =
    median_agent_brier === null
      ? ''
      : ` The median agent had ${scoreText(median_agent_brier)}${scored === 1 ? '' : ' on average'}.`;
  return [
    `On ${where}, the mean forecast had a Brier score of ${scoreText(crowd_brier)} ${against}` +
      `${share}.${median}`,
  ];
};

const moverText = (movers: Daily['movers']): readonly string[] => {
  const [first] = movers;
  if (first === undefined) return [];
  const what = first.option === null ? 'YES' : `“${first.option}”`;
  return [
    `The largest move was that of ${what} from ${percentText(first.before)} to ` +
      `${percentText(first.after)} on “${first.question}”.`,
  ];
};

const notesOf = ({ ask, resolved, movers }: DayInput, daily: Daily['resolved']): string[] => {
  const again = resolved.filter(({ revision }) => revision > 1).length;
  const open = resolved.filter(({ is_settled }) => !is_settled).length;
  return [
    ...(ask.is_partial ? ['The day is not over: everything here is up to the minute above.'] : []),
    ...(open === 0
      ? []
      : [`The predictions on ${counted(open, 'question')} are still being settled.`]),
    ...(again === 0
      ? []
      : [
          `${capital(counted(again, 'question'))} of this day ${again === 1 ? 'was' : 'were'} ` +
            'decided anew later; the latest decision is scored.',
        ]),
    ...(daily.total === daily_limits.resolved
      ? [`Only the first ${grouped(daily.total)} resolved questions are counted.`]
      : []),
    ...(movers.length === 0
      ? []
      : [
          `Moves are those of questions with at least ${daily_limits.least_before} predictions ` +
            'before the day.',
        ]),
  ];
};

export const buildDay = (input: DayInput): Daily => {
  const { ask, families, counts, agents } = input;
  const resolved = resolvedOf(input);
  const movers = moversOf(input);
  const activity = {
    predictions: families.reduce((sum, row) => sum + row.predictions, 0),
    agents,
    families: families.length,
    ...counts,
    resolved: resolved.total,
  };
  return {
    date: ask.date,
    from: ask.from.toISOString(),
    to: ask.to.toISOString(),
    partial: ask.is_partial,
    headline: [
      activityText(activity),
      ...lifeText(activity),
      ...moverText(movers),
      ...crowdText(resolved),
    ],
    activity,
    movers,
    contested: contestedOf(input.sides),
    new: listed(input.published),
    closing_soon: listed(input.closing),
    resolved,
    top_agents: input.top_agents.map((row) => ({ ...row, brier: thousandth(row.brier) })),
    families: familiesOf(input),
    notes: notesOf(input, resolved),
  };
};
