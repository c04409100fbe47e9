import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { parseTime } from '../../kit/http/validation.js';
import type { Sql } from '../../kit/pg/client.js';
import { offsetBefore, readBounds } from './deliveries-store.js';
import { type ReplayBody, replay_days } from './schema.js';

/** What a replay is asked for, as offsets of the log. */

export interface ReplayRange {
  /** The first event is the one after this. */
  readonly after: number;
  readonly until: number;
}

const refuseAt = (path: string, message: string): Fault =>
  refuse(common_faults.INVALID_REQUEST, { message, fields: [{ path: `body.${path}`, message }] });

const timeOf = (text: string): Date => parseTime(text) ?? new Date(Number.NaN);

const too_early = `A replay reaches back ${replay_days} days at most.`;

/** Reads `since` and `until`, or `after` and `until_offset`; the ends may be left out. */
export const readRange = async (
  sql: Sql,
  body: ReplayBody,
  now: Date,
): Promise<ReplayRange | Fault> => {
  const { since, until, after, until_offset } = body;
  const by_time = since !== undefined && after === undefined && until_offset === undefined;
  const by_offset = after !== undefined && since === undefined && until === undefined;
  if (!by_time && !by_offset) {
    return refuseAt('since', 'Send since and until (times), or after and until_offset (offsets).');
  }
  const bounds = await readBounds(sql);
  const earliest = new Date(now.getTime() - replay_days * 86_400_000);
  if (by_time) {
    const [from, to] = [timeOf(since), until === undefined ? null : timeOf(until)];
    if (from < earliest) return refuseAt('since', too_early);
    if (to !== null && to < from) return refuseAt('until', 'until is before since.');
    const first = await offsetBefore(sql, from, bounds);
    const last = to === null ? bounds.head : await offsetBefore(sql, to, bounds);
    return { after: first, until: Math.max(first, last) };
  }
  const first = Math.min(after ?? 0, bounds.head);
  if (first < (await offsetBefore(sql, earliest, bounds))) return refuseAt('after', too_early);
  if (until_offset !== undefined && until_offset < (after ?? 0)) {
    return refuseAt('until_offset', 'until_offset is less than after.');
  }
  const last = Math.min(until_offset ?? bounds.head, bounds.head);
  return { after: first, until: Math.max(first, last) };
};
