import type { Call, LogEvent, Mismatch } from './types.js';

/**
 * Proves that no event of the log is missing: compares the digest of the received events with the
 * digest that the service names. The formula is in docs/how-to/follow-events.md, "Proof that
 * nothing is missing".
 */

/** The members of an event that the digest covers. */
export type Digested = Pick<LogEvent, 'offset' | 'id' | 'event' | 'data' | 'timestamp'>;

/** The digest after an event, computed from the digest before it. */
export const addEvent = async (before: string, one: Digested): Promise<string> => {
  const { offset, id, event, data, timestamp } = one;
  const body = JSON.stringify({ event, data, timestamp });
  const bytes = new TextEncoder().encode(`${before} ${offset} ${id} ${body}`);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
};

export const thousandOf = (offset: number): number => Math.floor(offset / 1_000);

/** Time between two reads of the record while all digests match. */
const record_every_ms = 2_000;

interface CheckParts {
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly onMismatch: (mismatch: Mismatch) => void;
  /** Called if the check fails. It compares nothing after that. */
  readonly onError: (error: Error) => void;
}

/**
 * Computes the digest of a stream's events, one after another, and compares it at each tick and
 * after every thousand offsets. After a mismatch is reported, the check continues from the correct
 * digest, so that each further mismatch is reported separately.
 */
export class DigestCheck {
  readonly #parts: CheckParts;
  /** Runs all steps in the order in which they were added. */
  #work: Promise<unknown> = Promise.resolve();
  /** Digest of the received events. Null while the digest at the start is unknown. */
  #digest: string | null = null;
  #newest: number | null = null;
  #agreed: number | null = null;
  #looked_ms = Number.NEGATIVE_INFINITY;

  constructor(parts: CheckParts, after: number | undefined) {
    this.#parts = parts;
    if (after !== undefined) this.restart(after);
  }

  /** The newest offset up to which the received events are known to be complete. */
  get agreed(): number | null {
    return this.#agreed;
  }

  /** Starts again. The next event comes after this offset. */
  restart(offset: number): void {
    this.#newest = offset;
    this.#do(() => this.#begin(offset));
  }

  /** Starts at this offset unless the check has already started. There may be no event yet. */
  begin(offset: number): void {
    if (this.#newest === null) this.restart(offset);
  }

  add(event: Digested): void {
    this.begin(event.offset - 1);
    const is_full = thousandOf(event.offset) !== thousandOf(this.#newest ?? 0);
    this.#newest = event.offset;
    this.#do(async () => {
      if (this.#digest !== null) this.#digest = await addEvent(this.#digest, event);
    });
    if (is_full) this.compare(event.offset);
  }

  /** Compares digests at `offset`, up to which everything has arrived. `tick` is the service's. */
  compare(offset: number, tick: string | null = null): void {
    this.#do(() => this.#compare(offset, tick));
  }

  #do(step: () => Promise<void>): void {
    const { signal, onError } = this.#parts;
    this.#work = this.#work.then(() => (signal.aborted ? undefined : step())).catch(onError);
  }

  /** Starts with the record's digest at an offset up to which everything has arrived. */
  async #begin(offset: number): Promise<void> {
    this.#digest = await this.#readRecord(offset);
    this.#agreed = this.#digest === null ? null : offset;
  }

  /** Null if the record has no digest for this offset, or does not answer. */
  async #readRecord(offset: number): Promise<string | null> {
    const { call, signal } = this.#parts;
    const query = { at: offset, from: offset, limit: 1 };
    return call('readDigests', { query, signal }).then(
      ({ at }) => at.digest,
      () => null,
    );
  }

  async #compare(offset: number, tick: string | null): Promise<void> {
    const came = this.#digest;
    if (came === null) return this.#begin(offset);
    const is_due = performance.now() - this.#looked_ms > record_every_ms;
    const looks = is_due || (tick ?? came) !== came;
    const record = looks ? await this.#readRecord(offset) : null;
    if (looks) this.#looked_ms = performance.now();
    if (tick === null && record === null) return;
    const wrong = whoIsWrong(came, tick, record);
    const after = this.#agreed ?? 0;
    this.#agreed = offset;
    if (wrong === null) return;
    // The next check reads the record again and starts from the correct digest.
    this.#looked_ms = Number.NEGATIVE_INFINITY;
    this.#digest = record ?? tick;
    this.#parts.onMismatch({ after, until: offset, came, tick, record, wrong });
  }
}

const whoIsWrong = (
  came: string,
  tick: string | null,
  record: string | null,
): Mismatch['wrong'] | null => {
  const [named, known] = [tick ?? came, record ?? came];
  if (named === came && known === came) return null;
  if (record === null) return 'unknown';
  if (known === came) return 'tick';
  return named === came && tick !== null ? 'node' : 'stream';
};
