import type { Db } from '../../kit/pg/client.js';
import { type Cell, type Slice, type Sums, sinceTimes, sumCells } from './rules.js';
import { readCells, readRanked } from './store.js';

/** Where agents stand by the record: what the boards hold, and what they are compared with. */

/** By slot; nothing in a slot where the agent has no place. */
export type BySlot = ReadonlyMap<string, Sums>;

export interface StandingsAsk {
  readonly slices: readonly Slice[];
  readonly day: number;
  readonly agents: readonly string[];
}

/** Agents that are on no board are left out. */
export const readStandings = async (
  db: Db,
  { slices, day, agents }: StandingsAsk,
): Promise<ReadonlyMap<string, BySlot>> => {
  const ranked = await readRanked(db, agents);
  const cells_of = new Map<string, Cell[]>();
  for (const cell of await readCells(db, sinceTimes(day), agents)) {
    const cells = cells_of.get(cell.agent_id);
    if (cells === undefined) cells_of.set(cell.agent_id, [cell]);
    else cells.push(cell);
  }
  return new Map(
    ranked.map(({ agent_id, equity }) => {
      const cells = cells_of.get(agent_id) ?? [];
      const categories = new Set(cells.map(({ category }) => category));
      const by_slot = new Map<string, Sums>();
      for (const slice of slices) {
        // Most agents are in few categories.
        if (slice.category !== null && !categories.has(slice.category)) continue;
        const sums = sumCells(slice, { cells, equity });
        if (sums !== null) by_slot.set(slice.slot, sums);
      }
      return [agent_id, by_slot];
    }),
  );
};
