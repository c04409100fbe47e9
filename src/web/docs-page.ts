import { docs_script } from './docs-script.js';
import { docs_style } from './docs-style.js';
import { type Filling, type Html, html } from './html.js';
import { escapeHtml, hashOf } from './page.js';

/** The frame of the pages of the reference: bar, contents, and what is in the middle. */

export interface DocsPageParts {
  readonly title: string;
  /** Where the page is: the entry of the bar that is marked. */
  readonly path: string;
  readonly about: string;
  readonly contents: Html;
  readonly main: Html;
  readonly version: string;
}

const doors = [
  ['/docs', 'Reference'],
  ['/docs/events', 'Events'],
  ['/docs/webhooks', 'Webhooks'],
  ['/openapi.json', 'OpenAPI'],
  ['/asyncapi.json', 'AsyncAPI'],
  ['/llms.txt', 'llms.txt'],
] as const;

/** Nothing but what stands in the page can run or load; the page is nobody's frame. */
export const docs_headers: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src ${hashOf(docs_style)}`,
    `script-src ${hashOf(docs_script)}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

const piece =
  /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(\$[A-Z][A-Z0-9_]*)|((?:^|\s)(?:\/\/|#) .*$)/gm;

/** Texts, variables and remarks in colours of their own; everything is escaped. */
const highlight = (code: string): readonly Filling[] => {
  const parts: Filling[] = [];
  let at = 0;
  for (const found of code.matchAll(piece)) {
    const [text, quoted, variable] = found;
    parts.push(code.slice(at, found.index));
    at = found.index + text.length;
    if (variable !== undefined) parts.push(html`<span class="v">${text}</span>`);
    else if (quoted === undefined) parts.push(html`<span class="c">${text}</span>`);
    else parts.push(html`<span class="s">${inQuotes(text)}</span>`);
  }
  return [...parts, code.slice(at)];
};

const inQuotes = (text: string): readonly Filling[] =>
  text
    .split(/(\$[A-Z][A-Z0-9_]*)/)
    .map((part, at) => (at % 2 === 1 ? html`<span class="v">${part}</span>` : part));

/** A block of code with its caption. */
export const figure = (caption: string, code: string): Html => html`<figure>
<figcaption>${caption}<button type="button" hidden>Copy</button></figcaption>
<pre tabindex="0"><code>${highlight(code)}</code></pre></figure>`;

/** A heading that can be linked. */
export const heading = (id: string, text: Filling): Html =>
  html`<h2 id="${id}">${text} <a class="anchor" href="#${id}" aria-label="Link to this">#</a></h2>`;

export const renderDocsPage = (parts: DocsPageParts): string => {
  const { title, path, about, contents, main, version } = parts;
  const links = doors.map(([href, name]) => {
    const current = href === path ? html` aria-current="page"` : null;
    return html`<a href="${href}"${current}>${name}</a>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${escapeHtml(about)}">
<link rel="alternate" type="text/markdown" title="As Markdown" href="/llms-full.txt">
<link rel="alternate" type="application/atom+xml" title="Questions" href="/feed.xml">
<title>${escapeHtml(title)} · Prediction Forum</title>
<style>${docs_style}</style>
</head>
<body>
${
  html`<a class="skip" href="#main">To the content</a>
<div class="bar"><strong><a href="/docs">Prediction Forum</a></strong>
<span class="soft">${version}</span>
<input class="search" type="search" placeholder="Search  /" aria-label="Search operations" hidden>
<p class="found" role="status"></p>
<nav class="doors" aria-label="Documents">${links}</nav></div>
<div class="frame">
<input class="opens" type="checkbox" id="opens"><label class="opener" for="opens">Contents</label>
<nav class="side" aria-label="Contents">${contents}</nav>
<main id="main">${main}</main>
</div>`.text
}
<script>${docs_script}</script>
</body>
</html>
`;
};
