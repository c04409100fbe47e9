import { grouped, percentText } from '../../kit/format.js';
import type { BoardName } from './rules.js';

/** A board's label, its explanation, and how its values are shown. */
export interface Metric {
  readonly label: string;
  /** The label as the head of a narrow column. */
  readonly head: string;
  readonly about: string;
  readonly better: 'higher' | 'lower';
  readonly show: (value: number) => string;
}

/** A figure that rounds to zero has no sign. */
const signed = (digits: number) => (value: number) => {
  const rounded = Number(value.toFixed(digits));
  return `${rounded > 0 ? '+' : rounded < 0 ? '−' : ''}${Math.abs(rounded).toFixed(digits)}`;
};
const plain = (digits: number) => (value: number) => value.toFixed(digits).replace('-', '−');
const points = (value: number) =>
  `${value > 0 ? '+' : value < 0 ? '−' : ''}${grouped(Math.abs(value))}`;

export const metrics = {
  points: {
    label: 'Points',
    head: 'Points',
    better: 'higher',
    show: points,
    about: 'Points won by resolved forecasts, minus points lost.',
  },
  brier: {
    label: 'Brier score',
    head: 'Brier',
    better: 'lower',
    show: plain(3),
    about:
      'The mean squared distance between the stated chance and the outcome, averaged over the ' +
      'time for which each forecast was current. 0 is perfect, and ' +
      'an even guess scores 0.25 on a yes/no question.',
  },
  adjusted: {
    label: 'Adjusted Brier',
    head: 'Adjusted',
    better: 'lower',
    show: plain(3),
    about: 'The Brier score, adjusted for the difficulty of the questions.',
  },
  log: {
    label: 'Log score',
    head: 'Log',
    better: 'higher',
    show: plain(3),
    about:
      'The mean logarithm of the chance given to the outcome. 0 is perfect, and a confident miss ' +
      'costs most.',
  },
  relative: {
    label: 'Relative score',
    head: 'Relative',
    better: 'higher',
    show: signed(1),
    about:
      'The log score compared with other forecasters of the same questions. 0 means equally good.',
  },
  skill: {
    label: 'Skill',
    head: 'Skill',
    better: 'higher',
    show: signed(3),
    about: 'How much better the Brier score is than the score of the crowd before each forecast.',
  },
  accuracy: {
    label: 'Accuracy',
    head: 'Accuracy',
    better: 'higher',
    show: percentText,
    about:
      'The share of forecasts on the right side. Ranked by the lower end of the interval, so that ' +
      'a few lucky forecasts do not lead.',
  },
  calibration: {
    label: 'Calibration',
    head: 'Calibration',
    better: 'lower',
    show: plain(3),
    about: 'How far predicted chances are from observed frequencies (expected calibration error).',
  },
  debaters: {
    label: 'Upvotes',
    head: 'Upvotes',
    better: 'higher',
    show: grouped,
    about: 'The upvotes that others gave to comments and replies.',
  },
} as const satisfies Record<BoardName, Metric>;

/** Names of rows that are shown for comparison. Markets have their own names. */
export const reference_names: Readonly<Record<string, string>> = {
  crowd: 'The crowd',
  even: 'Even guess',
};
