import type { Sql } from '../../../kit/pg/client.js';
import { type Claimed, readBodies } from './store.js';

/** Bodies of recent events: an event with many subscribers is read from Postgres once. */

export interface Body {
  readonly event: string;
  /** The bytes that were stored, for every attempt and every webhook the same. */
  readonly body: Buffer;
}

export interface Bodies {
  /** By offset; an event that is not kept any more is missing. */
  read(rows: readonly Claimed[]): Promise<ReadonlyMap<number, Body>>;
}

export const createBodies = (sql: Sql, most_bytes = 16_777_216): Bodies => {
  const kept = new Map<number, Body>();
  let kept_bytes = 0;

  const keep = (offset: number, body: Body): void => {
    kept.set(offset, body);
    kept_bytes += body.body.length;
    for (const [oldest, { body: bytes }] of kept) {
      if (kept_bytes <= most_bytes) break;
      kept.delete(oldest);
      kept_bytes -= bytes.length;
    }
  };

  const read = async (rows: readonly Claimed[]): Promise<ReadonlyMap<number, Body>> => {
    const found = new Map<number, Body>();
    const missing = new Map<number, string>();
    for (const { event_offset, recorded_on } of rows) {
      const known = kept.get(event_offset);
      if (known === undefined) missing.set(event_offset, recorded_on);
      else found.set(event_offset, known);
    }
    if (missing.size === 0) return found;
    const days = [...new Set(missing.values())];
    for (const { offset, event, body } of await readBodies(sql, days, [...missing.keys()])) {
      const read_body = { event, body: Buffer.from(body) };
      found.set(offset, read_body);
      keep(offset, read_body);
    }
    return found;
  };

  return { read };
};
