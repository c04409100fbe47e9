import type { Tx } from '../../kit/pg/client.js';

export interface Sentence {
  readonly what: string;
}

export interface QueryParts {
  /** UUIDv7 of the moment after which an event may still be under way. */
  readonly settled_before_id: string;
}

/** Finds nothing when all is well; else sentences, a few. */
export type Query = (tx: Tx, parts: QueryParts) => PromiseLike<readonly Sentence[]>;
