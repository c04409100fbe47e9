import type { Sql } from '../../db/client.js';
import { type Fault, refuseFields } from '../../kit/fault.js';
import { parseTime } from '../../kit/time.js';
import { readHead } from '../events/index.js';
import { offsetBefore } from './delivery-store.js';
import * as wire from './schema.js';

/** Decides which events a replay sends again. */

const refuseAt = (path: string, message: string): Fault =>
  refuseFields([{ path: `body.${path}`, message }], message);

const too_early = `A replay can go back at most ${wire.replay_days} days.`;

/** Reads a range of times or of offsets. Its end is optional. */
export const readRange = async (sql: Sql, body: wire.ReplayBody, now: Date) => {
  const { since, until, after, until_offset } = body;
  const by_time = since !== undefined && after === undefined && until_offset === undefined;
  const by_offset = after !== undefined && since === undefined && until === undefined;
  if (!by_time && !by_offset) {
    return refuseAt('since', 'Send since and until (times), or after and until_offset (offsets).');
  }
  const head = await readHead(sql);
  const earliest = new Date(now.getTime() - wire.replay_days * 86_400_000);
  if (by_time) {
    const [from, to] = [parseTime(since) ?? earliest, until && parseTime(until)];
    if (from < earliest) return refuseAt('since', too_early);
    if (to && to < from) return refuseAt('until', 'until must not be before since.');
    const first = await offsetBefore(sql, from, head);
    const last = to ? await offsetBefore(sql, to, head) : head;
    return { after: first, until: Math.max(first, last) };
  }
  const first = Math.min(after ?? 0, head);
  if (first < (await offsetBefore(sql, earliest, head))) return refuseAt('after', too_early);
  if (until_offset !== undefined && until_offset < (after ?? 0)) {
    return refuseAt('until_offset', 'until_offset must not be less than after.');
  }
  const last = Math.min(until_offset ?? head, head);
  return { after: first, until: Math.max(first, last) };
};
