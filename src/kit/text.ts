import {
  DataSet,
  englishDataset,
  type ParsedPattern,
  parseRawPattern,
  resolveConfusablesTransformer,
  resolveLeetSpeakTransformer,
  SyntaxKind,
} from 'obscenity';
import { type Fault, refuseFields } from './fault.js';

/** Text that agents write, as it is stored: normal form, control characters and length. */

/**
 * Matches characters that normalisation might change. Typographic quotes and dashes never change.
 */
const may_change = /[^\t\n\r -~\u00a0-\u02ff\u2002-\u2027\u202f-\u205f]/;
const line_breaks = /[\v\f\u0085\u2028\u2029]/g;
const refused = /(?![\t\n\r])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Removes control characters except tabs and line breaks, and the characters that change the
 * direction of the text around them (U+202A–U+202E, U+2066–U+2069). They are invisible and change
 * how a page or a terminal shows other text. They are removed rather than refused, so that no long
 * text is lost because of one. Right-to-left text does not need them, and the joiners of emoji and
 * Persian are different characters. A text never becomes longer.
 */
export const withoutControls = (text: string): string =>
  may_change.test(text) ? text.replace(line_breaks, '\n').replace(refused, '') : text;

/**
 * Sorting combining marks takes quadratic time, so a text has at most this many in a row. UAX #15
 * calls such a text stream-safe. Invisible characters between two marks do not separate them,
 * because `withoutControls` and `readProse` remove them.
 */
const max_stacked = 30;
/** Looks for a mark first, because looking behind every character takes three times as long. */
const stacked = new RegExp(
  `\\p{M}(?<!\\p{M}\\p{M})(?:[\\p{Cc}\\p{Cf}]*\\p{M}){${max_stacked}}`,
  'u',
);

/** Some marks become two in NFC, so the normal form is checked as well. */
const isStacked = (text: string): boolean =>
  may_change.test(text) && (stacked.test(text) || stacked.test(text.normalize('NFC')));

const beyond_ascii = /[^\0-\x7f]/;

/** The only caller of `String.normalize`. A text with too many marks in a row stays as it is. */
export const toNormalForm = (text: string, form: 'NFC' | 'NFKC' | 'NFKD'): string =>
  !beyond_ascii.test(text) || isStacked(text) ? text : text.normalize(form);

/** Returns a text in the form in which it is judged, stored and shown: NFC, without controls. */
export const normaliseText = (text: string): string =>
  may_change.test(text) ? toNormalForm(withoutControls(text), 'NFC') : text;

/**
 * Returns a text as one line, such as a title or an option: line breaks and tabs become a space.
 */
export const toLine = (text: string): string =>
  normaliseText(text)
    .replace(/\s*[\t\n\r]\s*/g, ' ')
    .trim();

/** True if a text has a tab, a line break, or a character that `withoutControls` removes. */
export const hasControls = (text: string): boolean =>
  /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text);

const beyond_plane = /[\u{10000}-\u{10ffff}]/gu;

/** Counts code points, which Postgres calls characters. */
export const countCharacters = (text: string): number =>
  text.length - (text.match(beyond_plane)?.length ?? 0);

interface TextLimits {
  readonly min: number;
  readonly max: number;
}

/** Maximum number of code units of a character in NFD. */
const units_a_character = 4;

/** Longer texts are refused before any other work is done on them. */
export const isFarTooLong = (text: string, max: number): boolean =>
  text.length > units_a_character * max;

/** Says why a text cannot be normalised, for a message after its name. Null if it can be. */
export const explainStacking = (text: string): string | null =>
  isStacked(text)
    ? `has more than ${max_stacked} combining marks in a row; remove some of them`
    : null;

/** Says why a text is refused, for a message after its name. Null if it is accepted. */
export const explainText = (text: string, max: number): string | null => {
  const unsafe = isFarTooLong(text, max) ? null : explainStacking(text);
  if (unsafe !== null) return unsafe;
  const fits = !isFarTooLong(text, max) && countCharacters(normaliseText(text).trim()) <= max;
  return fits ? null : `must have at most ${max} character${max === 1 ? '' : 's'}`;
};

/**
 * Returns a text as it is stored: normalised, trimmed, and only then counted. The schema of the
 * request can only count before trimming, so it accepts some extra spaces.
 */
