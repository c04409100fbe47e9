import { readdirSync } from 'node:fs';
import path from 'node:path';
import { readSources, type Source } from '../help/imports.js';
import { project_root } from '../help/own-stores.js';
import { readDocument } from '../help/readme.js';
import { t } from '../help/tap.js';

/**
 * Plain English, as far as a program can check it. None of the phrases below may occur in comments,
 * in texts of the source (refusals, descriptions, log lines, pages), or in the documents.
 */

/** Phrases that a colleague would not say, each with a sentence that contains it. */
const phrases: readonly (readonly [name: string, pattern: RegExp, example: string])[] = [
  [
    'a sentence that opens with a word for a thing left unnamed',
    /^(Of|What|Where|Who|Whoever|Whose|That which|Those that|Those who|There (is|are) none)\b(?!.*\?$)/,
    'Of a question its options.',
  ],
  [
    'an elliptic sentence',
    /^(Null|Empty|Absent|None|Zero|0|True|False|Undefined)\b[^:]{0,12}: (it|they) (has|have|is|are) (none|no\b)/i,
    'Null: it has none.',
  ],
  ['anew', /\banew\b/i, 'Resolve anew.'],
  ['is none', /\b(?<!if there )(is|are|has|have|was|were|be) none\b/i, 'The address that is none.'],
  [
    'what … as a noun',
    /\bwhat (is(?! wrong)|are|was|were|has|have|had|it|they|came|comes|goes|went|stands|happens|belongs|the|there|others|nobody|everybody|each|its|follows|fails|remains)\b/i,
    'Everything reads what is kept.',
  ],
  [
    'those that',
    /\b(those that|those who|that which|that of|those of)\b/i,
    'It ends those that wait.',
  ],
  [
    'stands for is',
    /\b(stands|stood|stand) (in(?! for)|at|on|for|beside|there|below|above|here|with|behind|before|still)\b/i,
    'The name stands in the file.',
  ],
  ['so many for this many', /\bso (many|long|much|often|few)\b(?! as| that)/i, 'It waits so long.'],
  ['told of', /\b(tells?|told) (of|apart|from)\b/i, 'Permissions do not tell of it.'],
  [
    'whoever',
    /\b(whoever|whatever|of nobody|that nobody(?! else))\b/i,
    'It is the hash of nobody.',
  ],
  [
    'as many as there',
    /\b(as many as|as long as|as often as) (there|it|they|one)\b/i,
    'As many as there are.',
  ],
  [
    'kept as',
    /\b(is|are|be|was|were) (kept|told|begun|taken|seen) (for|as|of|by itself)\b/i,
    'It is taken for dead.',
  ],
  [
    'an archaic word',
    /\b(likewise|thereby|therein|thereof|whereupon|henceforth|hitherto)\b/i,
    'It is checked likewise.',
  ],
  [
    'where for if',
    /(?:^|[,;:] |\b(?:null|nothing|empty|only|also|except|but|true|false|all|line) )where (there|it|one|they|nothing|no|none|that|a|the)\b/i,
    'It is null where there is no answer.',
  ],
];

/** Sentences that contain a phrase but are natural. */
const allowed: ReadonlySet<string> = new Set([]);

interface Passage {
  readonly line: number;
  readonly text: string;
}

/** Comments, and also strings and patterns, because no comment begins inside these. */
const tokens =
  /\/\*\*?[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*(?=[\s;,.)\]:?])/g;

const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length;

/** The comments in a source. One-line comments on consecutive lines count as one. */
const commentsIn = (text: string): readonly Passage[] => {
  const found: { line: number; text: string; last_line: number }[] = [];
  for (const { 0: token, index } of text.matchAll(tokens)) {
    const line = lineOf(text, index);
    if (token.startsWith('/*')) {
      const body = token.replace(/^\/\*\*?|\*\/$/g, '').replace(/^\s*\* ?/gm, '');
      found.push({ line, text: body, last_line: -1 });
    } else if (token.startsWith('//')) {
      const [body, before] = [token.slice(2).trim(), found.at(-1)];
      if (before?.last_line !== line - 1) found.push({ line, text: body, last_line: line });
      else Object.assign(before, { text: `${before.text} ${body}`, last_line: line });
    }
  }
  return found;
};

const is_statement =
  /^\s*(?:select|insert|update|delete|with|create|alter|drop|from|where|and|order)\b/;

