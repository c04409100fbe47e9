import type { RecordType } from './season.js';
import { most_bytes, most_items, type Numbered, type Outcome, type Uploader } from './upload.js';

/** Items of one type on their way to the service: gathered, sent together, counted. */

export interface Counts {
  created: number;
  exists: number;
  bad: number;
}

export interface Lot {
  readonly type: RecordType;
  readonly counts: Counts;
  add(entry: Numbered): Promise<void>;
  /** Counts an item that cannot be sent. */
  refuse(line: number, reason: string): void;
  flush(): Promise<void>;
}

export interface LotParts {
  readonly type: RecordType;
  readonly uploader: Uploader;
  readonly onBad: (line: number, reason: string) => void;
  readonly onDone: (entry: Numbered, outcome: Outcome) => void;
  /** Told after each call. */
  readonly onSent: () => void;
}

export const makeLot = (parts: LotParts): Lot => {
  const counts: Counts = { created: 0, exists: 0, bad: 0 };
  let batch: Numbered[] = [];
  let bytes = 0;
  const refuse = (line: number, reason: string): void => {
    counts.bad += 1;
    parts.onBad(line, reason);
  };
  const flush = async (): Promise<void> => {
    const sending = batch;
    batch = [];
    bytes = 0;
    const outcomes = await parts.uploader.send(sending);
    for (const [index, entry] of sending.entries()) {
      const outcome = outcomes[index] as Outcome;
      if (outcome.kind === 'refused') refuse(entry.line, outcome.reason);
      else counts[outcome.kind] += 1;
      parts.onDone(entry, outcome);
    }
    parts.onSent();
  };
  return {
    type: parts.type,
    counts,
    refuse,
    flush,
    async add(entry) {
      const size = Buffer.byteLength(JSON.stringify(entry.item));
      if (batch.length === most_items || bytes + size > most_bytes) await flush();
      batch.push(entry);
      bytes += size;
    },
  };
};