export const readText = (text: string, path: string, { min, max }: TextLimits): string | Fault => {
  const kept = normaliseText(text).trim();
  const length = countCharacters(kept);
  if (length >= min && length <= max) return kept;
  const name = path.replace('body.', '');
  return refuseFields(
    [{ path, message: `must have ${min} to ${max} characters, not ${length}` }],
    `${name} must have ${min} to ${max} characters, not ${length}.`,
  );
};

/**
 * Finds http(s) links in text as people and models write them: bare, in angle brackets, in Markdown
 * links, in tables, followed by the punctuation of the sentence. Takes linear time, because each
 * link is read once.
 */

const scheme = /(?<![a-z])https?:\/\//gi;
/** A link ends at spaces, quotes and brackets, and at general, CJK and full-width punctuation. */
const stops =
  '\\u0000-\\u0020"\'<>`{}|\\\\^\\u007f-\\u00a0«»\\u1680\\u2000-\\u206f\\u3000-\\u303f' +
  '\\ufeff\\uff00-\\uff20\\uff5e';
/** Characters that do not end a link and neither open nor close a bracket. */
const plain = new RegExp(`[^${stops}()[\\],;]*`, 'y');
/** `a,https://b`: a comma or semicolon is part of a link unless the next link follows it. */
const inner = /[()[\]]|[,;](?!https?:\/\/)/iy;
const trailing = new Set('.",;:!?\'*~');

/**
 * A closing bracket ends the link if its opening bracket comes before the link. Pairs inside belong
 * to the link.
 */
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

/**
 * Returns start and end of every link in a flat list: `[start, end, start, end, …]`, sorted,
 * without overlaps.
 */
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

/**
 * Judges whether one word is profane. The word list, its patterns and the tables of look-alike
 * characters come from the `obscenity` library. Its matcher runs some 120 expressions over the text
 * one after the other (18 µs a word), so the same patterns are joined here into one expression
 * (below 1 µs).
 *
 * The list is cut down for a forum that talks about medicine, law, war, football and people called
 * Dick. Words with an ordinary meaning are removed. Patterns that would match inside ordinary words
 * are replaced by patterns for the whole word.
 */

type Phrase = typeof englishDataset extends DataSet<infer M> ? M : never;

/** Removed from the list: forecasts need these words (courts, clinics, names, units, birds). */
const ordinary = `
  abo anal anus arse ass bestiality chink cum dick dyke ejaculate hooker incest negro orgasm
  penis porn prick pussy rape scat semen sex spastic vagina
`;

/**
 * Replaced in the list: its patterns match inside Fukuyama, feckless, Slutsky, Dikshit, retardant,
 * …
 */
const replaced = `
  bitch boob cock cuck cunt fag fuck kike nigger orgy piss retard shit slut tit tranny turd twat
  wank
`;

const own_patterns = `
  asshole arsehole |asshat dumbass jackass bitch |boobs| |cocks| cocksuck |cuck| |cucks| |cunt|
  |cunts| dickhead faggot |fags| fuck |fck| |fcking |fcked |fuk| |fuking |fuked phuck |kikes|
  nigger nigga |orgies| |piss| |pissed| |pissing pisser |retard| |retards| |shit| |shits| |shity
  |shiting shithead shithole |shitshow bullshit horseshit batshit |slut| |sluts| |sluty|
  |tities| |trany| |tranies| |turd| |turds| |twat| |twats| |wank| |wanker |wanking f*ck sh*t
  b*tch c*nt
`;

/** Ordinary words that a pattern would still match. They are replaced by a neutral filler first. */
const innocent_terms = ['shii', 'shitak', 'niggard', 'snigger', 'twatt'];

const words = (list: string): string[] => list.trim().split(/\s+/);

const removed = new Set([...words(ordinary), 'double penetration', ...words(replaced)]);
const dataset = new DataSet<Phrase>()
  .addAll(englishDataset)
  .removePhrasesIf(({ metadata }) => metadata !== undefined && removed.has(metadata.originalWord))
  .build();

