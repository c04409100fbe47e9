import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../../db/client.js';
import { dropDay, listOldDays } from '../../db/partition-store.js';
import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { deleteHourly, lockOldHourly } from '../consensus/index.js';
import { dropBelowOldest, moveOldest, storeDigests } from '../events/index.js';
import { copyLines, copyLinesIn, writeArchive } from '../exports/index.js';
import * as store from './store.js';

/**
 * Removes data older than the settings allow: whole days of events and of attempts, and hourly
 * snapshots of the consensus. If there is an archive, its file is on the disk before anything is
 * removed. So a process killed at any moment loses nothing: the next turn writes the same file
 * again from the remaining rows. Any number of processes may run this.
 *
 *   events      file ──▶ `oldest` moves past the day ──some minutes──▶ partition dropped
 *   attempts    file ──▶ partition dropped
 *   snapshots   rows locked ──▶ file ──▶ rows deleted, in one transaction
 */

export interface RetentionOptions {
  readonly every_ms?: number;
  /** Time from moving `oldest` to the drop. Meanwhile, every process reads the new `oldest`. */
  readonly settle_ms?: number;
}

const max_snapshots = 5_000;
const tries = 20;
const between_tries_ms = 1_000;

export const createRetention = (deps: Deps, options: RetentionOptions = {}): Service => {
  const { sql, log, config } = deps;
  const { every_ms = 3_600_000, settle_ms = 180_000 } = options;
  const { EVENTS_KEEP_DAYS, WEBHOOK_KEEP_DAYS, SNAPSHOTS_KEEP_DAYS, ARCHIVE_DIR: folder } = config;
  const stopping = new AbortController();
  const { signal } = stopping;

  const passEvents = async (): Promise<void> => {
    for (;;) {
      const step = await store.findOldEvents(sql, EVENTS_KEEP_DAYS);
      if (step === null || signal.aborted) return;
      const { day, first, next, needed_from } = step;
      if (needed_from < next) {
        log.warn({ day, next, needed_from }, 'retention: old events are still needed and stay');
        return;
      }
      if (folder !== undefined) {
        const lines = copyLines(sql, store.eventsOf(step), signal);
        // Offsets have no holes, so the number of events is known.
        const file = { part: `${day}-${first}-${next - 1}`, count: next - first };
        await writeArchive(folder, { ...store.event_table, ...file }, lines);
      }
      // The digest continues from here after the events before it are removed.
      await storeDigests(sql, next - 1);
      if (await moveOldest(sql, step)) log.info({ day, oldest: next }, 'retention: day removed');
    }
  };

  const dropAttempts = async (): Promise<void> => {
    for (const day of await listOldDays(sql, 'attempts', WEBHOOK_KEEP_DAYS)) {
      let archived = Number.POSITIVE_INFINITY;
      if (folder !== undefined) {
        const lines = copyLines(sql, store.attemptsOf(day), signal);
        archived = await writeArchive(folder, { ...store.attempt_table, part: day }, lines);
      }
      const isOver = async (tx: Db, name: string) => (await store.countRows(tx, name)) <= archived;
      for (let n = 0; n < tries && !signal.aborted; n += 1) {
        if (await dropDay(sql, 'attempts', { day, isOver })) break;
        await pause(between_tries_ms, undefined, { signal }).catch(() => undefined);
      }
    }
  };

  /** Returns true if there may be more to delete. */
  const deleteSnapshots = (): Promise<boolean> =>
    sql.begin({ statement_ms: 60_000 }, async (tx) => {
      const keys = await lockOldHourly(tx, SNAPSHOTS_KEEP_DAYS, max_snapshots);
      const first = keys[0];
      if (first === undefined) return false;
      if (folder !== undefined) {
        const part = `${first.hour}-${first.question_id}`;
        const lines = copyLinesIn(tx, store.snapshotsOf(keys));
        const file = { part, count: keys.length };
        await writeArchive(folder, { ...store.snapshot_table, ...file }, lines);
      }
      await deleteHourly(tx, keys);
      return keys.length === max_snapshots;
    });

  const loop = makeLoop({
    name: 'retention',
    log,
    every_ms,
    after_error_ms: 60_000,
    async turn() {
      const dropped = await dropBelowOldest(sql, settle_ms);
      if (dropped.length > 0) log.info({ dropped }, 'retention: days of events dropped');
      await dropAttempts();
      if (EVENTS_KEEP_DAYS > 0) await passEvents();
      while (SNAPSHOTS_KEEP_DAYS > 0 && !signal.aborted && (await deleteSnapshots()));
      return 'rest';
    },
  });
  return {
    ...loop,
    async stop() {
      stopping.abort();
      await loop.stop();
    },
  };
};
