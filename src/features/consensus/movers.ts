import type { Db } from '../../db/client.js';
import { makePause } from '../../kit/loop.js';
import type { Step } from './drift.js';

/** Finds the forecasts and revisions that moved the headline most. */

/** How long before the end of the history a range starts, in days. */
const days_of = { '1d': 1, '1w': 7, '1m': 30, all: Number.POSITIVE_INFINITY } as const;
export type MoverRange = keyof typeof days_of;
export const mover_ranges = Object.keys(days_of) as readonly MoverRange[];
export const max_movers = 10;

const day_ms = 86_400_000;
const steps_a_turn = 5_000;

/** A forecast of an agent and its effect on one figure, in points. */
export interface Mover {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly agent: string;
  readonly change: number;
}

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
      if (at < until_ms - days_of[range] * day_ms) continue;
      const place = best.findIndex((other) => isLarger(mover, other));
      best.splice(place < 0 ? best.length : place, 0, mover);
      best.length = Math.min(best.length, max_movers);
    }
  }
  return found;
};

interface MoverRow {
  readonly at: number;
  readonly agent: string;
  readonly prediction_id: string;
  readonly user_name: string;
  readonly model_family: string;
  readonly revision: number;
  readonly reason: string | null;
  readonly reasoning: string;
}

/** Reads the forecasts of movers. Skips hidden predictions. */
export const readMovers = (db: Db, question_id: string, movers: readonly Mover[]) => db<MoverRow[]>`
  select
    m.at, m.agent, f.prediction_id, g.name as user_name, f.model_family, f.revision, f.reason,
    p.reasoning
  from unnest(
    ${movers.map(({ agent }) => agent)}::uuid[], ${movers.map(({ at }) => at)}::bigint[]
  ) as m (agent, at)
  join forecasts f
    on f.question_id = ${question_id}
    and f.agent_id = m.agent
    and (extract(epoch from f.forecast_at) * 1000)::bigint = m.at
  join predictions p on p.id = f.prediction_id and p.hidden_at is null
  join agents g on g.id = f.agent_id`;
