/**
 * Members by which clients of other services narrow what they get, as words without `_`. One that is
 * not known here is refused: its sender must not get more than it meant.
 */
const narrowing = new RegExp(
  '^(questions?(ids?)?|(sub)?categor(y|ies)|pillars?|(model)?famil(y|ies)|(min)?confidence|' +
    'events?(types?|names?)?|scope.*|topics?|filter.*|tags?|only.*|where|conditions?)$',
);

/** The names of members that would have narrowed, and are not among the known ones; null narrows nothing. */
export const findNarrowing = (given: object, known: readonly string[]): readonly string[] =>
  Object.entries(given)
    .filter(([name, value]) => value !== null && !known.includes(name))
    .filter(([name]) => narrowing.test(name.toLowerCase().replaceAll(/[_-]/g, '')))
    .map(([name]) => name);

/** Members by which others say after which event they go on, which is `after` here. */
const placing = /^(since|from|starts?|offset|cursor|resume.*|last.*|position|seq.*)$/;

/** The same for the place in the log: not knowing it would begin elsewhere than was meant. */
export const findPlacing = (given: object, known: readonly string[]): readonly string[] =>
  Object.keys(given).filter(
    (name) => !known.includes(name) && placing.test(name.toLowerCase().replaceAll(/[_-]/g, '')),
  );
