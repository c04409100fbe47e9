import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Tx } from '../../kit/pg/client.js';
import type { Service } from '../../kit/service.js';
import { readConsensus } from '../consensus/index.js';
import { readHead } from '../events/index.js';
import {
  type Ending,
  insertSnapshot,
  listMoved,
  listOutdated,
  lockCursor,
  moveCursor,
  readEndings,
  updateSnapshot,
} from './snapshot-store.js';

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

/** What came since, after a reopening or by an import, is not of that moment. */
const takeEnding = async (tx: Tx, ending: Ending): Promise<boolean> => {
  const { reason, moment, offset } = ending;
  const consensus = await readConsensus(tx, ending, offset);
  return insertSnapshot(tx, { reason, moment, taken_at: moment, consensus });
};

/** Looks through the next stretch of the log; undefined while another timer does. */
const followLog = (deps: Deps): Promise<{ taken: number; is_through: boolean } | undefined> =>
  deps.sql.begin(async (tx) => {
    const after = await lockCursor(tx);
    if (after === undefined) return undefined;
    const head = await readHead(tx);
    if (after >= head) return { taken: 0, is_through: true };
    const until = Math.min(head, after + stretch);
    const endings = await readEndings(tx, { after, until, most: most_a_step });
    let taken = 0;
    for (const ending of endings) taken += (await takeEnding(tx, ending)) ? 1 : 0;
    const is_whole = endings.length < most_a_step;
    await moveCursor(tx, is_whole ? until : (endings.at(-1)?.offset ?? until));
    return { taken, is_through: is_whole && until === head };
  });

interface Hour {
  readonly at: Date;
  /** Id of the last question that was looked at. */
  readonly after: string;
}

/** Snapshots of the next questions that moved; null when the hour is done with. */
const followHour = (deps: Deps, { at, after }: Hour) =>
  deps.sql.begin(async (tx) => {
    if ((await lockCursor(tx)) === undefined) return undefined;
    const moved = await listMoved(tx, { hour: at, after, most: most_a_step });
    let taken = 0;
    for (const question of moved) {
      const consensus = await readConsensus(tx, question);
      const taken_at = deps.clock();
      const snapshot = { reason: 'hourly', moment: at, taken_at, consensus } as const;
      taken += (await insertSnapshot(tx, snapshot)) ? 1 : 0;
    }
    const next = moved.length < most_a_step ? null : (moved.at(-1)?.id ?? null);
    return { taken, next };
  });

/** Makes some snapshots of an older format anew; whether there may be more. */
const renewSome = (deps: Deps): Promise<boolean> =>
  deps.sql.begin(async (tx) => {
    if ((await lockCursor(tx)) === undefined) return false;
    const outdated = await listOutdated(tx, most_a_step);
    for (const one of outdated) {
      await updateSnapshot(tx, one, await readConsensus(tx, one, one.offset + 1));
    }
    return outdated.length === most_a_step;
  });

const before_all = '00000000-0000-0000-0000-000000000000';

/** `turn` takes what is due and says how many that were, and whether more is waiting. */
export const createSnapshotTaker = (deps: Deps) => {
  let hour_done = -1;
  let hour_begun = -1;
  let after = before_all;

  const takeHour = async (): Promise<{ taken: number; more: boolean }> => {
    const hour = Math.floor(deps.clock().getTime() / hour_ms);
    if (hour === hour_done) return { taken: 0, more: false };
    if (hour !== hour_begun) after = before_all;
    hour_begun = hour;
    const step = await followHour(deps, { at: new Date(hour * hour_ms), after });
    if (step === undefined) return { taken: 0, more: false };
    after = step.next ?? before_all;
    if (step.next === null) hour_done = hour;
    return { taken: step.taken, more: step.next !== null };
  };

  return {
    async turn(): Promise<{ readonly taken: number; readonly more: boolean }> {
      const log = await followLog(deps);
      const hour = await takeHour();
      const has_outdated = await renewSome(deps);
      const more = hour.more || has_outdated || log?.is_through === false;
      return { taken: (log?.taken ?? 0) + hour.taken, more };
    },
  };
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
