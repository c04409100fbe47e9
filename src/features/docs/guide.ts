import { readdirSync, readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Marked, type Tokens } from 'marked';
import type { Deps } from '../../http/deps.js';
import { replyRaw, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { escapeHtml, renderPage } from '../../web/plain-page.js';
import { catalogue } from '../events/index.js';
import type { DocsParts } from './site.js';

/** The pages of `docs/` for readers, at `/docs/guide` and `/docs/guide/{page}`. */

const folder = new URL('../../../../docs/', import.meta.url);

const listPages = (): readonly string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.slice(0, -3))
    .sort();

const readText = (page: string): string => readFileSync(new URL(`${page}.md`, folder), 'utf8');

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? '';

/** As the pages of a repository name their headings in links. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');

const link_pattern = /^([a-z-]+)\.md(#.*)?$/;

/** A link to another page leads there; one to a file of the checkout is only its text. */
const writeLink = (href: string, text: string): string => {
  const [, page, anchor = ''] = link_pattern.exec(href) ?? [];
  if (page !== undefined) return `<a href="/docs/guide/${page}${anchor}">${text}</a>`;
  return /^(https?:\/\/|#|\/)/.test(href) ? `<a href="${escapeHtml(href)}">${text}</a>` : text;
};

const markdown = new Marked({
  renderer: {
    link({ href, tokens }: Tokens.Link) {
      return writeLink(href, this.parser.parseInline(tokens));
    },
    heading({ depth, text, tokens }: Tokens.Heading) {
      const inner = this.parser.parseInline(tokens);
      return `<h${depth} id="${anchorOf(text)}">${inner}</h${depth}>\n`;
    },
  },
});

const style = `
main { max-width: 52rem; }
h2 { font-size: 1.3rem; margin-top: 2rem; }
ul, ol { list-style: revert; padding-left: 1.5rem; margin: 0 0 1rem; }
li { display: list-item; border: 0; padding: .1rem 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; padding: 0; }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: 0 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0;
  border-bottom: 1px solid var(--line); }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .75rem; margin: 0 0 1rem; white-space: pre; overflow-x: auto; }
code { font: .9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
`;

const writeNav = (current: string): string => {
  const items = listPages().map((page) => {
    const title = escapeHtml(titleOf(readText(page)));
    return page === current
      ? `<li aria-current="page">${title}</li>`
      : `<li><a href="/docs/guide/${page}">${title}</a></li>`;
  });
  const reference = '<li><a href="/docs">API reference</a></li>';
  return `<nav aria-label="Guide"><ul>${reference}${items.join('')}</ul></nav>`;
};

const writeCode = (text: string): string => `<pre><code>${escapeHtml(text.trimEnd())}</code></pre>`;

/** Below the page about webhooks: every event, and receivers as the tests run them. */
const writeReceivers = (): string => {
  const events = catalogue.map(({ name, about }) => `${name}: ${about}`).join('\n');
  const examples = Object.entries({ TypeScript: 'ts', Python: 'py', Go: 'go' }).map(
    ([language, ending]) => {
      const file = new URL(`../examples/webhooks/verify.${ending}`, folder);
      return `<h3>${language}</h3>${writeCode(readFileSync(file, 'utf8'))}`;
    },
  );
  return `<h2>Events</h2>${writeCode(events)}<h2>Code that verifies</h2>${examples.join('\n')}`;
};

const renderGuide = (page: string, { config }: Deps) => {
  const text = readText(page).replaceAll('X-Svc', config.WEBHOOK_HEADER_PREFIX);
  const more = page === 'webhooks' ? writeReceivers() : '';
  const body = `${writeNav(page)}\n${markdown.parse(text)}${more}`;
  return renderPage({ title: titleOf(text), body, style });
};

const route = routeFor<Deps & DocsParts>();
const shared = {
  method: 'GET',
  tag: 'docs',
  auth: 'public',
  cacheable: true,
  documented: false,
  returns: { 200: Type.String() },
  produces: 'text/html',
} as const;

/** Of a page that may be cached; they follow from the style alone. */
const { 'Cache-Control': _, ...headers } = renderPage({ title: '', body: '', style }).headers;

const answer = (page: string, deps: Deps & DocsParts) => {
  const make = () => renderGuide(page, deps).html;
  const { body, etag } = deps.site(`guide ${page}`, { make });
  return { ...replyRaw('text/html; charset=utf-8', body, headers), etag };
};

export const routes = [
  route({
    ...{ ...shared, id: 'guide', path: '/docs/guide' },
    summary: 'The guide for readers: its first page, with links to the others',
    handle: (_ctx, deps) => answer('quickstart', deps),
  }),
  route({
    ...{ ...shared, id: 'guidePage', path: '/docs/guide/{page}' },
    summary: 'A page of the guide',
    params: Type.Object({ page: Type.String({ pattern: '^[a-z-]+$', maxLength: 60 }) }),
    absent: common_faults.NOT_FOUND,
    handle: ({ params: { page } }, deps) =>
      listPages().includes(page) ? answer(page, deps) : refuse(common_faults.NOT_FOUND),
  }),
  route({
    ...{ ...shared, id: 'webhookDocs', path: '/docs/webhooks', documented: true },
    summary: 'A page about webhooks: what arrives, and how to verify it in three languages',
    handle: (_ctx, deps) => answer('webhooks', deps),
  }),
];
