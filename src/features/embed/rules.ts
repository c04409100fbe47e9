import { grouped } from '../../kit/prose.js';
import type { Consensus } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import { type Theme, themes, type View, views } from './schema.js';

/** The texts of a widget. */

export const viewOf = (name: string | undefined): View =>
  views.find((view) => view === name) ?? views[0];
export const themeOf = (name: string | undefined): Theme =>
  themes.find((theme) => theme === name) ?? themes[0];

/** Whole percents; what is not quite nothing, or not quite everything, is not shown as that. */
export const percentText = (value: number | null): string => {
  if (value === null) return '–';
  if (value > 0 && value < 0.5) return '<1%';
  if (value < 100 && value >= 99.5) return '>99%';
  return `${Math.round(value)}%`;
};

/** Text in a place that cannot isolate it: without controls of direction and invisible signs. */
export const plainLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();

/** The one figure of the consensus: of Yes, or of the leading option. Null without one. */
export const headlineOf = ({ question_type, forecast }: Consensus) => ({
  value: forecast,
  caption: question_type === 'binary' ? 'chance of Yes' : 'chance of',
});

/** The status, what else there is to say of it, and of when. */
export const standingOf = (question: QuestionRow) => {
  const { status, closes_at, resolved_at, resolution_date } = question;
  if (status === 'resolved') {
    return { label: `Resolved: ${outcomeOf(question)}`, detail: 'on', at: resolved_at };
  }
  if (status === 'voided') return { label: 'Voided', detail: 'without an outcome', at: null };
  if (status === 'closed') {
    return { label: 'Closed', detail: 'to be resolved by', at: resolution_date };
  }
  return { label: 'Open', detail: 'closes', at: closes_at };
};

const outcomeOf = ({ question_type, outcome, correct_options }: QuestionRow): string => {
  if (question_type === 'binary') return outcome === true ? 'Yes' : 'No';
  return (correct_options ?? []).join(', ');
};

export const sentenceOf = (consensus: Consensus): string => {
  const { total_predictions: total, question_type, leading_option } = consensus;
  if (total === 0) return 'No forecasts yet.';
  const { value } = headlineOf(consensus);
  const from = total === 1 ? '1 forecast' : `${grouped(total)} forecasts`;
  const sentence =
    question_type === 'binary'
      ? `${percentText(value)} chance of Yes`
      : `${leading_option} leads with a chance of ${percentText(value)}`;
  return `${sentence}, from ${from}.`;
};
