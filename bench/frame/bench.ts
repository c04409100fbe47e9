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
  round(index: number): Promise<Sample>;
}

export interface Prepared {
  /** Subjects that are measured in alternating order; a later stage may depend on earlier ones. */
  readonly stages: readonly ((so_far: Summaries) => readonly Subject[])[];
  close?(): Promise<void>;
}

export interface BenchContext {
  readonly rounds: number;
  /** Length of one timed round. */
  readonly seconds: number;
  /** Smaller databases and shorter warm-ups. */
  readonly quick: boolean;
  /** Beginnings of the names of the subjects that are measured; absent: all. */
  readonly only?: readonly string[];
  /** Keep CPU profiles of the service in `.data/prof`. */
  readonly cpu_prof: boolean;
  /** A scratch folder of this run, removed at its end. */
  readonly folder: string;
  log(line: string): void;
  /** Aborted by Ctrl-C; the bench then ends before its next round. */
  readonly stop?: AbortSignal;
}

/** A figure of the samples of one round; undefined where a subject is missing. */
export type Formula = (of: Summaries) => number | undefined;

export interface Bench {
  readonly name: string;
  readonly question: string;
  /** Each is computed within every round; the median counts, and may have a floor. */
  readonly figures: Readonly<Record<string, Formula>>;
  prepare(context: BenchContext): Promise<Prepared>;
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
