import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { readHead } from '../events/index.js';
import { type Fit, fitOf } from './correlation.js';
import { readFits } from './fits-store.js';
import { computeConsensus } from './rules.js';
import * as store from './store.js';

/**
 * Takes snapshots of the consensus: once an hour if it moved, when the question closes, and at each
 * resolution. Closes and resolutions are read from the log, so they are not missed if no timer runs
 * for a while. If forecasts are imported with earlier times, their question gets snapshots for the
 * last days, so that it has a trend.
 *
 * Each step is one transaction that locks the cursor's row, so only one timer works at a time, and
 * a step that is interrupted has no effect. The primary key allows one snapshot for each question,
 * moment and reason. Snapshots in an older format are rewritten.
 */

const max_per_step = 50;
/** Number of offsets that one step searches for closes and resolutions. */
const stretch = 20_000;
/** Days before the import, or before the end of the question, that can get a snapshot. */
const past_days = 14;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const before_all = '00000000-0000-0000-0000-000000000000';

/**
 * Replaces the snapshots of imported forecasts on a question. A day gets one if the forecasts that
 * count at its end are others than a day before. Returns how many it took.
 */
const takePast = async (
  tx: Tx,
  question: store.EndedShape,
  { fits, now }: { readonly fits: readonly Fit[]; readonly now: Date },
): Promise<number> => {
  await store.deletePast(tx, question.id);
  const end_ms = Math.min(now.getTime(), question.ended_at?.getTime() ?? now.getTime());
  const end = new Date(Math.floor(end_ms / hour_ms) * hour_ms);
  let taken = 0;
  for (const days of await store.listForecastDays(tx, question.id, { end, most: past_days })) {
    const moment = new Date(end.getTime() - days * day_ms);
    const tally = await store.readTallyUntil(tx, question.id, { at: moment });
    const consensus = computeConsensus(question, tally, fitOf(fits, question, moment.getTime()));
    const snapshot = { reason: 'hourly', moment, taken_at: moment } as const;
    taken += (await store.putSnapshot(tx, snapshot, consensus)) ? 1 : 0;
  }
  return taken;
};

/** A stretch of the log that is followed, and the questions whose imported forecasts are not done. */
interface Followed extends store.Stretch {
  readonly imported: readonly store.EndedShape[];
}

const followLog = async (
  tx: Tx,
  { after, until, imported }: Followed,
  { fits, now }: { readonly fits: readonly Fit[]; readonly now: Date },
): Promise<{ taken: number; cursor: number; next: Followed | null }> => {
  const [first, ...others] = imported;
  // One question a step, because others wait for the locks of a long transaction.
  if (first !== undefined) {
    const taken = await takePast(tx, first, { fits, now });
    return { taken, cursor: after, next: { after, until, imported: others } };
  }
  let taken = 0;
  const endings = await store.readEndings(tx, { after, until, most: max_per_step });
  for (const ending of endings) {
    // Later forecasts (imported, or made after a reopening) do not belong to that moment.
    const tally = await store.readTally(tx, ending.id, ending.offset);
    const fit = fitOf(fits, ending, ending.moment.getTime());
    const consensus = computeConsensus(ending, tally, fit);
    taken += (await store.putSnapshot(tx, { ...ending, taken_at: ending.moment }, consensus))
      ? 1
      : 0;
  }
  const is_whole = endings.length < max_per_step;
  const cursor = is_whole ? until : (endings.at(-1)?.offset ?? until);
  await store.moveCursor(tx, cursor);
  return { taken, cursor, next: null };
};

const openStretch = async (tx: Tx, after: number, head: number): Promise<Followed> => {
  const until = Math.min(head, after + stretch);
  return { after, until, imported: await store.listImported(tx, { after, until }) };
};

/** Rewrites some snapshots in an older format. Returns whether there may be more. */
const renewSome = async (tx: Tx, fits: readonly Fit[]): Promise<boolean> => {
  const outdated = await store.listOutdated(tx, max_per_step);
  for (const one of outdated) {
    const tally = await store.readTally(tx, one.id, one.offset + 1);
    const fit = fitOf(fits, one, one.taken_at.getTime());
    await store.putSnapshot(tx, one, computeConsensus(one, tally, fit));
  }
  return outdated.length === max_per_step;
};

/** `turn` takes some due snapshots. It returns how many it took, and whether more are due. */
export const createSnapshotTaker = ({ sql, clock }: Deps) => {
  /** An hour, and the last question checked for it. `after` is null if all are checked. */
  let hour: { readonly at: number; readonly after: string | null } = { at: -1, after: null };
  /** The stretch that the next step continues; null if it begins a new one. */
  let followed: Followed | null = null;

  const turn = async () => {
    const at = Math.floor(clock().getTime() / hour_ms) * hour_ms;
    const { after } = at === hour.at ? hour : { after: before_all };
    const done = await sql.begin(async (tx) => {
      const cursor = await store.lockCursor(tx);
      if (cursor === undefined) return null;
      const fits = await readFits(tx);
      const head = await readHead(tx);
      const part = followed?.after === cursor ? followed : await openStretch(tx, cursor, head);
      const log =
        cursor < head
          ? await followLog(tx, part, { fits, now: clock() })
          : { taken: 0, cursor, next: null };
      const moment = new Date(at);
      const moved =
        after === null
          ? []
          : await store.listMoved(tx, { hour: moment, after, most: max_per_step });
      let { taken } = log;
      for (const question of moved) {
        const taken_at = clock();
        const snapshot = { reason: 'hourly', moment, taken_at } as const;
        const fit = fitOf(fits, question, taken_at.getTime());
        const consensus = computeConsensus(question, await store.readTally(tx, question.id), fit);
        taken += (await store.putSnapshot(tx, snapshot, consensus)) ? 1 : 0;
      }
      const next = moved.length < max_per_step ? null : (moved.at(-1)?.id ?? null);
      const has_outdated = await renewSome(tx, fits);
      const more = log.cursor < head || has_outdated || next !== null;
      return { taken, next, more, followed: log.next };
    });
    if (done === null) return { taken: 0, more: false };
    hour = { at, after: done.next };
    ({ followed } = done);
    return { taken: done.taken, more: done.more };
  };
  return { turn };
};

/** Creates the timer's service. Any number of processes may run it. */
export const createSnapshotTimer = (deps: Deps, every_ms = 1_000): Service => {
  const taker = createSnapshotTaker(deps);
  return makeLoop({
    name: 'snapshots',
    log: deps.log,
    every_ms,
    turn: async () => ((await taker.turn()).more ? 'again' : 'rest'),
  });
};
