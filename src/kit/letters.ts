import { codeAt } from './code-at.js';

/**
 * What each UTF-16 code unit means to a reader of words. One table lookup answers both "is this
 * part of a word" and "which letter is it, whatever its case".
 */

/** Not part of a word. */
export const is_apart = 0;
/**
 * Invisible inside a word (zero-width, soft hyphen, bidi): the word goes on as if it were absent.
 */
export const is_ignored = 1;
/** A combining mark or the second half of a pair: goes on with a word and counts as no letter. */
export const is_mark = 2;
/** The first half of a surrogate pair: ask `classOfPair`. */
const is_pair = 3;
/** From here on a class is the case-folded letter itself. */
export const first_letter = 32;

/** Up and down again, so that both sigmas and both s meet; a letter that grows stays itself. */
const fold = (char: string): number => {
  const folded = char.toUpperCase().toLowerCase();
  return folded.length === 1 ? folded.charCodeAt(0) : char.toLowerCase().charCodeAt(0);
};

const letter = /\p{L}/u;
const mark = /\p{M}/u;
const format = /\p{Cf}/u;

const classOf = (code: number): number => {
  if (code >= 0xdc00 && code <= 0xdfff) return is_mark;
  if (code >= 0xd800 && code <= 0xdbff) return is_pair;
  const char = String.fromCharCode(code);
  if (letter.test(char)) return fold(char);
  if (mark.test(char)) return is_mark;
  return format.test(char) ? is_ignored : is_apart;
};

/** Classes of Latin-1, where nearly all text lies. */
export const narrow_classes = Uint16Array.from({ length: 256 }, (_, code) => classOf(code));

/**
 * Classes of the whole plane, made at the first need (some 10 ms) because few processes need it.
 */
let wide_classes: Uint16Array | undefined;

/**
 * The class of the code unit `code` at `at`, which is beyond Latin-1. A pair is one character: its
 * second half goes the way of the first.
 */
export const classOfWide = (text: string, at: number, code: number): number => {
  wide_classes ??= Uint16Array.from({ length: 65_536 }, (_, other) => classOf(other));
  const found = wide_classes[code]!;
  if (found === is_pair) {
    const pair = text.slice(at, at + 2);
    if (letter.test(pair)) return code;
    if (mark.test(pair)) return is_mark;
    return format.test(pair) ? is_ignored : is_apart;
  }
  if (code < 0xdc00 || code > 0xdfff || at === 0) return found;
  return format.test(text.slice(at - 1, at + 1)) ? is_ignored : found;
};

export const isLetterAt = (text: string, at: number): boolean => {
  if (at >= text.length) return false;
  const code = codeAt(text, at);
  return (code < 256 ? narrow_classes[code]! : classOfWide(text, at, code)) >= first_letter;
};
