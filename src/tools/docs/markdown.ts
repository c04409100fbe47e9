/** Markdown tables, and the marked blocks of a document that are made and not written. */

const escapeCell = (text: string): string => text.replace(/\s+/g, ' ').replaceAll('|', '\\|');

/** A table with a head; `|` in a cell is escaped, line ends become blanks. */
export const makeTable = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string => {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeCell).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
};

export const asCode = (text: string): string => `\`${text}\``;

/** A sentence for a table: without its full stop, when it is only one. */
export const asPhrase = (text: string): string =>
  /\.\s/.test(text) || !text.endsWith('.') ? text : text.slice(0, -1);

export interface Filled {
  readonly text: string;
  /** Names of the blocks that were not what they should be. */
  readonly changed: readonly string[];
  /** Blocks that have no pair of markers, and markers that have no block. */
  readonly problems: readonly string[];
}

const marker_pattern = /^<!-- ([a-z-]+):(begin|end) -->$/gm;

const findUnknown = (text: string, blocks: ReadonlyMap<string, string>): string[] => [
  ...new Set(
    Array.from(text.matchAll(marker_pattern), ([, name]) => name ?? '').filter(
      (name) => !blocks.has(name),
    ),
  ),
];

/**
 * Puts each block between `<!-- name:begin -->` and `<!-- name:end -->`. Names in `own` are marked
 * for other readers and left alone.
 */
export const fillBlocks = (
  document: string,
  blocks: ReadonlyMap<string, string>,
  own: readonly string[] = [],
): Filled => {
  const changed: string[] = [];
  const problems = findUnknown(document, blocks)
    .filter((name) => !own.includes(name))
    .map((name) => `There is no table "${name}".`);
  let text = document;
  for (const [name, block] of blocks) {
    const [begin, end] = [`<!-- ${name}:begin -->\n`, `<!-- ${name}:end -->`];
    const parts = text.split(begin);
    const [before, after] = [parts[0] ?? '', parts[1] ?? ''];
    const at = after.indexOf(end);
    if (parts.length !== 2 || at === -1) {
      problems.push(`The table "${name}" needs one pair of markers.`);
      continue;
    }
    const wanted = `\n${block}\n\n`;
    if (after.slice(0, at) !== wanted) changed.push(name);
    text = before + begin + wanted + after.slice(at);
  }
  return { text, changed, problems };
};
