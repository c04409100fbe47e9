import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Type } from '@sinclair/typebox';
import { Marked, type Tokens } from 'marked';
import {
  anchorOf,
  guide_folder,
  listGuideImages,
  listGuidePages,
  listGuideSections,
  readGuideText,
  titleOf,
} from '../features/docs/guide.js';
import { catalogue } from '../features/events/catalogue.js';
import { replyRaw } from '../http/route.js';
import { common_faults, refuse } from '../kit/fault.js';
import { escapeHtml } from '../kit/html.js';
import { memo } from '../kit/memo.js';
import { renderPage } from './page.js';
import { fresh_page, type PageDeps, public_page, route } from './page-route.js';
import { codeHtml } from './parts/code.js';
import { DocsFrame, type Heading } from './parts/docs-frame.js';

/** Serves the pages of `docs/` at `/docs/guide/{page}`, and their Markdown source at `….md`. */

const page_link = /^([a-z-]+)\.md(#.*)?$/;

/** Writes a link. Links to other pages of `docs/` lead to their addresses on this site. */
const writeLink = (href: string, text: string): string => {
  const [, page, anchor = ''] = page_link.exec(href) ?? [];
  const to = page === undefined ? href : `/docs/guide/${page}${anchor}`;
  const rel = /^https?:/.test(to) ? ' rel="nofollow noopener"' : '';
  return `<a href="${escapeHtml(to)}"${rel}>${text}</a>`;
};

const writeImage = ({ href, text }: Tokens.Image): string =>
  `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}" loading="lazy">`;

interface Page {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** A block of code with its HTML. */
type ColouredCode = Tokens.Code & { html: string };

/**
 * Converts Markdown to HTML. Wide tables scroll within the page, also with the keyboard. Colouring
 * takes a while, so other requests have a turn after each block of code.
 */
const convert = async (text: string): Promise<Page> => {
  const headings: Heading[] = [];
  let blocks = 0;
  const markdown = new Marked({
    async: true,
    async walkTokens(token) {
      if (token.type !== 'code') return;
      const block = token as ColouredCode;
      blocks += 1;
      block.html = codeHtml({ id: `code-${blocks}`, code: block.text, language: block.lang ?? '' });
      await nextTurn();
    },
    renderer: {
      link({ href, tokens }: Tokens.Link) {
        return writeLink(href, this.parser.parseInline(tokens));
      },
      heading({ depth, text: title, tokens }: Tokens.Heading) {
        const id = anchorOf(title);
        if (depth === 2 || depth === 3) {
          headings.push({ id, text: title.replace(/[`*]/g, ''), is_sub: depth === 3 });
        }
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code: (block: Tokens.Code) => (block as ColouredCode).html,
      image: writeImage,
    },
  });
  const html = (await markdown.parse(text))
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>');
  return { title: titleOf(text), html, headings };
};

/** Added to the page about webhooks: all events, and the receivers that the tests run. */
const receiversText = (): string => {
  const events = catalogue.map(({ name, about }) => `| \`${name}\` | ${about} |`).join('\n');
  const examples = Object.entries({ TypeScript: 'ts', Python: 'py', Go: 'go' }).map(
    ([language, ending]) => {
      const file = new URL(`../examples/webhooks/verify.${ending}`, guide_folder);
      return `### ${language}\n\n\`\`\`${ending}\n${readFileSync(file, 'utf8').trimEnd()}\n\`\`\``;
    },
  );
  return [
    `\n\n## Events\n\n| Event | When |\n|---|---|\n${events}`,
    `## Verification code\n\n${examples.join('\n\n')}\n`,
  ].join('\n\n');
};

/** True for operators' pages. In these, `http://127.0.0.1:8080` is the reader's own forum. */
const isForOperators = (page: string): boolean =>
  page === 'forum-for-friends' ||
  listGuideSections().some(
    ({ title, pages: own }) =>
      title === 'How-to: run a forum' && own.some((one) => one.page === page),
  );

/** Puts the address of this forum into the examples. */
const fillAddress = (page: string, text: string, public_url: string): string => {
  const filled = text.replace(/https:\/\/forum\.example(?![.\w])/g, public_url);
  return isForOperators(page) ? filled : filled.replaceAll('http://127.0.0.1:8080', public_url);
};

/** The documents do not change while the process runs, so each page is converted once. */
const readPage = memo(
  (page: string, { public_url }: PageDeps) => `${public_url} ${page}`,
  (page: string, { config, public_url }: PageDeps) => {
    const source = readGuideText(page, config) + (page === 'webhooks' ? receiversText() : '');
    return convert(fillAddress(page, source, public_url));
  },
);

const answer = async (page: string, deps: PageDeps) => {
  const { title, html, headings } = await readPage(page, deps);
  const { groups } = await deps.reference();
  const path = `/docs/guide/${page}`;
  return renderPage(deps, {
    title,
    path,
    section: 'docs',
    scripts: ['docs.js'],
    children: (
      <DocsFrame path={path} headings={headings} groups={groups}>
        <div dangerouslySetInnerHTML={{ __html: html }} />
        <p class="soft no-print">
          <a href={`${path}.md`}>This page as Markdown</a>
        </p>
      </DocsFrame>
    ),
  });
};

const params = Type.Object({ page: Type.String({ pattern: '^[a-z-]+(\\.md)?$', maxLength: 60 }) });

const image_types = { svg: 'image/svg+xml', png: 'image/png' } as const;

export const guide_pages = [
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
      const text = fillAddress(name, readGuideText(name, deps.config), deps.public_url);
      return replyRaw('text/markdown; charset=utf-8', text);
    },
  }),
  route({
    ...public_page,
    id: 'guideImage',
    path: '/docs/images/{file}',
    params: Type.Object({ file: Type.String({ maxLength: 60 }) }),
    produces: image_types.svg,
    also_produces: [image_types.png],
    absent: common_faults.NOT_FOUND,
    handle({ params: { file } }) {
      if (!listGuideImages().includes(file)) return refuse(common_faults.NOT_FOUND);
      const type = image_types[file.endsWith('.svg') ? 'svg' : 'png'];
      return replyRaw(type, readFileSync(new URL(`images/${file}`, guide_folder)));
    },
  }),
  route({
    ...fresh_page,
    id: 'guide',
    path: '/docs/guide',
    returns: { 302: null },
    handle: () => ({ ...replyRaw('text/html', '', { Location: '/docs' }), status: 302 }),
  }),
  route({
    ...public_page,
    id: 'webhookDocs',
    path: '/docs/webhooks',
    handle: (_ctx, deps) => answer('webhooks', deps),
  }),
];