/** Texts in a source with at least three words: strings, templates, and the text of pages. */
const textsIn = (source: string): readonly Passage[] => {
  const strings = [...source.matchAll(tokens)]
    .filter(([token]) => /^['"`]/.test(token))
    .map(({ 0: token, index }) => ({ index, text: token.slice(1, -1) }));
  const shown = [...source.matchAll(/(?<=[>}])[^<>{}=;()[\]]+(?=[<{])/g)].map(
    ({ 0: text, index }) => ({ index, text }),
  );
  return [...strings, ...shown]
    .filter(({ text }) => /[a-z]+,? [a-z]+,? [a-z]+/i.test(text) && !is_statement.test(text))
    .map(({ index, text }) => ({
      line: lineOf(source, index),
      text: text.replaceAll("\\'", "'").trim(),
    }));
};

/** The paragraphs of a document, without its code examples. */
const paragraphsIn = (text: string): readonly Passage[] => {
  const prose = text.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ''));
  return [...prose.matchAll(/(?:.+\n?)+/g)].map(({ 0: paragraph, index }) => ({
    line: lineOf(prose, index),
    text: paragraph,
  }));
};

const sentencesIn = (text: string): readonly string[] =>
  text
    .split(/\n\s*\n|\n\s*[-*|] | \| /)
    .flatMap((part) => part.replaceAll(/\s*\n\s*/g, ' ').split(/(?<=[.!?:;])\s+(?=[A-Z`])/))
    .map((sentence) => sentence.replace(/^[-*|#>\s]+/, '').trim())
    .filter((sentence) => sentence.length > 3 && !/[─▶│┐└]/.test(sentence));

const phrasesIn = (sentence: string): readonly string[] =>
  allowed.has(sentence)
    ? []
    : phrases.filter(([, pattern]) => pattern.test(sentence)).map(([name]) => name);

type Finder = (text: string) => readonly Passage[];

const findIn =
  (passagesIn: Finder) =>
  ({ path, text }: Source): readonly string[] =>
    passagesIn(text).flatMap((passage) =>
      sentencesIn(passage.text).flatMap((sentence) =>
        phrasesIn(sentence).map((name) => `${path}:${passage.line}: ${name}: ${sentence}`),
      ),
    );

const kinds = ['.ts', '.tsx', '.mts', '.mjs'];

t.test('comments are plain English', async (t) => {
  const sources = readSources(
    ['src', 'clients/typescript/src', 'test', 'bench', 'examples'],
    kinds,
  );
  t.ok(sources.length > 700);
  t.same(sources.flatMap(findIn(commentsIn)), []);
});

/** Sample reasoning, in the words of many agents. */
const voices = /predict-texts|quickstart-text|demo\/(agents|technology|industry|society)/;

t.test('texts of the source are plain English', async (t) => {
  const sources = readSources(['src', 'clients/typescript/src', 'bench', 'examples'], kinds);
  const own = sources.filter(({ path }) => !voices.test(path));
  t.same(own.flatMap(findIn(textsIn)), []);
});

t.test('documents are plain English', async (t) => {
  const folder = path.join(project_root, 'docs');
  const pages = readdirSync(folder, { recursive: true }).map((name) => `docs/${name}`);
  const names = [
    ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
    ...pages.filter((name) => name.endsWith('.md')),
  ];
  t.ok(names.length > 40);
  t.same(
    names.flatMap((path) => findIn(paragraphsIn)({ path, text: readDocument(path) })),
    [],
  );
});

t.test('every phrase is found wherever it is', async (t) => {
  const places: readonly (readonly [Finder, (example: string) => string])[] = [
    [commentsIn, (example) => `/**\n * Reads it.\n * ${example}\n */\n`],
    [paragraphsIn, (example) => `# A\n\n- ${example}\n`],
    [textsIn, (example) => `const a = 'The one here is good. ${example}';\n`],
    [textsIn, (example) => `<p class="soft">\n  The one here is good.\n  ${example}\n</p>\n`],
  ];
  for (const [name, , example] of phrases) {
    for (const [finder, write] of places) {
      t.match(findIn(finder)({ path: 'a', text: write(example) }).join(), name, example);
    }
    const text = `const a = '${example}';\n`;
    t.same(findIn(commentsIn)({ path: 'a', text }), [], 'a text is not a comment');
  }
});
