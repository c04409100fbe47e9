import { dayText, grouped, timeText } from '../../kit/format.js';
import { valueText } from '../questions/range.js';
import { brief_limits } from './rules.js';
import type { Brief } from './schema.js';
import type { BriefInput } from './store.js';

/** Writes the sentences of a brief: its main figures in words, and how far to trust them. */

const predictions = (n: number): string => counted(n, 'prediction');

const standText = ({ state }: Brief, question: BriefInput['question']): string => {
  const { total_predictions: n, position, p25, p75, forecast } = state;
  if (n === 0) return 'No agent has predicted on it yet.';
  if (state.quantiles !== undefined) {
    const { p25: low, p50, p75: high } = state.quantiles;
    const [median, from, to] = [p50, low, high].map((value) => valueText(value, question));
    const half = `half the chance between ${from} and ${to}`;
    return `${predictions(n)} put the median at ${median}, with ${half}.`;
  }
  const is_binary = state.options.length === 0;
  if (!is_binary && position === null) return `${predictions(n)} are split, with no option ahead.`;
  const whom = is_binary ? 'YES' : position;
  if (n === 1) {
    return `The only prediction gives ${whom} ${percentText(forecast ?? 0)}.`;
  }
  const level = percentText(forecast ?? 0);
  const spread =
    p25 === null || p75 === null || n < 4
      ? ''
      : `; the middle half of them is between ${percentText(p25)} and ${percentText(p75)}`;
  return `Combined, ${predictions(n)} give ${whom} ${level}${spread}.`;
};

const span_names = { '1d': 'day', '7d': '7 days', '30d': '30 days' } as const;

/** Describes the shortest window that has a new prediction. */
const momentumText = ({ momentum, state }: Brief, is_over: boolean): string => {
  const comparable = momentum.windows.filter(({ from }) => from !== null);
  const window = comparable.find(({ new_predictions }) => new_predictions > 0);
  const last = is_over ? 'its last' : 'the last';
  const longest = comparable.at(-1);
  if (longest === undefined)
    return `All ${predictions(state.total_predictions)} came in ${last} day.`;
  if (window === undefined) return `No prediction came in ${last} ${span_names[longest.name]}.`;
  const [from, to] = [percentText(window.from ?? 0), percentText(window.to ?? 0)];
  const moved = from === to ? `stayed at ${to}` : `went from ${from} to ${to}`;
  const fresh = counted(window.new_predictions, 'new prediction');
  const within = `in ${last} ${span_names[window.name]}`;
  return `${capital(momentum.measure)} ${moved} ${within}, with ${fresh}.`;
};

const mediansText = ({ families }: Brief, question: BriefInput['question']): string[] => {
  const rows = families.rows.flatMap(({ model_family, median }) =>
    median === undefined ? [] : `${model_family} (${valueText(median, question)})`,
  );
  return rows.length < 2 ? [] : [`The medians of the model families are ${rows.join(', ')}.`];
};

const familiesText = ({ families }: Brief): string => {
  const rows = [...families.rows].sort(
    (a, b) => (b.mean_probability ?? 0) - (a.mean_probability ?? 0),
  );
  const [high, low] = [rows[0], rows.at(-1)];
  if (high === undefined || low === undefined || high === low) {
    return `All predictions come from one model family, ${high?.model_family}.`;
  }
  const [most, least] = [high, low].map(
    ({ model_family, mean_probability: mean }) => `${model_family} (${percentText(mean ?? 0)})`,
  );
  const what = families.position;
  return `Among ${rows.length} model families, ${most} is highest on ${what} and ${least} lowest.`;
};

const minorityText = ({ minority, state }: Brief): string => {
  const { position, count } = minority;
  if (position === null) {
    return state.position === null ? 'No side is ahead.' : 'All predictions are on one side.';
  }
  const share = percentText((100 * count) / state.total_predictions);
  return `${predictions(count)} (${share}) ${count === 1 ? 'is' : 'are'} on ${position}.`;
};

const dueText = (at: Date, as_of: Date): string => {
  const ms = at.getTime() - as_of.getTime();
  return ms >= 0 ? `in ${spanText(ms)}` : `${spanText(-ms)} ago`;
};

