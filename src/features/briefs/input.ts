import type { computeConsensus } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import type { Sum } from './rules.js';
import type { DebateRow, DisputeRow, LifeRow, RecordRow, SampleRow, TextRow } from './store.js';

export type Consensus = ReturnType<typeof computeConsensus>;

/** Everything a brief is made from; the same of it makes the same brief, byte for byte. */
export interface BriefInput {
  readonly question: QuestionRow;
  readonly consensus: Consensus;
  readonly as_of: Date;
  /** When it stopped taking predictions; null while it does. */
  readonly ended_at: Date | null;
  readonly life: LifeRow;
  readonly sums: readonly Sum[];
  /** What the reader may not see is not in here. */
  readonly sees_reasoning: boolean;
  /** The newest and the most voted predictions, each once. */
  readonly sample: readonly SampleRow[];
  readonly chosen: Chosen;
  readonly texts: ReadonlyMap<string, TextRow>;
  readonly records: ReadonlyMap<string, RecordRow>;
  readonly disputes: readonly DisputeRow[];
  readonly debates: readonly DebateRow[];
}

/** The predictions that are quoted. */
export interface Chosen {
  readonly for: readonly SampleRow[];
  readonly against: readonly SampleRow[];
}
