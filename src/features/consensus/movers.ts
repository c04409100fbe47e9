import { makePause } from '../../kit/loop.js';
import type { Step } from './drift.js';
import { type Mover, type MoverRange, max_movers, mover_days, mover_ranges } from './schema.js';

/** Finds the forecasts and revisions that moved the headline most. */

const day_ms = 86_400_000;
const steps_a_turn = 5_000;

const isLarger = (a: Mover, b: Mover): boolean => Math.abs(a.change) > Math.abs(b.change);

/** Returns the largest movers of each range, the largest first. Each range ends at `until_ms`. */
export const findMovers = async (
  steps: readonly Step[],
  { figure, until_ms }: { readonly figure: number; readonly until_ms: number },
): Promise<Readonly<Record<MoverRange, readonly Mover[]>>> => {
  const found: Record<MoverRange, Mover[]> = { '1d': [], '1w': [], '1m': [], all: [] };
  const pause = makePause(steps_a_turn);
  for (const { at, agent, moved } of steps) {
    const mover = { at, agent, change: Math.round(100 * (moved[figure] ?? 0)) / 100 };
    await pause();
    if (mover.change === 0) continue;
    for (const range of mover_ranges) {
      const best = found[range];
      if (at < until_ms - mover_days[range] * day_ms) continue;
      const place = best.findIndex((other) => isLarger(mover, other));
      best.splice(place < 0 ? best.length : place, 0, mover);
      best.length = Math.min(best.length, max_movers);
    }
  }
  return found;
};
