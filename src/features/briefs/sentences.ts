import {
  capital,
  counted,
  dayText,
  grouped,
  joined,
  lettered,
  percentText,
  scoreText,
  spanText,
  timeText,
} from '../../kit/prose.js';
import type { Consensus } from './input.js';
import type { Brief, Window } from './schema.js';

/** What a brief says in words. Every sentence is about figures that stand beside it. */

const predictions = (n: number): string => counted(n, 'prediction');
const are = (n: number): string => (n === 1 ? 'is' : 'are');

export interface Standing {
  readonly consensus: Consensus;
  /** As `Sides` has it. */
  readonly leading: string | null;
  readonly is_binary: boolean;
}

const spread = ({ p25, p75, total_predictions: n }: Consensus): string =>
  p25 === null || p75 === null || n < 4 || p25 === p75
    ? ''
    : `; the middle half of them lies between ${percentText(p25)} and ${percentText(p75)}`;

/** One sentence: where the question stands. */
export const standText = ({ consensus, leading, is_binary }: Standing): string => {
  const { total_predictions: n, mean_probability, forecast, leading_option } = consensus;
  if (n === 0) return 'Nobody has predicted on it yet.';
  if (is_binary) {
    const mean = percentText(mean_probability ?? 0);
    return n === 1
      ? `The only prediction gives YES ${mean}.`
      : `${capital(predictions(n))} give YES ${mean} on average${spread(consensus)}.`;
  }
  const level = percentText(forecast ?? 0);
  if (n === 1) return `The only prediction gives ${leading_option} ${level}.`;
  return leading === null
    ? `${capital(predictions(n))} are split, with no option ahead.`
    : `The leading option is ${leading}: ${predictions(n)} give it ${level} on average.`;
};

/** The rest of the figures. */
export const stateText = ({ consensus, leading, is_binary }: Standing): string => {
  const { total_predictions: n, yes_count, no_count, avg_confidence, contested } = consensus;
  if (n === 0) return 'There are no figures before the first prediction.';
  if (n === 1) return 'One prediction has no spread.';
  const said: string[] = [];
  if (is_binary) {
    said.push(
      yes_count === 0 || no_count === 0
        ? `All of them say ${yes_count > 0 ? 'YES' : 'NO'}.`
        : `${grouped(yes_count)} ${yes_count === 1 ? 'says' : 'say'} YES and ` +
            `${grouped(no_count)} ${no_count === 1 ? 'says' : 'say'} NO; the median ` +
            `probability of YES is ${percentText(consensus.median_probability ?? 0)}.`,
    );
    if (consensus.extremized !== null) {
      said.push(
        `Pooled over owners and families and extremised for their diversity, YES is at ` +
          `${percentText(consensus.extremized)}.`,
      );
    }
  } else if (leading !== null) {
    said.push(`The mean confidence in the option taken is ${percentText(avg_confidence ?? 0)}.`);
  }
  if (contested)
    said.push(
      'The question is contested: the second side has at least half the weight of the first.',
    );
  return said.join(' ');
};

const span_names = { '1d': 'day', '7d': '7 days', '30d': '30 days', opening: '' } as const;

const moved = ({ change, from, to }: Window): string => {
  const points = Math.round(Math.abs(change ?? 0));
  if (points === 0) return `has stayed near ${percentText(to ?? 0)}`;
  const verb = (change ?? 0) > 0 ? 'rose' : 'fell';
  return `${verb} from ${percentText(from ?? 0)} to ${percentText(to ?? 0)}`;
};

export interface Moves {
  readonly windows: readonly Window[];
  /** `the mean probability of YES`. */
  readonly measure: string;
  readonly total: number;
  readonly is_open: boolean;
}

const usable = ({ windows }: Moves): readonly Window[] =>
  windows.filter(({ name, from }) => name !== 'opening' && from !== null);

/** As few can move a mean by chance alone. */
const some = 3;

