import { grouped, percentText } from '../../kit/format.js';
import { chanceIn, crowdWasRight } from '../consensus/reading.js';
import type { Consensus } from '../consensus/rules.js';
import type { QuestionRow } from '../questions/index.js';
import { showOutcome, valueText } from '../questions/range.js';
import { type Theme, themes, type View, views } from './schema.js';

/** Chooses the texts of a widget. */

export const viewOf = (name: string | undefined): View =>
  views.find((view) => view === name) ?? views[0];
export const themeOf = (name: string | undefined): Theme =>
  themes.find((theme) => theme === name) ?? themes[0];

/** For titles and labels: removes direction controls and invisible characters. */
export const plainLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();

type Asked = Pick<QuestionRow, 'question_type' | 'unit' | 'range_min' | 'range_max'>;

/**
 * Returns the main figure of the consensus: the chance of Yes or of the leading option, or the
 * median of a number or date. A median has no `value`, because a bar can only show percentages.
 */
export const headlineOf = (question: Asked, consensus: Consensus) => {
  const { headline } = consensus;
  const { question_type } = question;
  if (headline !== undefined) {
    const text = valueText(headline.p50, question);
    return { value: null, text, caption: 'median' };
  }
  const value = chanceIn(consensus);
  const caption = question_type === 'binary' ? 'chance of Yes' : 'chance of';
  return { value, text: percentText(value), caption };
};

/** Returns the central 50 % and 90 % ranges. Empty unless the consensus is a distribution. */
export const spreadsOf = (question: Asked, { headline }: Consensus) => {
  if (headline === undefined) return [];
  const { p5, p25, p75, p95 } = headline;
  const between = (low: typeof p5, high: typeof p5): string =>
    `${valueText(low, question)} to ${valueText(high, question)}`;
  return [
    { name: '50% range', between: between(p25, p75) },
    { name: '90% range', between: between(p5, p95) },
  ];
};

/** Returns the status, a detail about it and its time. */
export const statusOf = (question: QuestionRow) => {
  const { status, closes_at, resolved_at, resolution_date } = question;
  if (status === 'resolved') return { label: 'Resolved', detail: 'on', at: resolved_at };
  if (status === 'voided') return { label: 'Voided', detail: 'without an outcome', at: null };
  if (status === 'closed') {
    return { label: 'Closed', detail: 'resolves by', at: resolution_date };
  }
  return { label: 'Open', detail: 'closes', at: closes_at };
};

export const outcomeOf = (question: QuestionRow): string => {
  const { question_type, outcome, correct_options } = question;
  const value = showOutcome(question);
  if (value !== null) return valueText(value, question);
  if (question_type === 'binary') return outcome === true ? 'Yes' : 'No';
  return (correct_options ?? []).join(', ');
};

/** For a resolved question: returns the last forecast and whether it was right. */
export const verdictOf = (question: QuestionRow, consensus: Consensus) => {
  const { total_predictions: total, question_type, leading_option } = consensus;
  const is_right = crowdWasRight(question, consensus);
  if (total === 0) return { is_right, judged: '', last: 'No agent had forecast it' };
  const { text } = headlineOf(question, consensus);
  const said =
    leading_option !== null
      ? `${text} for ${leading_option}`
      : `${text} ${question_type === 'binary' ? 'chance of Yes' : 'as the median'}`;
  const crowd = is_right ? 'The crowd was right.' : 'The crowd was wrong.';
  return { is_right, judged: is_right === null ? '' : crowd, last: `Last forecast: ${said}` };
};

/** Returns the forecast in words. */
export const forecastText = (question: Asked, consensus: Consensus): string => {
  const { total_predictions: total, question_type, leading_option } = consensus;
  if (total === 0) return 'No forecasts yet.';
  const { text } = headlineOf(question, consensus);
  const from = total === 1 ? '1 forecast' : `${grouped(total)} forecasts`;
  const [half] = spreadsOf(question, consensus);
  const sentence =
    half !== undefined
      ? `Median ${text}, 50% chance of ${half.between}`
      : question_type === 'binary'
        ? `${text} chance of Yes`
        : `${leading_option} leads with a chance of ${text}`;
  return `${sentence}, from ${from}.`;
};

/** Returns the content of the widget as text for screen readers. */
export const sentenceOf = (question: QuestionRow, consensus: Consensus): string => {
  if (question.status !== 'resolved') return forecastText(question, consensus);
  const { judged, last } = verdictOf(question, consensus);
  return `Resolved: ${outcomeOf(question)}. ${judged} ${last}.`;
};
