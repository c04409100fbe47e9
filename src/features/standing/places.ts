import { type Board, nameOf } from './live.js';
import { board_kinds, keyOn, type Slice, type Sums, writeDetails } from './rules.js';
import type { BySlot } from './standings.js';

/**
 * Where an agent is on the boards, as one text that Redis keeps, and what moves it from there: for
 * each slot that it is in `|slot|details` and its key on each kind of board, `|` alone for none.
 */

const writePlace = (sums: Sums): string => {
  let place = `|${writeDetails(sums)}`;
  for (const kind of board_kinds) place += `|${keyOn(kind, sums) ?? ''}`;
  return place;
};

/** '' for an agent that is on no board. Slots are named, so that others may come and go. */
export const writePlaces = (slices: readonly Slice[], found: BySlot | undefined): string => {
  if (found === undefined) return '';
  let written = '';
  // Slots that share their sums mostly follow each other.
  let last: Sums | undefined;
  let place = '';
  for (const { slot } of slices) {
    const sums = found.get(slot);
    if (sums === undefined) continue;
    if (sums !== last) place = writePlace(sums);
    last = sums;
    written += `|${slot}${place}`;
  }
  return written;
};

const parts_of_place = 2 + board_kinds.length;

/** What changes on one board: keys, each with the agent that gets it, and agents that leave. */
export interface BoardChange extends Board {
  readonly put: string[];
  readonly gone: string[];
}

/** By the name of the board. */
export type BoardChanges = Map<string, BoardChange>;

const changeOf = (changes: BoardChanges, board: Board): BoardChange => {
  const name = nameOf(board);
  const known = changes.get(name);
  if (known !== undefined) return known;
  const change = { kind: board.kind, slot: board.slot, put: [], gone: [] };
  changes.set(name, change);
  return change;
};

export interface Move {
  readonly agent_id: string;
  /** What Redis keeps of the agent, and what it is to keep. */
  readonly before: string;
  readonly after: string;
}

/** Adds to the changes what one agent's move means for the boards: only what really differs. */
export const noteMove = (changes: BoardChanges, { agent_id, before, after }: Move): void => {
  const had = before.split('|');
  const has = after.split('|');
  for (let at = 1; at < has.length; at += parts_of_place) {
    const slot = has[at]!;
    // Mostly the slots are the same ones.
    const old = had[at] === slot ? at : had.indexOf(slot);
    for (const [n, kind] of board_kinds.entries()) {
      const key = has[at + 2 + n]!;
      if (key === (old < 0 ? '' : had[old + 2 + n])) continue;
      const { put, gone } = changeOf(changes, { kind, slot });
      if (key === '') gone.push(agent_id);
      else put.push(key, agent_id);
    }
  }
  for (let at = 1; at < had.length; at += parts_of_place) {
    const slot = had[at]!;
    if (has.includes(slot)) continue;
    for (const [n, kind] of board_kinds.entries()) {
      if (had[at + 2 + n] !== '') changeOf(changes, { kind, slot }).gone.push(agent_id);
    }
  }
};