type PatternNode = ParsedPattern['nodes'][number];
const sourceOfNode = (node: PatternNode): string => {
  if (node.kind === SyntaxKind.Literal) {
    return String.fromCodePoint(...node.chars).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  }
  if (node.kind === SyntaxKind.Wildcard) return '.';
  if (node.kind === SyntaxKind.Optional) return `(?:${sourceOfNode(node.childNode)})?`;
  return '\\b';
};
const sourceOf = (parsed: ParsedPattern): string => {
  const middle = parsed.nodes.map(sourceOfNode).join('');
  const start = parsed.requireWordBoundaryAtStart ? '\\b' : '';
  return `${start}${middle}${parsed.requireWordBoundaryAtEnd ? '\\b' : ''}`;
};

const patterns = [
  ...dataset.blacklistedTerms.map((term) => term.pattern),
  ...words(own_patterns).map(parseRawPattern),
];
const profane = new RegExp(patterns.map(sourceOf).join('|'));

const one_word = /^[a-z]+$/;
const harmless = new RegExp(
  [...(dataset.whitelistedTerms ?? []), ...innocent_terms]
    .filter((term) => one_word.test(term))
    .join('|'),
  'g',
);

interface CharTransform {
  readonly transform: (code: number) => number | undefined;
}
const transforms = [resolveConfusablesTransformer(), resolveLeetSpeakTransformer()].map(
  (container) => (container as unknown as CharTransform).transform,
);

/** Longer texts are cut here: a normal form can be eighteen times as long as its text. */
const longest_text = 80_000;

const unspoken = /[\p{M}\p{Cf}]/gu;

/**
 * Replaces look-alikes, accents and digits with the letters they imitate, in the first 80,000
 * characters.
 */
const resolveLookalikes = (word: string): string => {
  let plain = '';
  const decomposed = toNormalForm(word, 'NFKD').slice(0, longest_text);
  for (const char of decomposed.replace(unspoken, '')) {
    let code: number | undefined = char.codePointAt(0);
    for (const transform of transforms) if (code !== undefined) code = transform(code);
    if (code !== undefined) plain += String.fromCodePoint(code);
  }
  return plain.toLowerCase();
};

/** Works like the library: a repeated letter becomes one, or two if words often double it. */
const collapseRepeats = (word: string): string =>
  word.replace(/([^beolsg])\1+/g, '$1').replace(/([beolsg])\1{2,}/g, '$1$1');

const has_repeat = /(.)\1/;
const latin_letter = /[a-z]/i;

/**
 * Judges one word (letters, digits and the symbols people write for letters). A word without a
 * single Latin letter is not judged: the list is English, and a Cyrillic or Greek word that only
 * looks like an English one is harmless.
 */
export const isProfane = (word: string): boolean => {
  let plain = word.toLowerCase();
  if (!one_word.test(plain)) {
    if (!latin_letter.test(toNormalForm(word, 'NFKC'))) return false;
    plain = resolveLookalikes(word);
  }
  const bare = plain.replace(harmless, '_');
  return profane.test(has_repeat.test(bare) ? collapseRepeats(bare) : bare);
};

/**
 * Reads the words of a text and finds objections to it: profanity and spam. A word is a run of
 * letters of any script with their combining marks. Everything else separates words, so `don't` is
 * two. A run in a script without spaces is cut into the words that `Intl.Segmenter` finds. Case and
 * invisible characters (zero-width, soft hyphen, direction) do not matter.
 */

/** A flat, sorted list without overlaps: `[start, end, start, end, …]`. */
type Ranges = readonly number[];

interface ProseRequest {
  /** Ranges that are not read at all. */
  readonly links: Ranges;
  /** Ranges whose words do not count towards `distinct`, such as headings. */
  readonly uncounted: Ranges;
  /**
   * Minimum number of letters for a word to count, at least two. In scripts without spaces and in
   * Korean it is always two.
   */
  readonly min_letters: number;
}

interface Objection {
  readonly kind: 'profanity' | 'spam';
  /** One sentence that names the objection. */
  readonly detail: string;
}

export interface Prose {
  /** Hashes of the different words that count. */
  readonly distinct: WordHashes;
  readonly objection: Objection | null;
}

const link_limit = 30;
const run_limit = 30;
const share_limit = 0.4;
const share_from_words = 20;

/** Only a text with one of these words is searched for the phrases below. */
const promo_words = new Set(
  words(`
    click buy money offer promo discount coupon giveaway whatsapp telegram viagra cialis casino
    subscribe guaranteed followers
  `),
);

