/**
 * Names that clients of other services use for filters, in lower case and without punctuation. If a
 * request uses such a name and this service does not know it, the request is refused. Otherwise the
 * client would get more events than it meant.
 */
const narrowing = new RegExp(
  '^(questions?(ids?)?|(sub)?categor(y|ies)|pillars?|(model)?famil(y|ies)|models?(names?)?|' +
    '(min|max)?conf(idence)?|events?(types?|names?)?|types?|kinds?|agents?(ids?)?|scope.*|topics?|' +
    'filter.*|tags?|only.*|where|conditions?)$',
);

/** Words that are recognized even with one typing mistake. */
const spelt = [
  'question',
  'questions',
  'questionid',
  'questionids',
  'category',
  'categories',
  'subcategory',
  'model',
  'family',
  'modelfamily',
  'modelfamilies',
  'confidence',
  'minconfidence',
  'event',
  'events',
  'eventtypes',
  'topic',
  'topics',
  'filter',
  'filters',
];

/** Returns whether two words differ in at most one letter: missing, extra, wrong or swapped. */
const isNear = (one: string, other: string): boolean => {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  let at = 0;
  while (at < short.length && short[at] === long[at]) at += 1;
  if (long.length > short.length) return short.slice(at) === long.slice(at + 1);
  if (short.slice(at + 1) === long.slice(at + 1)) return true;
  const is_swapped = short[at] === long[at + 1] && short[at + 1] === long[at];
  return is_swapped && short.slice(at + 2) === long.slice(at + 2);
};

/**
 * Returns the letters of a name in lower case, so that `questionIds` and `question_ids` are equal.
 */
const wordOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, '');

const isNarrowing = (word: string): boolean =>
  narrowing.test(word) || spelt.some((known) => isNear(word, known));

/**
 * Returns the unknown members that look like filters. A null value filters nothing, so it is
 * ignored.
 */
export const findNarrowing = (given: object, known: readonly string[]): readonly string[] =>
  Object.entries(given)
    .filter(([name, value]) => value !== null && !known.includes(name))
    .filter(([name]) => isNarrowing(wordOf(name)))
    .map(([name]) => name);

/**
 * Names that other services use for the position to continue from. Here its name is `after` or
 * `start`.
 */
const placing = /^(after|since|from|starts?|offset|cursor|resume.*|last.*|position|seq.*)$/;

/**
 * Returns the unknown members that look like a position. Ignoring one would start at the wrong
 * event.
 */
export const findPlacing = (given: object, known: readonly string[]): readonly string[] =>
  Object.keys(given).filter((name) => !known.includes(name) && placing.test(wordOf(name)));
