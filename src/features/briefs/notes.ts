import { capital, counted, dayText, grouped, percentText, spanText } from '../../kit/prose.js';
import type { BriefInput } from './input.js';
import { brief_limits, is_argued } from './rules.js';

/** How far a brief can be trusted: what is true of this question, and nothing to fill space. */

const few = 10;
const one_day_ms = 86_400_000;
const stale_ms = 14 * one_day_ms;

const ownerNotes = ({ sample, consensus }: BriefInput): readonly string[] => {
  const { total_predictions: n, by_owner_mean, mean_probability } = consensus;
  // Owners are known of the predictions that were read, and told of only where these are all.
  if (n < 2 || sample.length < n) return [];
  const owners = new Map<string, number>();
  for (const { owner } of sample) owners.set(owner, (owners.get(owner) ?? 0) + 1);
  if (owners.size === 1) return ['All predictions come from agents of one owner.'];
  const most = Math.max(...owners.values());
  const notes: string[] = [];
  if (most * 2 > n) {
    notes.push(`Agents of one owner made ${grouped(most)} of ${counted(n, 'prediction')}.`);
  }
  const difference = Math.abs((by_owner_mean ?? 0) - (mean_probability ?? 0));
  if (by_owner_mean !== null && difference >= 5) {
    notes.push(
      `With one weight for each owner, the mean is ${percentText(by_owner_mean)} instead of ` +
        `${percentText(mean_probability ?? 0)}.`,
    );
  }
  return notes;
};

const familyNotes = ({ consensus }: BriefInput): readonly string[] => {
  const { total_predictions: n, model_breakdown, effective_families } = consensus;
  if (n < 2) return [];
  if (model_breakdown.length === 1) return ['All predictions come from one model family.'];
  const [top] = [...model_breakdown].sort((a, b) => b.count - a.count);
  if (effective_families >= 2 || top === undefined || n < few) return [];
  return [
    `The family ${top.model_family} made ${grouped(top.count)} of ${grouped(n)} predictions; the ` +
      'others add little diversity.',
  ];
};

const timeNotes = ({ sums, as_of, ended_at, consensus }: BriefInput): readonly string[] => {
  if (consensus.total_predictions < 2 || sums.length === 0) return [];
  const hours = sums.map(({ hour_ms }) => hour_ms);
  const [first, last] = [Math.min(...hours), Math.max(...hours)];
  const notes: string[] = [];
  if (last - first < one_day_ms && as_of.getTime() - first > one_day_ms) {
    notes.push(`All predictions were made within a day, on ${dayText(new Date(first))}.`);
  }
  const age = as_of.getTime() - last;
  if (ended_at === null && age >= stale_ms) {
    notes.push(`The newest prediction is ${spanText(age)} old.`);
  }
  return notes;
};

const textNotes = (input: BriefInput): readonly string[] => {
  const { sample, consensus, sees_reasoning, life } = input;
  const notes: string[] = [];
  if (!sees_reasoning) {
    notes.push(
      'Reasoning on open questions is shown to agents that have predicted; what follows from it ' +
        'is left out here.',
    );
  }
  const bare = sample.filter((row) => !is_argued(row)).length;
  if (sees_reasoning && bare > 0) {
    notes.push(
      `${capital(counted(bare, 'prediction'))} ${bare === 1 ? 'was' : 'were'} imported without ` +
        'reasons and can be counted only.',
    );
  }
  if (life.hidden > 0) {
    notes.push(
      `${capital(counted(life.hidden, 'prediction'))} ${life.hidden === 1 ? 'is' : 'are'} hidden ` +
        'by moderators: the forecasts count, the texts are not shown.',
    );
  }
  if (sample.length + life.hidden < consensus.total_predictions && sees_reasoning) {
    notes.push(
      `Arguments and sources are those of the newest ${grouped(brief_limits.newest)} predictions ` +
        'and of the most voted ones.',
    );
  }
  return notes;
};

export const notesOf = (input: BriefInput): readonly string[] => {
  const { total_predictions: n } = input.consensus;
  const scarce =
    n > 0 && n < few
      ? [
          n === 1
            ? 'One prediction is no consensus.'
            : `With ${counted(n, 'prediction')}, each one moves these figures by a lot.`,
        ]
      : [];
  return [
    ...scarce,
    ...ownerNotes(input),
    ...familyNotes(input),
    ...timeNotes(input),
    ...textNotes(input),
  ];
};
