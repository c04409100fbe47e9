import type { Db } from './client.js';

/**
 * The time of Postgres in this process. What opens, closes and runs out is decided in many
 * processes and in statements; they agree because all of them go by one clock, whatever their
 * machines say.
 *
 * The time lies between what Postgres answers and that plus the time the question took. The clock
 * is put into these bounds with each answer, and runs by the process's own monotonic time in
 * between. Until the first answer it is the process's clock.
 */
export interface DatabaseClock {
  now(): Date;
  /** Asks again; keeps what is known where Postgres is away. */
  ask(): Promise<void>;
  stop(): void;
}

const ask_every_ms = 5_000;

export const followClock = (db: Db): DatabaseClock => {
  let ahead_ms = Date.now() - performance.now();
  const ask = async (): Promise<void> => {
    const asked_ms = performance.now();
    const [row] = await db<{ now: Date }[]>`select clock_timestamp() as now`;
    if (row === undefined) return;
    const answered_ms = performance.now();
    const least = row.now.getTime() - answered_ms;
    const most = row.now.getTime() - asked_ms;
    ahead_ms = Math.min(Math.max(ahead_ms, least), most);
  };
  let asking: Promise<void> | undefined;
  /** One question at a time: a Postgres that stands still collects none. */
  const askOnce = (): Promise<void> => {
    asking ??= ask()
      .catch(() => undefined)
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  const timer = setInterval(askOnce, ask_every_ms);
  timer.unref();
  return {
    now: () => new Date(performance.now() + ahead_ms),
    ask: askOnce,
    stop: () => clearInterval(timer),
  };
};
