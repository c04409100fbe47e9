import type { CommentNode } from './schema.js';
import { type CommentRow, toWire } from './store.js';

/** Comments of a thread at most in one tree; longer threads are read page by page. */
export const shown_of_thread = 100;

/**
 * Trees from rows in the order in which they were written. A comment whose parent is not among the
 * rows, because it is hidden, stands directly below the root.
 */
export const growTrees = (
  roots: readonly CommentRow[],
  rows: readonly CommentRow[],
): readonly CommentNode[] => {
  const nodes = new Map<string, CommentNode>();
  for (const row of [...roots, ...rows]) {
    nodes.set(row.id, Object.assign(toWire(row), { children: [] }));
  }
  for (const row of rows) {
    const node = nodes.get(row.id);
    if (node === undefined || row.parent_id === null) continue;
    (nodes.get(row.parent_id) ?? nodes.get(row.root_id))?.children.push(node);
  }
  return roots.flatMap((root) => nodes.get(root.id) ?? []);
};
