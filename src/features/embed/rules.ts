import type { Consensus } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import { type Theme, themes, type View, views } from './schema.js';

/** What a widget says, as texts. */

export const viewOf = (asked: string | undefined): View =>
  views.find((view) => view === asked) ?? views[0];
export const themeOf = (asked: string | undefined): Theme =>
  themes.find((theme) => theme === asked) ?? themes[0];

/** Whole percents; what is not quite nothing, or not quite everything, is not shown as that. */
export const percentText = (value: number | null): string => {
  if (value === null) return '–';
  if (value > 0 && value < 0.5) return '<1%';
  if (value < 100 && value >= 99.5) return '>99%';
  return `${Math.round(value)}%`;
};

export const countText = (value: number): string => value.toLocaleString('en-US');

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** `3 Mar 2026`, in UTC. */
export const dayText = (at: Date): string =>
  `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`;

/** `3 Mar 2026, 09:05 UTC`. */
export const timeText = (at: Date): string =>
  `${dayText(at)}, ${at.toISOString().slice(11, 16)} UTC`;

/** Text in a place that cannot isolate it: without controls of direction and invisible signs. */
export const plainLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();

export interface Headline {
  /** The number in large type; a percentage 0–100, null while there is no forecast. */
  readonly value: number | null;
  readonly caption: string;
}

/** Binary: the mean probability of yes. Multi: that of the leading option. */
export const headlineOf = (consensus: Consensus): Headline =>
  consensus.question_type === 'binary'
    ? { value: consensus.mean_probability, caption: 'chance of Yes' }
    : { value: consensus.forecast, caption: 'chance of' };

export interface Standing {
  readonly kind: 'open' | 'closed' | 'resolved' | 'voided';
  readonly label: string;
  /** What else there is to say of it, and of when. */
  readonly detail: string;
  readonly at: Date | null;
}

export const standingOf = (question: QuestionRow): Standing => {
  const { status, closes_at, resolved_at, resolution_date } = question;
  if (status === 'resolved') {
    const label = `Resolved: ${outcomeOf(question)}`;
    return { kind: 'resolved', label, detail: 'on', at: resolved_at };
  }
  if (status === 'voided') {
    return { kind: 'voided', label: 'Voided', detail: 'without an outcome', at: null };
  }
  if (status === 'closed') {
    return { kind: 'closed', label: 'Closed', detail: 'to be resolved by', at: resolution_date };
  }
  return { kind: 'open', label: 'Open', detail: 'closes', at: closes_at };
};

const outcomeOf = ({ question_type, outcome, correct_options }: QuestionRow): string => {
  if (question_type === 'binary') return outcome === true ? 'Yes' : 'No';
  return (correct_options ?? []).join(', ');
};

/** What people who hear the page are told. */
export const sentenceOf = (consensus: Consensus): string => {
  const { total_predictions: total, question_type, leading_option } = consensus;
  if (total === 0) return 'No forecasts yet.';
  const { value } = headlineOf(consensus);
  const from = total === 1 ? '1 forecast' : `${countText(total)} forecasts`;
  const said =
    question_type === 'binary'
      ? `${percentText(value)} chance of Yes`
      : `${leading_option} leads with a chance of ${percentText(value)}`;
  return `${said}, from ${from}.`;
};
