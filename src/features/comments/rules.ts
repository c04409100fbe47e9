import { blank, explainStacking, findLinks, normaliseText, readProse } from '../../kit/text.js';

/** Rules for comments: length, words, no profanity, no spam. Pure functions in linear time. */

export const comment_limits = {
  min_characters: 20,
  max_characters: 1_000,
  min_words: 5,
  word_letters: 3,
  max_links: 5,
  /** Maximum length of a run of one character. Spaces and line-drawing characters are exempt. */
  max_run: 15,
  top_level: 5,
} as const;

/** Replies to a comment of this depth become its siblings. */
export const deepest = 8;

/** Maximum size of a comment as JSON, so that every comment fits into an event. */
const max_bytes = 30_000;

export interface TextFailure {
  readonly path: 'body.content';
  readonly code:
    | 'COMMENT_TOO_SHORT'
    | 'COMMENT_TOO_LONG'
    | 'COMMENT_LOW_QUALITY'
    | 'INVALID_REQUEST'
    | 'CONTENT_REJECTED';
  readonly message: string;
}

export interface TextCheck {
  /** The text that was checked and is stored: in NFC, trimmed. */
  readonly text: string;
  /** The result of `readTokens`. */
  readonly tokens: readonly string[];
  readonly failures: readonly TextFailure[];
}

const characters = new Intl.Segmenter('und', { granularity: 'grapheme' });

/** Matches characters that the segmenter may join. This test is faster than segmenting. */
const may_join = /[^\t\n -~\u00a0-\u02ff\u2010-\u2027]/;

/** Counts characters as readers see them. May stop as soon as the count exceeds `most`. */
export const countGraphemes = (text: string, most = Number.POSITIVE_INFINITY): number => {
  if (!may_join.test(text)) return text.length;
  let count = 0;
  for (const _ of characters.segment(text)) {
    count += 1;
    if (count > most) return count;
  }
  return count;
};

/** Returns the words and numbers that identify copies, in lower case and without links. */
export const readTokens = (text: string, links = findLinks(text)): readonly string[] =>
  blank(text, links)
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** Near-copies have at least this Jaccard similarity (0 to 1) of their words and numbers. */
const copy_similarity = 0.9;

export const isCopyOf = (own: ReadonlySet<string>, text: string): boolean => {
  const other = new Set(readTokens(text));
  const shared = [...other].filter((one) => own.has(one)).length;
  const all = own.size + other.size - shared;
  return all === 0 || shared / all >= copy_similarity;
};

const fail = (code: TextFailure['code'], message: string): TextFailure => ({
  path: 'body.content',
  code,
  message,
});

const too_long = fail(
  'COMMENT_TOO_LONG',
  `Write at most ${comment_limits.max_characters} characters (and ${max_bytes} bytes).`,
);

/**
 * Checks a comment before it is normalised. Other texts may have four code units per character of
 * their limit. That is not enough here: a comment's limit counts visible characters, and a family
 * emoji alone has eight units or more. So this checks the comment's size in bytes instead.
 */
const checkRaw = (raw: string): TextFailure | null => {
  if (raw.length > max_bytes || Buffer.byteLength(raw) > max_bytes) return too_long;
  const unsafe = explainStacking(raw);
  return unsafe === null ? null : fail('INVALID_REQUEST', `content ${unsafe}.`);
};

const checkLength = (text: string): TextFailure | null => {
  const { min_characters, max_characters } = comment_limits;
  if (text.length < max_bytes && Buffer.byteLength(JSON.stringify(text)) <= max_bytes) {
    const count = countGraphemes(text, max_characters);
    if (count < min_characters) {
      const message = `Write at least ${min_characters} characters, not ${count}.`;
      return fail('COMMENT_TOO_SHORT', message);
    }
    if (count <= max_characters) return null;
  }
  return too_long;
};

const run = new RegExp(`([^\\s=_*~.#|+:─━═—–…-])\\1{${comment_limits.max_run},}`, 'u');

const findSpam = (
  text: string,
  links: readonly number[],
  tokens: readonly string[],
): string | null => {
  const { max_links, max_run } = comment_limits;
  if (links.length / 2 > max_links) {
    return `It has ${links.length / 2} links. A comment can have at most ${max_links}.`;
  }
  if (run.test(text)) return `It repeats one character more than ${max_run} times in a row.`;
  // If a sentence is written three times, at most a third of the words are distinct.
  const is_repetitive = tokens.length >= 12 && new Set(tokens).size <= 0.34 * tokens.length;
  return is_repetitive ? 'It repeats itself.' : null;
};

/** Checks every rule and returns all failures. The first one gives the error code. */
export const checkText = (raw: string): TextCheck => {
  const unfit = checkRaw(raw);
  if (unfit !== null) return { text: '', tokens: [], failures: [unfit] };
  const text = normaliseText(raw).trim();
  const length = checkLength(text);
  // If the text is too long, nothing else is checked.
  if (length?.code === 'COMMENT_TOO_LONG') return { text, tokens: [], failures: [length] };
  const { min_words, word_letters } = comment_limits;
  const links = findLinks(text);
  const prose = readProse(text, { links, uncounted: [], min_letters: word_letters });
  const tokens = readTokens(text, links);
  const failures: TextFailure[] = length === null ? [] : [length];
  const distinct = prose.distinct.length;
  if (distinct < min_words) {
    const message =
      `Use at least ${min_words} different words of ${word_letters} letters or more, not ` +
      `${distinct}. In Korean and in scripts without spaces, two letters are enough.`;
    failures.push(fail('COMMENT_LOW_QUALITY', message));
  }
  const objection = prose.objection?.detail ?? findSpam(text, links, tokens);
  if (objection !== null) {
    failures.push(fail('CONTENT_REJECTED', `The comment was not accepted. ${objection}`));
  }
  return { text, tokens, failures };
};

interface Placed {
  readonly id: string;
  readonly parent_id: string | null;
}

/** Returns the parent and depth of a reply. At the deepest level, the reply becomes a sibling. */
export const placeReply = (to: Placed & { readonly depth: number }) =>
  to.depth >= deepest && to.parent_id !== null
    ? { parent_id: to.parent_id, depth: deepest }
    : { parent_id: to.id, depth: to.depth + 1 };

type Tree<R> = R & { readonly children: Tree<R>[] };

/** Builds trees from rows in order. A reply to a hidden comment is placed below the root. */
export const growTrees = <R extends Placed & { readonly root_id: string }, F extends R>(
  roots: readonly F[],
  rows: readonly R[],
): readonly (F & { readonly children: Tree<R>[] })[] => {
  const nodes = new Map(rows.map((row) => [row.id, { ...row, children: [] } as Tree<R>]));
  const trees = roots.map((root) => ({ ...root, children: [] as Tree<R>[] }));
  for (const tree of trees) nodes.set(tree.id, tree);
  for (const { id, parent_id, root_id } of rows) {
    const node = nodes.get(id);
    if (node === undefined || parent_id === null) continue;
    (nodes.get(parent_id) ?? nodes.get(root_id))?.children.push(node);
  }
  return trees;
};