/** Makes one expression from phrases that are separated by commas. */
const anyOf = (phrases: string, flags: string): RegExp => {
  const list = phrases.trim().split(/\s*,\s*/);
  return new RegExp(`\\b(?:${list.join('|')})\\b`, flags);
};

/** One of these phrases is enough for an objection. */
const blatant = anyOf(
  `
  click here (?:to|for|now), buy cheap, buy (?:followers|likes|upvotes),
  make money (?:fast|online|from home), double your (?:money|bitcoin|crypto),
  guaranteed (?:profits?|returns|winnings|income), (?:bitcoin|crypto|token) giveaway,
  (?:whatsapp|telegram) me, no deposit (?:bonus|casino)
  `,
  'i',
);

/** An objection needs two different phrases of these, because one alone may be a quotation. */
const pushy = anyOf(
  `
  buy now, click (?:here|below|the link), order now, act now, limited[- ]time offer, special offer,
  promo code, discount code, coupon code, subscribe now, sign up now,
  join (?:my|our) (?:telegram|whatsapp), free (?:bitcoin|crypto|money|gift cards?), 100% free,
  online casino, cheap viagra, buy viagra, special discount, dm me
  `,
  'gi',
);

const format = /\p{Cf}/gu;
const letters = /\p{L}/gu;
const letter_runs = /\p{L}[\p{L}\p{M}]*/gu;
/** Characters for which the number of code units is not the number of letters. */
const odd_letters = /[\p{M}\u{10000}-\u{10ffff}]/u;
/** Scripts that put no spaces between words, and for which ICU has dictionaries. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const dense = new RegExp(`${unspaced.source}|\\p{Script=Hangul}`, 'u');
const min_of_dense = 2;
const segmenter = new Intl.Segmenter('und', { granularity: 'word' });
/** Segmenting costs a hundred times as much as reading, so it is limited per run and text. */
const max_cut = { at_once: 300, of_run: 1_000, of_text: 20_000 } as const;

/** Folds case. The small sigma at the end of a word is the same letter as any other sigma. */
const fold = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');

/** Replaces the ranges with spaces of the same length. */
export const blank = (text: string, ranges: Ranges): string => {
  let rest = '';
  let from = 0;
  for (let n = 0; n < ranges.length; n += 2) {
    const [start = 0, end = 0] = [ranges[n], ranges[n + 1]];
    rest += text.slice(from, start) + ' '.repeat(end - start);
    from = end;
  }
  return rest + text.slice(from);
};

/** Returns only the text inside the ranges. */
const pick = (text: string, ranges: Ranges): string => {
  let picked = '';
  for (let n = 0; n < ranges.length; n += 2) picked += `${text.slice(ranges[n], ranges[n + 1])}   `;
  return picked;
};

/** Cuts several short runs in one call: a call of the segmenter costs as much as twenty words. */
const cutRuns = (runs: readonly string[]): string[] => {
  const words: string[] = [];
  let lines = '';
  let left = max_cut.of_text;
  const cut = (): void => {
    for (const { segment } of segmenter.segment(lines)) if (segment !== '\n') words.push(segment);
    lines = '';
  };
  for (const run of runs) {
    if (!unspaced.test(run)) words.push(run);
    else {
      const line = run.slice(0, Math.min(left, max_cut.of_run));
      left -= line.length;
      lines += `${line}\n`;
    }
    if (lines.length >= max_cut.at_once) cut();
  }
  cut();
  return words;
};

/** Returns the words of a folded text. */
const wordsOf = (text: string): string[] => {
  const runs = text.match(letter_runs) ?? [];
  return unspaced.test(text) ? cutRuns(runs) : runs;
};

const countLetters = (word: string): number => word.match(letters)?.length ?? 0;

/** Returns a check for words of at least `least` letters; two are enough in dense scripts. */
const makeLengthCheck = (text: string, least: number): ((word: string) => boolean) => {
  const count = odd_letters.test(text) ? countLetters : ({ length }: string) => length;
  if (least <= min_of_dense || !dense.test(text)) return (word) => count(word) >= least;
  return (word) => count(word) >= (dense.test(word) ? min_of_dense : least);
};

/**
 * Hashes of the different words of a text, in ascending order. A hash has 53 bits, so two different
 * words are never equal in practice. The seed is secret, so an attacker cannot search for a
 * collision.
 */
