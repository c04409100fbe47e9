import type { Db } from '../../kit/pg/client.js';
import {
  type AgentKind,
  type Cell,
  type Slice,
  type Sums,
  seeSame,
  sinceTimes,
  sumCells,
} from './rules.js';
import { readCells, readRanked } from './store.js';

/** Where agents stand by the record: what the boards hold, and what they are compared with. */

/** By slot; nothing in a slot where the agent has no place. */
export type BySlot = ReadonlyMap<string, Sums>;

export interface StandingsAsk {
  readonly slices: readonly Slice[];
  readonly day: number;
  readonly agents: readonly string[];
}

/** Slices that hold the same share one object. */
const sumSlices = (slices: readonly Slice[], cells: readonly Cell[]): BySlot => {
  const categories = new Set(cells.map(({ category }) => category));
  const by_slot = new Map<string, Sums>();
  let last: { readonly slice: Slice; readonly sums: Sums | null } | undefined;
  for (const slice of slices) {
    // Most agents are in few categories.
    if (slice.category !== null && !categories.has(slice.category)) continue;
    const is_same = last !== undefined && seeSame(last.slice, slice, cells);
    const sums = is_same ? last!.sums : sumCells(slice, cells);
    last = { slice, sums };
    if (sums !== null) by_slot.set(slice.slot, sums);
  }
  return by_slot;
};

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
  const ofKind = (kind: AgentKind) => slices.filter(({ agents }) => agents === kind);
  const slices_of = { agent: ofKind('agent'), imported: ofKind('imported') };
  return new Map(
    ranked.map(({ agent_id, kind }) => [
      agent_id,
      sumSlices(slices_of[kind], cells_of.get(agent_id) ?? []),
    ]),
  );
};
