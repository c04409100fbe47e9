/**
 * Finds http(s) links in prose as people and models write them: bare, in angle brackets, in
 * Markdown links, in tables, with the punctuation of the sentence behind them. Linear time: every
 * link is walked once.
 */

const scheme = /(?<![a-z])https?:\/\//gi;
/** A link ends at blanks, quotes and brackets, and at general, CJK and full-width punctuation. */
const stops =
  '\\u0000-\\u0020"\'<>`{}|\\\\^\\u007f-\\u00a0«»\\u1680\\u2000-\\u206f\\u3000-\\u303f' +
  '\\ufeff\\uff00-\\uff20\\uff5e';
/** What ends no link and opens or closes nothing. */
const plain = new RegExp(`[^${stops}()[\\],;]*`, 'y');
/** `a,https://b`: a comma or semicolon is part of a link unless the next link follows it. */
const inner = /[()[\]]|[,;](?!https?:\/\/)/iy;
const trailing = new Set('.",;:!?\'*~');

/** A closing bracket ends the link when it opens before the link; inside pairs it belongs to it. */
const linkEnd = (text: string, from: number): number => {
  const open = { round: 0, square: 0 };
  let end = from;
  for (;;) {
    plain.lastIndex = end;
    plain.test(text);
    end = plain.lastIndex;
    inner.lastIndex = end;
    if (!inner.test(text)) break;
    const char = text[end];
    if (char === '(') open.round += 1;
    else if (char === '[') open.square += 1;
    else if (char === ')' && --open.round < 0) break;
    else if (char === ']' && --open.square < 0) break;
    end += 1;
  }
  while (end > from && trailing.has(text[end - 1]!)) end -= 1;
  return end;
};

/** Start and end of every link, flat: `[start, end, start, end, …]`, in order, apart. */
export const findLinks = (text: string): number[] => {
  const links: number[] = [];
  scheme.lastIndex = 0;
  for (let found = scheme.exec(text); found !== null; found = scheme.exec(text)) {
    const from = scheme.lastIndex;
    const end = linkEnd(text, from);
    if (end > from) links.push(found.index, end);
    scheme.lastIndex = end;
  }
  return links;
};
