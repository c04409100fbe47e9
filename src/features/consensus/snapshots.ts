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
 * Takes snapshots of the consensus: of every question that moved, once an hour; and as it stood
 * when a question closed and at each resolution. The latter follow the log, so that none is missed
 * while no timer runs. Each step is one transaction that holds the cursor's row: of any number of
 * timers one works, and what is killed has done a step or has not. There is one snapshot for each
 * question, moment and reason, which the primary key holds. Those that an older program took are
 * made anew in today's format.
 */

const most_a_step = 50;
/** So much of the log is looked through in one step. */
const stretch = 20_000;
const hour_ms = 3_600_000;
const before_all = '00000000-0000-0000-0000-000000000000';

const followLog = async (
  tx: Tx,
  after: number,
  fits: readonly Fit[],
): Promise<{ taken: number; more: boolean }> => {
  const head = await readHead(tx);
  if (after >= head) return { taken: 0, more: false };
  const until = Math.min(head, after + stretch);
  const endings = await store.readEndings(tx, { after, until, most: most_a_step });
  let taken = 0;
  for (const ending of endings) {
    // Later forecasts, after a reopening or by an import, do not belong to that moment.
    const tally = await store.readTally(tx, ending.id, ending.offset);
    const fit = fitOf(fits, ending, ending.moment.getTime());
    const consensus = computeConsensus(ending, tally, fit);
    taken += (await store.putSnapshot(tx, { ...ending, taken_at: ending.moment }, consensus))
      ? 1
      : 0;
  }
  const is_whole = endings.length < most_a_step;
  await store.moveCursor(tx, is_whole ? until : (endings.at(-1)?.offset ?? until));
  return { taken, more: !is_whole || until < head };
};

/** Makes some snapshots of an older format anew; whether there may be more. */
const renewSome = async (tx: Tx, fits: readonly Fit[]): Promise<boolean> => {
  const outdated = await store.listOutdated(tx, most_a_step);
  for (const one of outdated) {
    const tally = await store.readTally(tx, one.id, one.offset + 1);
    const fit = fitOf(fits, one, one.taken_at.getTime());
    await store.putSnapshot(tx, one, computeConsensus(one, tally, fit));
  }
  return outdated.length === most_a_step;
};

/** `turn` takes some snapshots that are due; returns their number, and whether more are. */
export const createSnapshotTaker = ({ sql, clock }: Deps) => {
  /** An hour, and the last question that was looked at in it; null when all of them were. */
  let hour: { readonly at: number; readonly after: string | null } = { at: -1, after: null };

  const turn = async () => {
    const at = Math.floor(clock().getTime() / hour_ms) * hour_ms;
    const { after } = at === hour.at ? hour : { after: before_all };
    const done = await sql.begin(async (tx) => {
      const cursor = await store.lockCursor(tx);
      if (cursor === undefined) return null;
      const fits = await readFits(tx);
      const log = await followLog(tx, cursor, fits);
      const moment = new Date(at);
      const moved =
        after === null ? [] : await store.listMoved(tx, { hour: moment, after, most: most_a_step });
      let { taken } = log;
      for (const question of moved) {
        const taken_at = clock();
        const snapshot = { reason: 'hourly', moment, taken_at } as const;
        const fit = fitOf(fits, question, taken_at.getTime());
        const consensus = computeConsensus(question, await store.readTally(tx, question.id), fit);
        taken += (await store.putSnapshot(tx, snapshot, consensus)) ? 1 : 0;
      }
      const next = moved.length < most_a_step ? null : (moved.at(-1)?.id ?? null);
      const has_outdated = await renewSome(tx, fits);
      return { taken, next, more: log.more || has_outdated || next !== null };
    });
    if (done === null) return { taken: 0, more: false };
    hour = { at, after: done.next };
    return { taken: done.taken, more: done.more };
  };
  return { turn };
};

/** Snapshots as a service of the timer; any number of these may run. */
export const createSnapshotTimer = (deps: Deps, every_ms = 1_000): Service => {
  const taker = createSnapshotTaker(deps);
  return makeLoop({
    name: 'snapshots',
    log: deps.log,
    every_ms,
    turn: async () => ((await taker.turn()).more ? 'again' : 'rest'),
  });
};
