import type { Formula, Reduce, Sample, Stage, Subject, Summaries } from './types.js';

/** The middle value, or the mean of the two middle ones. */
export const median = (values: readonly number[]): number => {
  if (values.length === 0) throw new Error('median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
};

/**
 * Subjects of round `index`: forwards in even rounds, backwards in odd ones, so that a machine that
 * slows down (or warms up) during the run does not favour the subject that goes first.
 */
export const orderOf = <T>(subjects: readonly T[], index: number): readonly T[] =>
  index % 2 === 0 ? subjects : [...subjects].reverse();

const reducers: Readonly<Record<Reduce, (values: readonly number[]) => number>> = {
  median,
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
};

/** One sample from the samples of all rounds; a figure that some round lacks is left out. */
export const summarise = (
  samples: readonly Sample[],
  reduce: Readonly<Record<string, Reduce>> = {},
): Sample => {
  const summary: Record<string, number> = {};
  for (const name of Object.keys(samples[0] ?? {})) {
    const values = samples.map((sample) => sample[name]).filter((value) => value !== undefined);
    if (values.length < samples.length) continue;
    summary[name] = reducers[reduce[name] ?? 'median'](values);
  }
  return summary;
};

export interface StageOptions {
  readonly rounds: number;
  readonly reduce: Readonly<Record<string, Reduce>>;
  onRound(subject: Subject, index: number, sample: Sample): void;
  readonly stop?: AbortSignal | undefined;
}

export interface StageResult {
  /** One sample of each subject. */
  readonly summaries: Summaries;
  /** What the subjects gave in each round. */
  readonly rounds: readonly Summaries[];
}

/** Warms every subject up and runs all rounds. */
export const runStage = async (stage: Stage, options: StageOptions): Promise<StageResult> => {
  const samples = new Map<string, Sample[]>();
  for (const subject of stage.subjects) {
    options.stop?.throwIfAborted();
    await subject.warmUp?.();
  }
  for (let index = 0; index < options.rounds; index++) {
    for (const subject of orderOf(stage.subjects, index)) {
      options.stop?.throwIfAborted();
      const sample = await subject.round(index);
      samples.set(subject.name, [...(samples.get(subject.name) ?? []), sample]);
      options.onRound(subject, index, sample);
    }
  }
  const all = [...samples];
  return {
    summaries: Object.fromEntries(
      all.map(([name, rounds]) => [name, summarise(rounds, options.reduce)]),
    ),
    rounds: Array.from({ length: options.rounds }, (_, index) =>
      Object.fromEntries(all.map(([name, rounds]) => [name, rounds[index]])),
    ),
  };
};

/**
 * A figure that compares subjects: the median of what it is in each round. The subjects of a round
 * ran one right after the other, and between rounds a shared machine may become another one.
 */
export const compareRounds = (
  formula: Formula,
  rounds: readonly Summaries[],
): number | undefined => {
  const found = rounds.map(formula).filter((value) => value !== undefined);
  return found.length < rounds.length || found.length === 0 ? undefined : median(found);
};
