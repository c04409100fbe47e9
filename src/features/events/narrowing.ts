/**
 * Members by which clients of other services narrow what they get, as words without signs. One that is
 * not known here is refused: its sender must not get more than it meant.
 */
const narrowing = new RegExp(
  '^(questions?(ids?)?|(sub)?categor(y|ies)|pillars?|(model)?famil(y|ies)|models?(names?)?|' +
    '(min|max)?conf(idence)?|events?(types?|names?)?|types?|kinds?|agents?(ids?)?|scope.*|topics?|' +
    'filter.*|tags?|only.*|where|conditions?)$',
);

/** Words that are recognized with one slip of the pen. */
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

/** Whether two words are equal but for one letter that is missing, wrong, too many or swapped. */
const isNear = (one: string, other: string): boolean => {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  let at = 0;
  while (at < short.length && short[at] === long[at]) at += 1;
  if (long.length > short.length) return short.slice(at) === long.slice(at + 1);
  if (short.slice(at + 1) === long.slice(at + 1)) return true;
  const is_swapped = short[at] === long[at + 1] && short[at + 1] === long[at];
  return is_swapped && short.slice(at + 2) === long.slice(at + 2);
};

/** `questionIds`, `question_ids` and `filter[question-ids]` are the same words. */
const wordOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, '');

const isNarrowing = (word: string): boolean =>
  narrowing.test(word) || spelt.some((known) => isNear(word, known));

/** The names of members that would have narrowed, and are not among the known ones; null narrows nothing. */
export const findNarrowing = (given: object, known: readonly string[]): readonly string[] =>
  Object.entries(given)
    .filter(([name, value]) => value !== null && !known.includes(name))
    .filter(([name]) => isNarrowing(wordOf(name)))
    .map(([name]) => name);

/** Members by which others say after which event they go on, which is `after` or `start` here. */
const placing = /^(after|since|from|starts?|offset|cursor|resume.*|last.*|position|seq.*)$/;

/** The same for the place in the log: not knowing it would begin elsewhere than was meant. */
export const findPlacing = (given: object, known: readonly string[]): readonly string[] =>
  Object.keys(given).filter((name) => !known.includes(name) && placing.test(wordOf(name)));
