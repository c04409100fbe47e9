/**
 * A bench answers one question. It measures several subjects in one run, on one machine and one
 * database, so that their ratios are meaningful even if absolute figures are not.
 */
export interface Bench {
  readonly question: string;
  readonly figures: Readonly<Record<string, Figure>>;
  /** A later stage may depend on the medians of earlier stages. */
  prepare(context: BenchContext): Promise<readonly ((so_far: Summaries) => Stage)[]>;
}

/** Subjects that are measured in turn, in alternating order. */
export type Stage = readonly Subject[];

export interface Subject {
  readonly name: string;
  /** Untimed work before the first round: connections, caches, compiled code. */
  warmUp?(): Promise<unknown>;
  /** Runs one timed round. Throws if the round is invalid (wrong answers, lost rows). */
  round(): Promise<Sample>;
}

/** The figures of one round of one subject: `per_second`, `p50_ms`, `p99_ms`, `rss_mb`, … */
export type Sample = Readonly<Record<string, number>>;

/** One sample per subject: from one round, or the medians of all rounds. */
export type Summaries = Readonly<Record<string, Sample | undefined>>;

export interface Figure {
  /** Returns the figure's value in one round. Undefined if a subject is missing. */
  readonly of: (round: Summaries) => number | undefined;
  /** Lower and upper bound. */
  readonly min?: number;
  readonly max?: number;
}

export interface BenchContext {
  readonly rounds: number;
  /** Duration of one timed round. */
  readonly seconds: number;
  /** Smaller databases and shorter warm-ups. */
  readonly quick: boolean;
  /** Prefixes of the names of the subjects to measure. Default: all subjects. */
  readonly only?: readonly string[];
  /** A scratch folder for this run, removed at its end. */
  readonly folder: string;
  log(line: string): void;
  /** Registers a function for the end of the bench. The functions run in reverse order. */
  onClose(close: () => unknown): void;
  /** Aborted by Ctrl-C. The bench then ends before its next round. */
  readonly stop: AbortSignal;
}

export const figureOf =
  (subject: string, name: string): Figure['of'] =>
  (round) =>
    round[subject]?.[name];

/** The `name` figure of `subject` divided by the same figure of `peer`. */
export const ratioOf =
  (subject: string, peer: string, name = 'per_second'): Figure['of'] =>
  (round) => {
    const [above, below] = [round[subject]?.[name], round[peer]?.[name]];
    return above === undefined || !below ? undefined : above / below;
  };

/** The middle value, or the mean of the two middle values. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
};

/** Takes the median of each figure that occurs in every round of a subject. */
const summarise = (rounds: readonly Summaries[]): Summaries =>
  Object.fromEntries(
    Object.entries(rounds[0]!).map(([subject, sample = {}]) => {
      const medians = Object.keys(sample).flatMap((name) => {
        const values = rounds.flatMap((round) => round[subject]?.[name] ?? []);
        return values.length === rounds.length ? [[name, median(values)] as const] : [];
      });
      return [subject, Object.fromEntries(medians)];
    }),
  );

/**
 * Computes a figure in each round, and takes the median. The subjects of one round run close
 * together, while a shared machine changes from round to round. A figure that could not be measured
 * is null, and fails its bound.
 */
const judge = ({ of, min = -Infinity, max = Infinity }: Figure, rounds: readonly Summaries[]) => {
  const values = rounds.flatMap((round) => of(round) ?? []);
  const value = values.length < rounds.length ? Number.NaN : median(values);
  const has_bound = min > -Infinity || max < Infinity;
  const met = !has_bound || (value >= min && value <= max);
  return { value: Number.isFinite(value) ? value : null, min, max, has_bound, met };
};

export type Result = Awaited<ReturnType<typeof runBench>>;

export const formatNumber = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: value >= 100 ? 0 : 2 });

/** The figures of a subject on one line. */
export const formatSample = (name: string, sample: Sample): string => {
  const figures = Object.entries(sample).map(([key, value]) => `${key} ${formatNumber(value)}`);
  return `${name.padEnd(24)} ${figures.join('  ')}`;
};

/**
 * Runs all stages and rounds. Odd rounds run the subjects in reverse order, so that a machine that
 * slows down (or warms up) during the run does not favour the first subject. An invalid round ends
 * the bench. It is never averaged away.
 */
export const runBench = async (bench: Bench, context: BenchContext) => {
  const { only, stop } = context;
  const isWanted = ({ name }: Subject): boolean =>
    only === undefined || only.some((start) => name.startsWith(start));
  const rounds = Array.from({ length: context.rounds }, (): Record<string, Sample> => ({}));
  for (const makeStage of await bench.prepare(context)) {
    const subjects = makeStage(summarise(rounds)).filter(isWanted);
    for (const subject of subjects) {
      stop.throwIfAborted();
      await subject.warmUp?.();
    }
    for (const [index, round] of rounds.entries()) {
      for (const subject of index % 2 === 0 ? subjects : subjects.toReversed()) {
        stop.throwIfAborted();
        const sample = await subject.round();
        round[subject.name] = sample;
        context.log(`round ${index + 1}  ${formatSample(subject.name, sample)}`);
      }
    }
  }
  const subjects = summarise(rounds);
  if (Object.keys(subjects).length === 0) throw new Error(`No subject begins with ${only}.`);
  const judged = Object.entries(bench.figures)
    .map(([name, figure]) => ({ name, ...judge(figure, rounds) }))
    // If only some subjects are measured, figures that need other subjects are left out.
    .filter(({ value }) => only === undefined || value !== null);
  return { subjects, figures: judged, met: judged.every(({ met }) => met) };
};
