import { codeAt } from './code-at.js';

/**
 * Finds http(s) links in prose as people and models write them: bare, in angle brackets, in
 * Markdown links, in tables, with the punctuation of the sentence behind them. Linear time: the
 * text is searched for `://`, and every link is walked once.
 */

const stops = new Set([...'"<>`{}|\\^'].map((char) => char.charCodeAt(0)));
const trailing = new Set([...".,;:!?'*~"].map((char) => char.charCodeAt(0)));

const ascii_stop = new Uint8Array(256);
for (let code = 0; code < 256; code += 1) {
  const blank = code <= 0x20 || (code >= 0x7f && code <= 0xa0);
  ascii_stop[code] = blank || code === 0xab || code === 0xbb || stops.has(code) ? 1 : 0;
}

/** Beyond Latin-1 a link ends at blanks and at general, CJK and full-width punctuation. */
const endsLink = (code: number): boolean => {
  if (code < 256) return ascii_stop[code] === 1;
  if (code >= 0x2000 && code <= 0x206f) return true;
  if (code >= 0x3000 && code <= 0x303f) return true;
  return (
    code === 0x1680 || code === 0xfeff || (code >= 0xff00 && code <= 0xff20) || code === 0xff5e
  );
};

const isAsciiLetter = (code: number): boolean => {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
};

/** Where `http` or `https` begins that ends right before `colon`; −1 when it is another scheme. */
const schemeStart = (text: string, colon: number): number => {
  const secure = (codeAt(text, colon - 1) | 0x20) === 0x73;
  const start = colon - (secure ? 5 : 4);
  if (start < 0) return -1;
  const is_http =
    (codeAt(text, start) | 0x20) === 0x68 &&
    (codeAt(text, start + 1) | 0x20) === 0x74 &&
    (codeAt(text, start + 2) | 0x20) === 0x74 &&
    (codeAt(text, start + 3) | 0x20) === 0x70;
  if (!is_http || (start > 0 && isAsciiLetter(codeAt(text, start - 1)))) return -1;
  return start;
};

/** `a,https://b`: a comma or semicolon is part of a link unless the next link follows it. */
const splitsLinks = (text: string, at: number): boolean => {
  const code = codeAt(text, at);
  if (code !== 0x2c && code !== 0x3b) return false;
  return (codeAt(text, at + 1) | 0x20) === 0x68 && /^https?:\/\//i.test(text.slice(at + 1, at + 9));
};

/** A closing bracket ends the link when it opens before the link; inside pairs it belongs to it. */
const linkEnd = (text: string, from: number): number => {
  let round = 0;
  let square = 0;
  let end = from;
  const { length } = text;
  for (; end < length; end += 1) {
    const code = codeAt(text, end);
    if (endsLink(code) || splitsLinks(text, end)) break;
    if (code === 0x28) round += 1;
    else if (code === 0x5b) square += 1;
    else if (code === 0x29 && --round < 0) break;
    else if (code === 0x5d && --square < 0) break;
  }
  while (end > from && trailing.has(codeAt(text, end - 1))) end -= 1;
  return end;
};

/** Start and end of every link, flat: `[start, end, start, end, …]`, in order, apart. */
export const findLinks = (text: string): number[] => {
  const links: number[] = [];
  let colon = text.indexOf('://');
  while (colon !== -1) {
    const start = schemeStart(text, colon);
    let next = colon + 3;
    if (start !== -1) {
      const end = linkEnd(text, next);
      if (end > next) links.push(start, end);
      next = end;
    }
    colon = text.indexOf('://', next);
  }
  return links;
};
