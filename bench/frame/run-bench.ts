import type { Bench, BenchContext, Sample, Summaries } from './bench.js';

/** A bare number is the least value; `{"min": n}` and `{"max": n}` say which bound it is. */
export type Floor = number | { readonly min?: number; readonly max?: number };

export interface Figure {
  /** Null when it could not be measured; its floor is then not met. */
  readonly value: number | null;
  readonly min?: number;
  readonly max?: number;
  readonly met: boolean;
}

export interface Result {
  readonly bench: string;
  readonly question: string;
  readonly subjects: Summaries;
  readonly figures: Readonly<Record<string, Figure>>;
  readonly met: boolean;
}

/** The middle value, or the mean of the two middle ones. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? sorted[middle]!
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
};

/** The medians of every figure that all rounds of a subject have. */
export const summarise = (rounds: readonly Summaries[]): Summaries => {
  const first = rounds[0] ?? {};
  return Object.fromEntries(
    Object.entries(first).map(([subject, sample = {}]) => {
      const medians = Object.keys(sample).flatMap((figure) => {
        const values = rounds.flatMap((round) => round[subject]?.[figure] ?? []);
        return values.length === rounds.length ? [[figure, median(values)] as const] : [];
      });
      return [subject, Object.fromEntries(medians)];
    }),
  );
};

export const judge = (floor: Floor | undefined, value: number | undefined): Figure => {
  const bounds = typeof floor === 'number' ? { min: floor } : (floor ?? {});
  const { min = -Infinity, max = Infinity } = bounds;
  const known = value !== undefined && Number.isFinite(value);
  const met = floor === undefined || (known && value >= min && value <= max);
  return { ...bounds, value: known ? value : null, met };
};

/**
 * Compares subjects within each round and takes the median of that: subjects of one round ran one
 * after the other, and a shared machine changes between rounds.
 */
const judgeAll = (
  { figures }: Bench,
  rounds: readonly Summaries[],
  floors: Readonly<Record<string, Floor>>,
  only: BenchContext['only'],
): Result['figures'] => {
  const judged = Object.entries(figures).map(([name, formula]) => {
    const values = rounds.map(formula).filter((value) => value !== undefined);
    const value = values.length < rounds.length ? undefined : median(values);
    return [name, judge(floors[name], value)] as const;
  });
  // Where only some subjects are measured, the figures of the others are no failure.
  return Object.fromEntries(
    only === undefined ? judged : judged.filter(([, { value }]) => value !== null),
  );
};

const oneLine = (sample: Sample): string =>
  ['per_second', 'p50_ms', 'p99_ms']
    .filter((name) => sample[name] !== undefined)
    .map((name) => `${name} ${sample[name]!.toFixed(name === 'per_second' ? 0 : 2)}`)
    .join('  ');

/**
 * Prepares a bench, runs all stages and rounds, and compares the figures with the floors. An invalid
 * round is thrown on, never averaged away; the bench is closed in any case.
 *
 * Odd rounds run the subjects backwards, so that a machine that slows down (or warms up) during the
 * run does not favour the subject that goes first.
 */
export const runBench = async (
  bench: Bench,
  context: BenchContext,
  floors: Readonly<Record<string, Floor>> = {},
): Promise<Result> => {
  const { only, stop } = context;
  const { stages, close } = await bench.prepare(context);
  const rounds = Array.from({ length: context.rounds }, (): Record<string, Sample> => ({}));
  try {
    for (const makeSubjects of stages) {
      const subjects = makeSubjects(summarise(rounds)).filter(
        ({ name }) => only === undefined || only.some((start) => name.startsWith(start)),
      );
      for (const subject of subjects) {
        stop?.throwIfAborted();
        await subject.warmUp?.();
      }
      for (const [index, round] of rounds.entries()) {
        for (const subject of index % 2 === 0 ? subjects : subjects.toReversed()) {
          stop?.throwIfAborted();
          const sample = await subject.round(index);
          round[subject.name] = sample;
          context.log(`round ${index + 1}  ${subject.name.padEnd(24)} ${oneLine(sample)}`);
        }
      }
    }
  } finally {
    await close?.();
  }
  if (Object.keys(rounds[0] ?? {}).length === 0) {
    throw new Error(`No subject of ${bench.name} begins with ${only?.join(' or ')}.`);
  }
  const figures = judgeAll(bench, rounds, floors, only);
  return {
    ...{ bench: bench.name, question: bench.question, subjects: summarise(rounds) },
    ...{ figures, met: Object.values(figures).every(({ met }) => met) },
  };
};
