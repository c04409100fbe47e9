import { blank, explainStacking, findLinks, normaliseText, readProse } from '../../kit/text.js';

/** The rules of a comment: length, words, no profanity, no spam. Pure, and linear in the text. */

export const comment_limits = {
  min_characters: 20,
  max_characters: 1_000,
  min_words: 5,
  word_letters: 3,
  max_links: 5,
  /** One character in a row, blanks and rules aside. */
  max_run: 15,
  top_level: 5,
} as const;

/** Replies to a comment of this depth become its siblings. */
export const deepest = 8;

/** Largest text in bytes as JSON, so that it fits into an event whatever it is made of. */
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
  /** In NFC and trimmed: what was checked and is stored. */
  readonly text: string;
  /** As `readTokens` has them. */
  readonly tokens: readonly string[];
  readonly failures: readonly TextFailure[];
}

const characters = new Intl.Segmenter('und', { granularity: 'grapheme' });

/** What may have no character of its own; looking for one costs less than the segmenter. */
const may_join = /[^\t\n -~\u00a0-\u02ff\u2010-\u2027]/;

/** Characters as people count them; may stop counting above `most`. */
export const countGraphemes = (text: string, most = Number.POSITIVE_INFINITY): number => {
  if (!may_join.test(text)) return text.length;
  let count = 0;
  for (const _ of characters.segment(text)) {
    count += 1;
    if (count > most) return count;
  }
  return count;
};

/** Words and numbers, folded, without the links; copies are recognised by them. */
export const readTokens = (text: string, links = findLinks(text)): readonly string[] =>
  blank(text, links)
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** From this Jaccard similarity of the sets of words and numbers on, 0 to 1, it is a near-copy. */
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
 * What is wrong with a text before it is normalised. Other texts may have four code units for each
 * character of their limit. Comments are counted as people count them, and an emoji of a family has
 * eight units and more, so the limit of bytes comes first here.
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
    return `It has ${links.length / 2} links; a comment may have ${max_links}.`;
  }
  if (run.test(text)) return `It repeats one character more than ${max_run} times in a row.`;
  // A sentence three times over has at most a third of different words.
  const is_repetitive = tokens.length >= 12 && new Set(tokens).size <= 0.34 * tokens.length;
  return is_repetitive ? 'It says the same again and again.' : null;
};

/** Every rule, all failures together; the first one is what the refusal is called. */
export const checkText = (raw: string): TextCheck => {
  const unfit = checkRaw(raw);
  if (unfit !== null) return { text: '', tokens: [], failures: [unfit] };
  const text = normaliseText(raw).trim();
  const length = checkLength(text);
  // A text that is far too long is not read any further.
  if (length?.code === 'COMMENT_TOO_LONG') return { text, tokens: [], failures: [length] };
  const { min_words, word_letters } = comment_limits;
  const links = findLinks(text);
  const prose = readProse(text, { links, uncounted: [], min_letters: word_letters });
  const tokens = readTokens(text, links);
  const failures: TextFailure[] = length === null ? [] : [length];
  const distinct = prose.distinct.length;
  if (distinct < min_words) {
    const message =
      `Use at least ${min_words} different words of ${word_letters} letters or more (two in ` +
      `scripts without blanks between words and in Korean), not ${distinct}.`;
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

/** The parent and depth of a reply: below the comment, or its sibling at the deepest level. */
export const placeReply = (to: Placed & { readonly depth: number }) =>
  to.depth >= deepest && to.parent_id !== null
    ? { parent_id: to.parent_id, depth: deepest }
    : { parent_id: to.id, depth: to.depth + 1 };

type Tree<R> = R & { readonly children: Tree<R>[] };

/** Rows are in their order; a comment below a hidden one is placed below the root. */
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
