import { readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { Marked, type Tokens } from 'marked';
import {
  anchorOf,
  guide_folder,
  listGuidePages,
  readGuideText,
  titleOf,
} from '../features/docs/guide.js';
import { catalogue } from '../features/events/catalogue.js';
import { replyRaw } from '../http/route.js';
import { common_faults, refuse } from '../kit/fault.js';
import { escapeHtml } from '../kit/html.js';
import { renderPage } from './page.js';
import { type PageDeps, public_page, route } from './page-route.js';

/** Serves the pages of `docs/` at `/docs/guide/{page}`, and their Markdown source at `….md`. */

const link_pattern = /^(?:\.\.\/)?(?:[a-z-]+\/)?([a-z-]+)\.md(#.*)?$/;

/** Writes a link. Links to other pages of `docs/` lead to their addresses on this site. */
const writeLink = (href: string, text: string): string => {
  const [, page, anchor = ''] = link_pattern.exec(href) ?? [];
  const to = page === undefined ? href : `/docs/guide/${page}${anchor}`;
  return `<a href="${escapeHtml(to)}">${text}</a>`;
};

const writeCode = (text: string): string =>
  `<pre tabindex="0"><code>${escapeHtml(text.trimEnd())}</code></pre>`;

const markdown = new Marked({
  renderer: {
    link({ href, tokens }: Tokens.Link) {
      return writeLink(href, this.parser.parseInline(tokens));
    },
    heading({ depth, text, tokens }: Tokens.Heading) {
      const inner = this.parser.parseInline(tokens);
      return `<h${depth} id="${anchorOf(text)}">${inner}</h${depth}>\n`;
    },
    code: ({ text }: Tokens.Code) => writeCode(text),
    image: ({ text }: Tokens.Image) => escapeHtml(text),
  },
});

/** Converts Markdown to HTML. Wide tables scroll within the page, also with the keyboard. */
const writePage = (text: string): string =>
  (markdown.parse(text) as string)
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>');

/** Added to the page about webhooks: all events, and the receivers that the tests run. */
const writeReceivers = (): string => {
  const events = catalogue.map(({ name, about }) => `${name}: ${about}`).join('\n');
  const examples = Object.entries({ TypeScript: 'ts', Python: 'py', Go: 'go' }).map(
    ([language, ending]) => {
      const file = new URL(`../examples/webhooks/verify.${ending}`, guide_folder);
      return `<h3>${language}</h3>${writeCode(readFileSync(file, 'utf8'))}`;
    },
  );
  return `<h2>Events</h2>${writeCode(events)}<h2>Verification code</h2>${examples.join('\n')}`;
};

/** Pages for newcomers, which come first. The other pages follow in alphabetical order. */
const first_pages = ['start', 'concepts', 'scoring', 'research-data'];

const Nav = ({ current, deps }: { current: string; deps: PageDeps }) => {
  const rest = listGuidePages().filter((page) => !first_pages.includes(page));
  return (
    <nav class="guide-nav" aria-label="Guide">
      {[...first_pages, ...rest].map((page) => (
        <a
          key={page}
          href={`/docs/guide/${page}`}
          aria-current={page === current ? 'page' : undefined}
        >
          {titleOf(readGuideText(page, deps.config))}
        </a>
      ))}
      <a href="/docs">API reference</a>
    </nav>
  );
};

const answer = (page: string, deps: PageDeps) => {
  const text = readGuideText(page, deps.config);
  const html = writePage(text) + (page === 'webhooks' ? writeReceivers() : '');
  return renderPage(deps, {
    title: titleOf(text),
    path: `/docs/guide/${page}`,
    section: 'docs',
    children: (
      <div class="guide">
        <Nav current={page} deps={deps} />
        <article>
          <div dangerouslySetInnerHTML={{ __html: html }} />
          <p class="soft">
            <a href={`/docs/guide/${page}.md`}>This page as Markdown</a>
          </p>
        </article>
      </div>
    ),
  });
};

const params = Type.Object({ page: Type.String({ pattern: '^[a-z-]+(\\.md)?$', maxLength: 60 }) });

export const guide_pages = [
  route({
    ...public_page,
    id: 'guide',
    path: '/docs/guide',
    handle: (_ctx, deps) => answer('start', deps),
  }),
  route({
    ...public_page,
    id: 'guidePage',
    path: '/docs/guide/{page}',
    params,
    also_produces: ['text/markdown'],
    absent: common_faults.NOT_FOUND,
    handle({ params: { page } }, deps) {
      const name = page.replace(/\.md$/, '');
      if (!listGuidePages().includes(name)) return refuse(common_faults.NOT_FOUND);
      if (name === page) return answer(page, deps);
      return replyRaw('text/markdown; charset=utf-8', readGuideText(name, deps.config));
    },
  }),
  route({
    ...public_page,
    id: 'webhookDocs',
    path: '/docs/webhooks',
    handle: (_ctx, deps) => answer('webhooks', deps),
  }),
];
