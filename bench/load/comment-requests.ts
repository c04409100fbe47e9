import { makePairs, type PairOptions } from './pairs.js';
import { adjectives, nouns, places, verbs } from './vocabulary.js';

/** Requests of the bench `comments`: comments, each with a text of its own, or upvotes. */
export interface CommentRequests extends PairOptions {
  readonly kind: 'comment' | 'vote';
}

/** Mulberry32 (Tommy Ettinger). */
const makeRandom = (seed: number) => {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 0;
  return (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

/** Some 200 characters; text `n` is always the same. */
export const makeComment = (n: number): string => {
  const random = makeRandom(n);
  const one = (list: readonly string[]): string => list[(random() * list.length) | 0] as string;
  const clause = (): string =>
    `the ${one(adjectives)} ${one(nouns)} of ${one(places)} ${one(verbs)} the ${one(nouns)}`;
  return `Note ${n}: ${clause()} while ${clause()}, although ${clause()}.`;
};

export const makeRequests = (options: CommentRequests): readonly Buffer[] =>
  makePairs(options, (subject, text) =>
    options.kind === 'vote'
      ? { path: `/api/comments/${subject}/upvote`, body: {} }
      : { path: `/api/questions/${subject}/comments`, body: { content: makeComment(text) } },
  );
