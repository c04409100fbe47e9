/**
 * What a bench is. One bench answers one question; it measures several subjects in one run, on one
 * machine and one database, so that their ratios mean something even where absolute figures do not.
 */

/** What one round of one subject gave, by name: `per_second`, `p50_ms`, `p99_ms`, `rss_mb`, … */
export type Sample = Readonly<Record<string, number>>;

/** The rounds of every subject, reduced to one sample each (medians unless the bench says else). */
export type Summaries = Readonly<Record<string, Sample | undefined>>;

export interface Subject {
  readonly name: string;
  /** Untimed work before the first round: connections, caches, compiled code. */
  warmUp?(): Promise<void>;
  /** One timed round. Throws when the round is not valid (wrong answers, lost rows). */
  round(index: number): Promise<Sample>;
}

/** Subjects that are measured against each other, in alternating order. */
export interface Stage {
  readonly subjects: readonly Subject[];
}

export interface Missing {
  readonly name: string;
  readonly why: string;
}

export interface Prepared {
  /** Run one after the other; a later stage may depend on what the earlier ones gave. */
  readonly stages: readonly ((so_far: Summaries) => Stage)[];
  /** Subjects that this machine cannot run; floors that need them are not met. */
  readonly missing: readonly Missing[];
  close(): Promise<void>;
}

export interface BenchContext {
  readonly rounds: number;
  /** Length of one timed round. */
  readonly seconds: number;
  readonly quick: boolean;
  /** Connections of the load; absent: what the bench found best. */
  readonly connections?: number;
  /** What the names of the subjects that are measured begin with; absent: all are. */
  readonly only?: readonly string[];
  /** Keep a CPU profile of the measured service in `.data/prof`. */
  readonly cpu_prof: boolean;
  /** A scratch folder of this run, removed at its end. */
  readonly folder: string;
  tell(line: string): void;
  /** Aborted when the person at the terminal wants it to end; rounds end it between two. */
  readonly stop?: AbortSignal;
}

/** A figure from those of some subjects; undefined where one of them is missing. */
export type Formula = (of: Summaries) => number | undefined;

export type Reduce = 'median' | 'max' | 'min';

export interface Bench {
  readonly name: string;
  readonly question: string;
  /** How the rounds of a figure become one number; the median where nothing is said. */
  readonly reduce?: Readonly<Record<string, Reduce>>;
  /** Figures that compare subjects: within each round, and then the median. */
  readonly ratios: Readonly<Record<string, Formula>>;
  /** Figures of one subject that have a floor (or a ceiling) of their own. */
  readonly figures?: Readonly<Record<string, Formula>>;
  prepare(context: BenchContext): Promise<Prepared>;
}

/** `service` ÷ `peer` of one figure, or undefined when either is missing. */
export const ratioOf =
  (subject: string, peer: string, figure = 'per_second') =>
  (of: Summaries): number | undefined => {
    const above = of[subject]?.[figure];
    const below = of[peer]?.[figure];
    return above === undefined || below === undefined || below === 0 ? undefined : above / below;
  };

export const figureOf =
  (subject: string, figure: string) =>
  (of: Summaries): number | undefined =>
    of[subject]?.[figure];