export type WordHashes = Float64Array;

const [seed_one = 0, seed_other = 0] = crypto.getRandomValues(new Int32Array(2));

/** Hashes the letters from `start` to `end`. Capitals from A to Z equal small letters. */
const hashWord = (text: string, start = 0, end = text.length): number => {
  let one = seed_one;
  let other = seed_other;
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    const letter = code < 91 ? code | 32 : code;
    one = Math.imul(one ^ letter, 0x9e3779b1);
    other = Math.imul(other ^ letter, 0x85ebca6b);
  }
  return (one >>> 0) * 2 ** 21 + (other >>> 11);
};

/**
 * Hashes of words that were found innocent: judging a word costs a microsecond, looking it up a
 * tenth. The hash of a word decides its slot, and a later word may take that slot.
 */
const innocent = new Float64Array(65_536);

const isInnocent = (hash: number): boolean => innocent[hash & (innocent.length - 1)] === hash;

/** A word used in advertising is not remembered, so that `readPlainProse` sees it each time. */
const isOffence = (word: string): boolean => {
  const hash = hashWord(word);
  if (isInnocent(hash)) return false;
  if (isProfane(word)) return true;
  if (!promo_words.has(word)) innocent[hash & (innocent.length - 1)] = hash;
  return false;
};

/** One or two substitutes for letters, with real letters on both sides, as in `sh1t`. */
const disguised = /(?<!\p{L})\p{L}{1,24}(?:[0-9@$!*]{1,2}\p{L}{1,24}){1,12}/gu;
const may_be_disguised = /\p{L}[0-9@$!*]{1,2}\p{L}/u;
/** Four or more separate letters, as in `f u c k`. */
const spelt = /(?<!\p{L})\p{L}(?:\P{L}{1,2}\p{L}(?!\p{L})){3,}/gu;
const max_spelt = 200;

/** Returns the first profane word, as written. */
const findProfanity = (text: string, words: Iterable<string>): string | null => {
  for (const word of words) if (isOffence(word)) return word;
  if (may_be_disguised.test(text)) {
    for (const [token] of text.matchAll(disguised)) {
      if (token.length >= 4 && isOffence(token)) return token;
    }
  }
  for (const [token] of text.matchAll(spelt)) {
    if (isOffence((token.match(letters) ?? []).join('').slice(0, max_spelt))) return token;
  }
  return null;
};

/** Matches long runs of one character, except characters that draw lines and tables. */
const run = new RegExp(`([^\\s=_*~.#|+:─━═—–…-])\\1{${run_limit},}`);

const findFrequent = (words: readonly string[]): { word: string; count: number } | null => {
  if (words.length < share_from_words) return null;
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) {
    if (count > share_limit * words.length) return { word, count };
  }
  return null;
};

const isPromotion = (text: string): boolean => {
  if (blatant.test(text)) return true;
  const found = new Set<string>();
  for (const [phrase] of text.matchAll(pushy)) found.add(phrase.toLowerCase());
  return found.size >= 2;
};

/** Removes invisible characters and folds case. */
const normal = (text: string): string => fold(text.replace(format, ''));

/** Returns the words of a text and the objection to it. The caller has already found its links. */
export const readProse = (text: string, request: ProseRequest): Prose =>
  readPlainProse(text, request) ?? readAnyProse(text, request);