/** The shortest of 1, 7 and 30 days in which some came, else in which any did; null for none. */
const liveliest = (moves: Moves): Window | null => {
  const all = usable(moves).filter(({ new_predictions }) => new_predictions > 0);
  return all.find(({ new_predictions }) => new_predictions >= some) ?? all[0] ?? null;
};

const within = (name: Window['name'], is_open: boolean): string =>
  is_open ? `in the last ${span_names[name]}` : `in its last ${span_names[name]}`;

/** One sentence: whether it moves. */
export const momentumText = (moves: Moves): string => {
  const { windows, total, is_open, measure } = moves;
  if (total < 2) return 'There is no movement to speak of yet.';
  const window = liveliest(moves);
  if (window === null) {
    const quiet = windows.find(({ name, from }) => name === '30d' && from !== null);
    if (quiet !== undefined) return 'No prediction has come in for 30 days or more.';
    const all = windows.find(({ from }) => from === null);
    return (
      `All ${predictions(total)} came ${within(all?.name ?? '1d', is_open)}, so there ` +
      `is nothing earlier to compare with.`
    );
  }
  const { name, new_predictions } = window;
  return (
    `${capital(measure)} ${moved(window)} ${within(name, is_open)}, with ` +
    `${counted(new_predictions, 'new prediction')}.`
  );
};

/** Below this, what some newcomers say may well be chance. */
const telling_points = 10;

/** What the newest say against those before them. */
export const newestText = (moves: Moves): string => {
  const { total, windows } = moves;
  const said: string[] = [];
  const window = usable(moves).find(({ new_predictions }) => new_predictions >= some);
  if (window !== undefined) {
    const { new_predictions: n, new_mean, from } = window;
    const difference = Math.round((new_mean ?? 0) - (from ?? 0));
    if (Math.abs(difference) >= telling_points) {
      said.push(
        `The ${grouped(n)} newest average ${percentText(new_mean ?? 0)}, the ` +
          `${grouped(total - n)} before them ${percentText(from ?? 0)}: newcomers are ` +
          `${difference > 0 ? 'surer' : 'less sure'} of it.`,
      );
    }
  }
  const opening = windows.find(
    ({ name, new_predictions: n }) => name === 'opening' && n > 0 && total - n >= some,
  );
  if (opening !== undefined) {
    const { from, to, new_predictions: later } = opening;
    const [then, now] = [percentText(from ?? 0), percentText(to ?? 0)];
    said.push(
      `After its first 24 hours it stood at ${then}; ${predictions(later)} later it ` +
        `${then === now ? 'still does' : `is at ${now}`}.`,
    );
  }
  return said.join(' ');
};

type FamilyRow = Brief['families']['rows'][number];

/** Fewer say nothing of their family. */
const least_of_family = 3;

export const familiesText = (
  rows: readonly FamilyRow[],
  effective: number,
  what: string,
): string => {
  const [only] = rows;
  if (only === undefined) return 'No family has predicted yet.';
  if (rows.length === 1) {
    return only.count === 1
      ? `The one prediction is by the family ${only.model_family}.`
      : `All predictions are by one family, ${only.model_family}: that they agree may be ` +
          `habit more than evidence.`;
  }
  const first =
    `${capital(counted(rows.length, 'family', 'families'))} predicted; by weight they ` +
    `are as diverse as ${effective.toFixed(1)} equal ones.`;
  const level = (row: FamilyRow): number => row.mean_probability ?? 0;
  const compared = rows
    .filter(({ count }) => count >= least_of_family)
    .sort((a, b) => level(b) - level(a) || (a.model_family < b.model_family ? -1 : 1));
  const [high, low] = [compared[0], compared[compared.length - 1]];
  if (high === undefined || low === undefined || high === low) return first;
  const range = Math.round(level(high)) - Math.round(level(low));
  if (range < 10) {
    const within = range === 0 ? 'within a point' : `within ${counted(range, 'point')}`;
    return `${first} Those with at least ${lettered(least_of_family)} predictions agree ${within}.`;
  }
  const told = (row: FamilyRow): string => `${percentText(level(row))}, ${predictions(row.count)}`;
  return (
    `${first} On ${what}, the furthest apart are ${high.model_family} (${told(high)}) and ` +
    `${low.model_family} (${told(low)}).`
  );
};

