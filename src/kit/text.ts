import { findLinks } from './links.js';
import { isProfane } from './profanity.js';
import { offence, type Ranges, WordReader, type WordScan } from './words.js';

/** Hygiene of text that agents write: normal form, profanity, spam. */

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

/** Code points, which is what Postgres calls characters. */
export const countCharacters = (text: string): number => {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) !== 0xd800) continue;
    if ((text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      count -= 1;
      at += 1;
    }
  }
  return count;
};

export interface Objection {
  readonly kind: 'profanity' | 'spam';
  /** One sentence that says what it is. */
  readonly detail: string;
}

const link_limit = 30;
const run_limit = 30;
const share_limit = 0.4;
const share_from_words = 20;

/** Only a text with one of these words is searched for the phrases below. */
const promo_words = new Set([
  'click',
  'buy',
  'money',
  'offer',
  'promo',
  'discount',
  'coupon',
  'giveaway',
  'whatsapp',
  'telegram',
  'viagra',
  'cialis',
  'casino',
  'subscribe',
  'guaranteed',
  'followers',
]);

/** One of these is enough. */
const blatant = new RegExp(
  [
    'click here (?:to|for|now)',
    'buy cheap',
    'buy (?:followers|likes|upvotes)',
    'make money (?:fast|online|from home)',
    'double your (?:money|bitcoin|crypto)',
    'guaranteed (?:profits?|returns|winnings|income)',
    '(?:bitcoin|crypto|token) giveaway',
    '(?:whatsapp|telegram) me',
    'no deposit (?:bonus|casino)',
  ]
    .map((phrase) => `\\b${phrase}\\b`)
    .join('|'),
  'i',
);

/** Two different ones of these together; one alone may be a quotation. */
const pushy = new RegExp(
  [
    'buy now',
    'click (?:here|below|the link)',
    'order now',
    'act now',
    'limited[- ]time offer',
    'special offer',
    'promo code',
    'discount code',
    'coupon code',
    'subscribe now',
    'sign up now',
    'join (?:my|our) (?:telegram|whatsapp)',
    'free (?:bitcoin|crypto|money|gift cards?)',
    '100% free',
    'online casino',
    'cheap viagra',
    'buy viagra',
    'special discount',
    'dm me',
  ]
    .map((phrase) => `\\b${phrase}\\b`)
    .join('|'),
  'gi',
);

const promo = 2;
const reader = new WordReader(
  (word) => (isProfane(word) ? offence : 0) | (promo_words.has(word.toLowerCase()) ? promo : 0),
);

const isPromotion = (text: string): boolean => {
  if (blatant.test(text)) return true;
  const found = new Set<string>();
  for (const [phrase] of text.matchAll(pushy)) found.add(phrase.toLowerCase());
  return found.size >= 2;
};

const objectionOf = (text: string, scan: WordScan, links: number): Objection | null => {
  if (scan.offender !== null) {
    return {
      kind: 'profanity',
      detail: `It contains profanity (“${scan.offender.slice(0, 40)}”).`,
    };
  }
  const spam = (detail: string): Objection => ({ kind: 'spam', detail });
  if (links > link_limit) return spam(`It contains ${links} links; ${link_limit} are the limit.`);
  if (scan.longest_run > run_limit) {
    return spam(`It repeats one character ${scan.longest_run} times in a row.`);
  }
  const { count, start, end } = scan.top;
  if (scan.words >= share_from_words && count > share_limit * scan.words) {
    const word = text.slice(start, Math.min(end, start + 40));
    return spam(`“${word}” makes up ${count} of its ${scan.words} words.`);
  }
  if ((scan.marks & promo) !== 0 && isPromotion(text)) return spam('It reads like advertising.');
  return null;
};

export interface ProseRequest {
  readonly links: Ranges;
  /** Ranges whose words do not count, such as headings; flat like the links. */
  readonly uncounted: Ranges;
  readonly min_letters: number;
  readonly collect?: boolean;
  /** Words as each script has them; see `WordScanRequest`. */
  readonly cuts?: boolean;
}

export interface Prose {
  /** Different words of at least `min_letters` letters, case-folded, without links and headings. */
  readonly distinct_words: number;
  /** These words as numbers that hold in this process; empty unless `collect` is set. */
  readonly collected: readonly number[];
  readonly is_ascii: boolean;
  readonly objection: Objection | null;
}

/** Words and objections of a text in one pass, for callers that have found its links already. */
export const readProse = (text: string, request: ProseRequest): Prose => {
  const scan = reader.read(text, request);
  const objection = objectionOf(text, scan, request.links.length / 2);
  const { distinct: distinct_words, collected, is_ascii } = scan;
  return { distinct_words, collected, is_ascii, objection };
};

/**
 * What speaks against publishing a text: profanity, or spam (more than 30 links, one character
 * more than 30 times in a row, one word for more than 40 % of 20 or more words, advertising).
 * Links are not read for profanity. Linear in the length of the text.
 */
export const findObjection = (text: string): Objection | null =>
  readProse(text, { links: findLinks(text), uncounted: [], min_letters: 1 }).objection;
