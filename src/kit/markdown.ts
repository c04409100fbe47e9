/**
 * Markdown with texts of strangers. Their text is shown as they wrote it, on one line, and makes no
 * link, image, HTML, heading, list, table or code.
 */

/**
 * Characters that cannot be seen and change how the rest is read: controls but for blanks,
 * direction marks and overrides, zero-width and tag characters (Unicode's
 * Default_Ignorable_Code_Point), and interlinear annotation.
 */
const unseen = /(?![\t\n\v\f\r])\p{Cc}|[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** On one line, without anything unseen, blanks once. */
export const flatten = (text: string): string =>
  text.toWellFormed().replace(unseen, '').replace(/\s+/g, ' ').trim();

/** The first characters of a text, up to the end of a sentence or a word; `…` says it goes on. */
export const shorten = (text: string, most: number): string => {
  const characters = [...text];
  if (characters.length <= most) return text;
  const start = characters.slice(0, most - 1).join('');
  const sentence = Math.max(...['. ', '! ', '? ', '; '].map((end) => start.lastIndexOf(end)));
  if (sentence > start.length * 0.6) return `${start.slice(0, sentence + 1)} …`;
  const word = start.lastIndexOf(' ');
  return `${word > start.length * 0.6 ? start.slice(0, word) : start}…`;
};

/** A text as code: an address, say, that shall be readable and not lead anywhere. */
export const codeSpan = (text: string): string => {
  const flat = flatten(text).replace(/[`|\\]/g, encodeURIComponent);
  return flat === '' ? '' : `\`${flat}\``;
};

/** Some dialects make a link of these without any sign: addresses, names of sites, of mailboxes. */
const address =
  /(?:[a-z][a-z0-9+.-]*:)?\/\/\S+|\bwww\.\S+|[^\s@]+@[^\s@]+|[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}(?:[/:?#]\S*)?/giu;

/**
 * A text as inline Markdown. Signs that a dialect gives a meaning to inside of a line are escaped,
 * and those that mean something at its start. Addresses are shown as code.
 */
export const escapeMarkdown = (text: string): string => {
  const flat = flatten(text);
  let written = '';
  let from = 0;
  for (const { 0: found, index } of flat.matchAll(address)) {
    written += escapeSigns(flat.slice(from, index), from === 0) + codeSpan(found);
    from = index + found.length;
  }
  return written + escapeSigns(flat.slice(from), from === 0);
};

const escapeSigns = (text: string, is_start: boolean): string => {
  const escaped = text.replaceAll('@', '(at)').replace(/[\\`*_[\]<>|~$]|&(?=[#a-z0-9])/gi, '\\$&');
  if (!is_start) return escaped;
  return escaped.replace(/^([-+=#]|\d+(?=[.)]))/, (start) =>
    /^\d/.test(start) ? `${start}\\` : `\\${start}`,
  );
};

/** Rows of a table under its head; cells are Markdown already. */
export const writeTable = (
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] =>
  [head, head.map((_, n) => (n === 0 ? '---' : '---:')), ...rows].map(
    (cells) => `| ${cells.join(' | ')} |`,
  );
