/**
 * A bench answers one question. It measures several subjects in one run, on one machine and one
 * database, so that their ratios mean something even where absolute figures do not.
 */

/** The figures of one round of one subject: `per_second`, `p50_ms`, `p99_ms`, `rss_mb`, … */
export type Sample = Readonly<Record<string, number>>;

/** One sample of each subject: of one round, or the medians of all rounds. */
export type Summaries = Readonly<Record<string, Sample | undefined>>;

export interface Subject {
  readonly name: string;
  /** Untimed work before the first round: connections, caches, compiled code. */
  warmUp?(): Promise<unknown>;
  /** One timed round. Throws when the round is not valid (wrong answers, lost rows). */
  round(): Promise<Sample>;
}

/** Subjects that are measured in alternating order; a later stage may depend on earlier ones. */
export type Stage = (so_far: Summaries) => readonly Subject[];

export interface BenchContext {
  readonly rounds: number;
  /** Length of one timed round. */
  readonly seconds: number;
  /** Smaller databases and shorter warm-ups. */
  readonly quick: boolean;
  /** Beginnings of the names of the subjects that are measured; absent: all. */
  readonly only?: readonly string[];
  /** A scratch folder of this run, removed at its end. */
  readonly folder: string;
  log(line: string): void;
  /** Called at the end of the bench, in reverse order. */
  onClose(close: () => unknown): void;
  /** Aborted by Ctrl-C; the bench then ends before its next round. */
  readonly stop: AbortSignal;
}

/** A figure of the samples of one round; undefined where a subject is missing. */
export type Formula = (of: Summaries) => number | undefined;

export interface Figure {
  readonly of: Formula;
  /** Its floor or ceiling. */
  readonly min?: number;
  readonly max?: number;
}

export interface Bench {
  readonly question: string;
  readonly figures: Readonly<Record<string, Figure>>;
  prepare(context: BenchContext): Promise<readonly Stage[]>;
}

export const figureOf =
  (subject: string, figure: string): Formula =>
  (of) =>
    of[subject]?.[figure];

/** One figure of `subject` ÷ that of `peer`. */
export const ratioOf =
  (subject: string, peer: string, figure = 'per_second'): Formula =>
  (of) => {
    const above = of[subject]?.[figure];
    const below = of[peer]?.[figure];
    return above === undefined || !below ? undefined : above / below;
  };

/** The middle value, or the mean of the two middle ones. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? sorted[middle]!
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
};

/** The medians of the figures that all rounds of a subject have. */
const summarise = (rounds: readonly Summaries[]): Summaries =>
  Object.fromEntries(
    Object.entries(rounds[0] ?? {}).map(([subject, sample = {}]) => {
      const medians = Object.keys(sample).flatMap((figure) => {
        const values = rounds.flatMap((round) => round[subject]?.[figure] ?? []);
        return values.length === rounds.length ? [[figure, median(values)] as const] : [];
      });
      return [subject, Object.fromEntries(medians)];
    }),
  );

/**
 * A figure is computed within each round, and the median counts: the subjects of one round ran one
 * after the other, and a shared machine changes between rounds. One that could not be measured is
 * null, and its floor is not met.
 */
const judge = ({ of, min, max }: Figure, rounds: readonly Summaries[]) => {
  const values = rounds.map(of).filter((value) => value !== undefined);
  const value = values.length < rounds.length ? Number.NaN : median(values);
  const bound = min ?? max;
  const met = bound === undefined || (min === undefined ? value <= bound : value >= bound);
  return { value: Number.isFinite(value) ? value : null, min, max, met };
};

export type Judged = ReturnType<typeof judge>;
export type Result = Awaited<ReturnType<typeof runBench>>;

export const formatNumber = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: value >= 100 ? 0 : 2 });

/** The figures of a subject on one line. */
export const formatSample = (name: string, sample: Sample): string => {
  const figures = Object.entries(sample).map(
    ([figure, value]) => `${figure} ${formatNumber(value)}`,
  );
  return `${name.padEnd(24)} ${figures.join('  ')}`;
};

/**
 * Runs all stages and rounds. Odd rounds run the subjects backwards, so that a machine that slows
 * down (or warms up) during the run does not favour the subject that goes first. An invalid round
 * ends the bench; it is never averaged away.
 */
export const runBench = async (bench: Bench, context: BenchContext) => {
  const { only, stop } = context;
  const isWanted = ({ name }: Subject): boolean =>
    only === undefined || only.some((start) => name.startsWith(start));
  const rounds = Array.from({ length: context.rounds }, (): Record<string, Sample> => ({}));
  for (const makeSubjects of await bench.prepare(context)) {
    const subjects = makeSubjects(summarise(rounds)).filter(isWanted);
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
  if (Object.keys(rounds[0]!).length === 0) {
    throw new Error(`No subject begins with ${only?.join(' or ')}.`);
  }
  const judged = Object.entries(bench.figures)
    .map(([name, figure]) => [name, judge(figure, rounds)] as const)
    // Where only some subjects are measured, the figures of the others are no failure.
    .filter(([, { value }]) => only === undefined || value !== null);
  return {
    subjects: summarise(rounds),
    figures: Object.fromEntries(judged),
    /** Every figure with a floor meets it. */
    met: judged.every(([, { met }]) => met),
  };
};
