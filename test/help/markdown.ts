/**
 * Shows how a Markdown renderer reads a text. Covers the CommonMark and GFM rules that can turn a
 * stranger's words into something else: links, images, HTML, code, emphasis, headings, lists,
 * tables, entities and autolinks. Like a parser, it handles escapes and code spans first.
 */

const escaped = /\\[!-/:-@[-`{-~]/g;

/** The text with each escaped character and code span replaced by a letter. */
export const bareOf = (line: string): string =>
  line.replace(escaped, 'x').replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, 'c');

const inline: readonly (readonly [string, RegExp])[] = [
  ['a link or an image', /\[[^\]]*\]\s*[([:]|!\[|\]\(/],
  ['an open bracket', /[[\]]/],
  ['HTML or an autolink', /<[a-z/!?]/i],
  ['a code span', /`/],
  ['strikethrough', /~/],
  ['an entity', /&(?:#\d+|#x[\da-f]+|[a-z][a-z\d]*);/i],
  ['an address that links itself', /(?:https?|ftp):\/\/\S/i],
  ['a www address', /\bwww\.\S/i],
  ['a mail address or a mention', /@/],
  ['mathematics', /\$/],
  ['a control or a direction mark', /\p{Default_Ignorable_Code_Point}|\p{Cc}|[\u2028\u2029]/u],
];

/** Problems in a line of Markdown that holds strangers' words. Empty if there are none. */
export const findMarkup = (line: string): readonly string[] => {
  const bare = bareOf(line);
  const found = inline.filter(([, pattern]) => pattern.test(bare)).map(([name]) => name);
  // The service itself emphasizes only a name at the start of a line, or a whole line.
  const own = bare.replace(/^\*\*[^*]*\*\*/, '').replace(/^\*[^*]+\*$/, '');
  if (/[*_]/.test(own)) found.push('emphasis');
  return found;
};

/** The blocks of a document, limited to the kinds that the service writes. */
export const blocksOf = (markdown: string) => {
  const lines = markdown.split('\n');
  return {
    headings: lines.filter((line) => /^ {0,3}#{1,6}(?:\s|$)/.test(line)),
    underlined: lines.filter((line, n) => /^ {0,3}(?:=+|-+)\s*$/.test(line) && lines[n - 1] !== ''),
    fences: lines.filter((line) => /^(?: {0,3}>)* {0,3}(?:```|~~~)/.test(line)),
    indented: lines.filter((line) => /^(?: {4}|\t)/.test(line)),
    nested: lines.filter((line) =>
      /^(?:> ?|- )\s{0,3}(?:#{1,6}\s|[-+*]\s|\d+[.)]\s|>|={2,}|-{3,})/.test(line),
    ),
    html: lines.filter((line) => /^ {0,3}<[a-z/!?]/i.test(line)),
    definitions: lines.filter((line) => /^(?:> ?)? {0,3}\[[^\]]+\]:/.test(line)),
  };
};