export const readAnyProse = (text: string, request: ProseRequest): Prose => {
  const { links, uncounted, min_letters } = request;
  const readable = blank(text.slice(0, longest_text), links);
  const plain = readable.replace(format, '');
  const folded = fold(plain);
  const has_uncounted = uncounted.length > 0;
  const body = wordsOf(has_uncounted ? normal(blank(readable, uncounted)) : folded);
  const rest = has_uncounted ? wordsOf(normal(pick(readable, uncounted))) : [];
  const counted = new Set(body.filter(makeLengthCheck(folded, min_letters)));
  const distinct = Float64Array.from(counted, (word) => hashWord(word)).sort();
  const words = [...rest, ...body].filter(makeLengthCheck(folded, 2));
  const object = (kind: Objection['kind'], detail: string): Prose => ({
    distinct,
    objection: { kind, detail },
  });
  const show = (word: string): string => {
    const at = folded.length === plain.length ? folded.indexOf(word) : -1;
    return (at === -1 ? word : plain.slice(at, at + word.length)).slice(0, 40);
  };
  const profanity = findProfanity(folded, new Set(words));
  if (profanity !== null) {
    return object('profanity', `It contains profanity (“${show(profanity)}”).`);
  }
  if (links.length / 2 > link_limit) {
    return object('spam', `It contains ${links.length / 2} links. The limit is ${link_limit}.`);
  }
  const long_run = run.exec(plain);
  if (long_run !== null) {
    return object('spam', `It repeats one character ${long_run[0].length} times in a row.`);
  }
  const frequent = findFrequent(words);
  if (frequent !== null) {
    const { word, count } = frequent;
    return object('spam', `“${show(word)}” makes up ${count} of its ${words.length} words.`);
  }
  const is_suspect = words.some((word) => promo_words.has(word));
  if (is_suspect && isPromotion(text)) return object('spam', 'It reads like advertising.');
  return { distinct, objection: null };
};

const space = 32;
const isLatin = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122;
const beyond_plain = /[\p{L}\p{M}\p{Cf}\p{Cs}]/u;
const may_disguise = /^[0-9@$!*]{1,2}$/;
const max_letters = 30;
/** A buffer that holds the words that count while one text is read. */
const found = new Float64Array(longest_text);
/** Counts words by the last byte of their hash. No word occurs more often than its byte's count. */
const times = new Uint32Array(256);

/**
 * Does the same as `readAnyProse`, but in one pass, for a text whose only letters are A to Z.
 * Returns null for any other text, and if something in the text is suspicious.
 */
export const readPlainProse = (text: string, request: ProseRequest): Prose | null => {
  const { links, uncounted, min_letters } = request;
  if (links.length / 2 > link_limit) return null;
  const readable = blank(text.slice(0, longest_text), links);
  let [at, word_end, bound, words, counted, most] = [0, -3, 0, 0, 0, 0];
  times.fill(0);
  /** The last character, how often it repeats, and the number of single letters in a row. */
  let [last, equal, singles] = [0, 0, 0];
  let is_suspect = false;
  while (at < readable.length) {
    const code = readable.charCodeAt(at);
    if (!isLatin(code)) {
      if (code > 127 && beyond_plain.test(readable.charAt(at))) return null;
      equal = code === last && code !== space ? equal + 1 : 1;
      if (equal > run_limit) return null;
      last = code;
      at += 1;
      continue;
    }
    const start = at;
    while (isLatin(readable.charCodeAt(at))) at += 1;
    const length = at - start;
    while (uncounted[bound]! <= start) bound += 1;
    if (length > max_letters || uncounted[bound]! < at) return null;
    const is_close = start - word_end <= 2;
    if (is_close && last !== space && may_disguise.test(readable.slice(word_end, start)))
      return null;
    singles = length > 1 ? 0 : is_close ? singles + 1 : 1;
    if (singles === 4) return null;
    word_end = at;
    last = 0;
    if (length === 1) continue;
    const hash = hashWord(readable, start, at);
    if (!isInnocent(hash)) {
      const word = readable.slice(start, at).toLowerCase();
      if (isOffence(word)) return null;
      is_suspect ||= promo_words.has(word);
    }
    words += 1;
    most = Math.max(most, ++times[hash & 255]!);
    if (bound % 2 === 0 && length >= min_letters) found[counted++] = hash;
  }
  if (is_suspect && isPromotion(text)) return null;
  if (words >= share_from_words && most > share_limit * words) return null;
  const sorted = found.subarray(0, counted).sort();
  let distinct = 0;
  for (let n = 0; n < counted; n += 1) {
    if (n === 0 || sorted[n] !== sorted[distinct - 1]) sorted[distinct++] = sorted[n]!;
  }
  return { distinct: found.slice(0, distinct), objection: null };
};

/**
 * Returns the objection to publishing a text: profanity, or spam (more than 30 links, one character
 * more than 30 times in a row, one word for more than 40 % of 20 or more words, advertising). Links
 * are not searched for profanity. Takes linear time.
 */
export const findObjection = (text: string): Objection | null =>
  readProse(text, { links: findLinks(text), uncounted: [], min_letters: 2 }).objection;