/** Says which chance the headline gave to the outcome. */
const givenText = ({ resolution, state }: Brief): string => {
  const { outcome, brier } = resolution;
  const { forecast, total_predictions: n } = state;
  const is_binary = state.options.length === 0;
  if (n === 0 || outcome === null || state.quantiles !== undefined) return '';
  const correct = outcome.split(' | ');
  const chances = state.options.filter(({ option }) => correct.includes(option));
  const chance = chances.reduce((sum, one) => sum + (one.forecast ?? 0), 0);
  if (!is_binary) return ` Combined, the predictions gave it ${percentText(chance)}.`;
  const given = outcome === 'YES' ? (forecast ?? 0) : 100 - (forecast ?? 0);
  const score = brier === null ? '' : `: a Brier score of ${scoreText(brier)}`;
  return ` Combined, the predictions gave it ${percentText(given)}${score}.`;
};

const endingText = (brief: Brief, { question, as_of, ended_at, life }: BriefInput): string => {
  const { status, closes_at, resolved_at, revision } = question;
  const due = `resolves by ${dayText(question.resolution_date)}`;
  if (status === 'draft') return 'It is a draft and accepts no predictions yet.';
  if (status === 'voided') {
    return `It was voided on ${dayText(life.voided_at ?? as_of)} and is not scored.`;
  }
  if (status === 'resolved') {
    const again = revision > 1 ? ` (revision ${revision})` : '';
    const day = dayText(resolved_at ?? as_of);
    return `It resolved to ${brief.resolution.outcome} on ${day}${again}.${givenText(brief)}`;
  }
  if (ended_at !== null) {
    return `It stopped accepting predictions on ${timeText(ended_at)} and ${due}.`;
  }
  const until = `${timeText(closes_at)} (${dueText(closes_at, as_of)})`;
  return `It accepts predictions until ${until} and ${due}.`;
};

export const headlineOf = (brief: Brief, input: BriefInput): string[] => [
  standText(brief, input.question),
  ...(brief.state.quantiles !== undefined
    ? mediansText(brief, input.question)
    : brief.state.total_predictions < 2
      ? []
      : [momentumText(brief, input.ended_at !== null), familiesText(brief), minorityText(brief)]),
  endingText(brief, input),
];

const few = 10;

const mostOfOneOwner = ({ sample }: BriefInput): number => {
  const owners = new Map<string, number>();
  for (const { owner } of sample) owners.set(owner, (owners.get(owner) ?? 0) + 1);
  return Math.max(0, ...owners.values());
};

/** Returns notes about the weaknesses of this question's figures and arguments. */
export const notesOf = (input: BriefInput): string[] => {
  const { consensus, sample, sees_reasoning, life } = input;
  const { total_predictions: n } = consensus;
  const most = mostOfOneOwner(input);
  const is_sampled = sample.length + life.hidden < n;
  const notes: readonly [boolean, string][] = [
    [n > 0 && n < few, `With only ${predictions(n)}, each one moves these figures a lot.`],
    [n > 1 && 2 * most > n, `Agents of one owner made ${grouped(most)} of ${predictions(n)}.`],
    [
      !sees_reasoning,
      'Reasoning on open questions is shown only to agents that have predicted. It is left out ' +
        'here, with its arguments and sources.',
    ],
    [
      life.hidden > 0,
      `${predictions(life.hidden)} ${life.hidden === 1 ? 'is' : 'are'} hidden by moderators. ` +
        'Hidden forecasts still count, but their texts are not shown.',
    ],
    [
      sees_reasoning && is_sampled,
      `Arguments and sources come from the newest ${grouped(brief_limits.newest)} predictions ` +
        'and the most upvoted ones.',
    ],
  ];
  return notes.filter(([holds]) => holds).map(([, note]) => note);
};

/** Returns a count with its noun: `1 prediction`, `2 predictions`, `no predictions`. */
export const counted = (n: number, one: string, several = `${one}s`): string =>
  n === 0 ? `no ${several}` : `${grouped(n)} ${n === 1 ? one : several}`;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Rounds a percentage to a whole number, but never rounds an uncertain value to 0 or 100 %. */
export const percentText = (value: number): string => {
  if (value > 0 && value < 0.5) return 'under 1 %';
  if (value < 100 && value >= 99.5) return 'over 99 %';
  return `${Math.round(value)} %`;
};

const day_ms = 86_400_000;
const hour_ms = 3_600_000;

/** Returns a duration in days if it is two days or longer, otherwise in hours. */
const spanText = (ms: number): string => {
  if (ms >= 2 * day_ms) return counted(Math.round(ms / day_ms), 'day');
  if (ms < hour_ms) return 'less than an hour';
  return counted(Math.floor(ms / hour_ms), 'hour');
};

/** Returns `0.234` for 0.2344. */
export const scoreText = (score: number): string => score.toFixed(3);
