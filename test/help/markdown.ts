/**
 * What a reader of Markdown makes of a text, by the rules of CommonMark and GFM that can turn the
 * words of a stranger into something else: links, images, HTML, code, emphasis, headings, lists,
 * tables, entities, and addresses that become links by themselves. Escapes and code spans are
 * taken out first, as a parser does.
 */

const escaped = /\\[!-/:-@[-`{-~]/g;

/** The text without escaped signs and code spans, each replaced by a letter. */
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

/** What is wrong with a line of Markdown that holds words of strangers; empty when nothing is. */
export const findMarkup = (line: string): readonly string[] => {
  const bare = bareOf(line);
  const found = inline.filter(([, pattern]) => pattern.test(bare)).map(([name]) => name);
  // The emphasis of the service itself stands alone around a name or at the ends of a line.
  const own = bare.replace(/^\*\*[^*]*\*\*/, '').replace(/^\*[^*]+\*$/, '');
  if (/[*_]/.test(own)) found.push('emphasis');
  return found;
};

/** The blocks of a document, as far as the service writes any. */
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
