import {
  DataSet,
  englishDataset,
  type ParsedPattern,
  parseRawPattern,
  resolveConfusablesTransformer,
  resolveLeetSpeakTransformer,
  SyntaxKind,
} from 'obscenity';

/**
 * Whether one word is profane. The word list, its patterns and the tables of look-alike characters
 * are the `obscenity` library's. Its matcher runs some 120 expressions over the text one after the
 * other (18 µs a word), so the same patterns are joined here into one expression (below 1 µs).
 *
 * The list is cut down for a forum that talks about medicine, law, war, football and people called
 * Dick: words with an ordinary meaning are out, and patterns that would hit inside ordinary words
 * are replaced by ones that ask for the whole word.
 */

type Phrase = typeof englishDataset extends DataSet<infer M> ? M : never;

/** Dropped, because forecasts need the word (courts, clinics, names, units, birds). */
const ordinary = `
  abo anal anus arse ass bestiality chink cum dick dyke ejaculate hooker incest negro orgasm
  penis porn prick pussy rape scat semen sex spastic vagina
`;

/** Replaced: the listed patterns hit inside Fukuyama, feckless, Slutsky, Dikshit, retardant, … */
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

/** Ordinary words that a pattern would still hit; replaced by a neutral filler beforehand. */
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
const innocent = new RegExp(
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

const unspoken = /[\p{M}\p{Cf}]/gu;

/** Look-alikes, accents and digits to the letters they stand for. */
const resolveLookalikes = (word: string): string => {
  let plain = '';
  for (const char of word.normalize('NFKD').replace(unspoken, '')) {
    let code: number | undefined = char.codePointAt(0);
    for (const transform of transforms) if (code !== undefined) code = transform(code);
    if (code !== undefined) plain += String.fromCodePoint(code);
  }
  return plain.toLowerCase();
};

/** As the library does it: a letter written many times counts once, or twice where words double. */
const collapseRepeats = (word: string): string =>
  word.replace(/([^beolsg])\1+/g, '$1').replace(/([beolsg])\1{2,}/g, '$1$1');

const has_repeat = /(.)\1/;
const latin_letter = /[a-z]/i;

/**
 * Judges one word (letters, digits and the symbols people write for letters). A word without a
 * single Latin letter is not judged: the list is English, and a Cyrillic or Greek word that only
 * looks like something is innocent.
 */
export const isProfane = (word: string): boolean => {
  let plain = word.toLowerCase();
  if (!one_word.test(plain)) {
    if (!latin_letter.test(word.normalize('NFKC'))) return false;
    plain = resolveLookalikes(word);
  }
  const bare = plain.replace(innocent, '_');
  return profane.test(has_repeat.test(bare) ? collapseRepeats(bare) : bare);
};
