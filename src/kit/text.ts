import { common_faults, type Fault, refuse } from './fault.js';

/** Text that agents write, as it is kept: normal form, controls and length. */

/** All that is left alone for certain, typographic quotes and dashes included. */
const may_change = /[^\t\n\r -~\u00a0-\u02ff\u2002-\u2027\u202f-\u205f]/;
const line_breaks = /[\v\f\u0085\u2028\u2029]/g;
const refused = /(?![\t\n\r])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text without control characters but tab and line breaks, and without what turns the direction
 * of the text around it (U+202A–U+202E, U+2066–U+2069): nobody sees them, and they make a page or
 * a terminal show something else. They are left out, so that no long text is lost for one of them.
 * Text from right to left needs none, and the joiners of emoji and Persian are others. A text never
 * becomes longer.
 */
export const withoutControls = (text: string): string =>
  may_change.test(text) ? text.replace(line_breaks, '\n').replace(refused, '') : text;

/** A text as it is judged, kept and shown: in NFC and without controls; most texts are already. */
export const normaliseText = (text: string): string =>
  may_change.test(text) ? withoutControls(text).normalize('NFC') : text;

/** Whether what should be one line holds a line break, or what `withoutControls` leaves out. */
export const hasControls = (text: string): boolean =>
  /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text);

const beyond_plane = /[\u{10000}-\u{10ffff}]/gu;

/** Code points, which is what Postgres calls characters. */
export const countCharacters = (text: string): number =>
  text.length - (text.match(beyond_plane)?.length ?? 0);

interface TextLimits {
  readonly min: number;
  readonly max: number;
}

/**
 * A text as it is kept: trimmed and as `normaliseText` has it, with its characters counted after
 * that. The schema of the wire can only count before, and so lets some blanks more through.
 */
export const readText = (text: string, path: string, { min, max }: TextLimits): string | Fault => {
  const kept = normaliseText(text).trim();
  const length = countCharacters(kept);
  if (length >= min && length <= max) return kept;
  const name = path.replace('body.', '');
  return refuse(common_faults.INVALID_REQUEST, {
    message: `${name} must have ${min} to ${max} characters; it has ${length}.`,
    fields: [{ path, message: `${min} to ${max} characters after trimming, not ${length}` }],
  });
};

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