export interface Minority {
  readonly position: string | null;
  readonly count: number;
  readonly total: number;
  readonly confidence: number | null;
  readonly others_confidence: number | null;
  /** Families most of whose predictions are with the minority. */
  readonly families: readonly string[];
  readonly opposite: string;
}

export const minorityText = (minority: Minority): string => {
  const { position, count, total, families, confidence, others_confidence, opposite } = minority;
  if (total === 0) return 'There is no minority before there is a majority.';
  if (count === 0) {
    if (total === 1) return 'There is nobody on another side.';
    return opposite === 'YES' || opposite === 'NO'
      ? `Nobody says ${opposite === 'YES' ? 'NO' : 'YES'}.`
      : 'Nobody is on another option.';
  }
  if (position === null)
    return 'The two leading sides have equally many predictions; neither is the minority.';
  const who =
    `${capital(counted(count, 'prediction'))} of ${grouped(total)} ` +
    `(${percentText((100 * count) / total)}) ${are(count)} on ${position}`;
  const sure =
    confidence === null || others_confidence === null
      ? '.'
      : `, with a ${count === 1 ? '' : 'mean '}confidence of ${percentText(confidence)} ` +
        `against ${percentText(others_confidence)} for the others.`;
  if (families.length === 0) return `${who}${sure}`;
  return `${who}${sure} Most predictions of ${joined(families)} are there.`;
};

export interface Ending {
  readonly status: string;
  readonly as_of: Date;
  readonly closes_at: Date;
  readonly resolution_date: Date;
  readonly ended_at: Date | null;
  readonly resolved_at: Date | null;
  readonly voided_at: Date | null;
  readonly revision: number;
  readonly outcome: string | null;
  readonly brier: number | null;
  readonly mean: number | null;
  /** What the predictions gave to what came about, on average; options only. */
  readonly on_outcome: number | null;
}

const due = (at: Date, as_of: Date): string => {
  const ms = at.getTime() - as_of.getTime();
  return ms >= 0 ? `in ${spanText(ms)}` : `${spanText(-ms)} ago`;
};

const scoreOf = ({ brier, mean, on_outcome }: Ending): string => {
  if (brier !== null && mean !== null) {
    const verdict = brier < 0.25 ? 'better than' : brier > 0.25 ? 'worse than' : 'as good as';
    return (
      ` The mean of ${percentText(mean)} has a Brier score of ${scoreText(brier)}, ` +
      `${verdict} the 0.250 of an even forecast.`
    );
  }
  return on_outcome === null
    ? ''
    : ` The predictions gave it ${percentText(on_outcome)} on average.`;
};

/** How and when it resolves, or did. */
export const endingText = (ending: Ending): string => {
  const { status, as_of, closes_at, resolution_date, ended_at, resolved_at, voided_at } = ending;
  if (status === 'draft') return 'It is a draft and takes no predictions yet.';
  if (status === 'voided') {
    return `It was voided on ${dayText(voided_at ?? as_of)}: nothing is scored.`;
  }
  if (status === 'resolved') {
    const again = ending.revision > 1 ? `, decided anew (revision ${ending.revision})` : '';
    const day = dayText(resolved_at ?? as_of);
    return `It resolved to ${ending.outcome} on ${day}${again}.${scoreOf(ending)}`;
  }
  const decided =
    resolution_date.getTime() === closes_at.getTime()
      ? 'and is to be resolved then'
      : `and is to be resolved by ${dayText(resolution_date)}`;
  if (ended_at === null) {
    return (
      `It takes predictions until ${timeText(closes_at)} (${due(closes_at, as_of)}), ` +
      `${decided}.`
    );
  }
  return (
    `It takes no predictions since ${timeText(ended_at)} and waits for its ` +
    `resolution, due on ${dayText(resolution_date)}.`
  );
};
