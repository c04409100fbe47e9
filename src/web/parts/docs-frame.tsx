import type { ComponentChildren } from 'preact';
import { groupPath, listGuideSections } from '../../features/docs/index.js';

/** The frame of all documents: the list of pages, the contents of the page, and its text. */

export interface Heading {
  readonly id: string;
  readonly text: string;
  readonly is_sub?: boolean;
}

interface FrameParts {
  /** Path of the current page. */
  readonly path: string;
  readonly headings: readonly Heading[];
  /** The groups of the API reference. */
  readonly groups: readonly { readonly name: string; readonly title: string }[];
  readonly children: ComponentChildren;
}

interface Entry {
  readonly href: string;
  readonly title: string;
}

const Entries = ({ entries, path }: { entries: readonly Entry[]; path: string }) => (
  <ul>
    {entries.map(({ href, title }) => (
      <li key={href}>
        <a href={href} aria-current={href === path ? 'page' : undefined}>
          {title}
        </a>
      </li>
    ))}
  </ul>
);

const Search = () => (
  <search>
    <form action="/search" class="docs-search">
      <label class="sr" for="docs-search">
        Search the documentation
      </label>
      <input
        id="docs-search"
        name="q"
        type="search"
        maxLength={200}
        placeholder="Search the docs"
        required
      />
      <input type="hidden" name="in" value="documents" />
    </form>
  </search>
);

const Nav = ({ path, groups }: Pick<FrameParts, 'path' | 'groups'>) => {
  const sections = [
    ...listGuideSections().map(({ title, pages }) => ({
      title,
      entries: pages.map((one) => ({ href: `/docs/guide/${one.page}`, title: one.title })),
    })),
    {
      title: 'API',
      entries: [
        { href: '/docs/api', title: 'All operations' },
        ...groups.map(({ name, title }) => ({ href: groupPath(name), title })),
      ],
    },
  ];
  return (
    <nav class="docs-nav" id="docs-menu" popover="auto" aria-label="Documentation">
      <Search />
      <a href="/docs" aria-current={path === '/docs' ? 'page' : undefined}>
        Overview
      </a>
      {sections.map(({ title, entries }) => (
        <details key={title} open={entries.some(({ href }) => href === path)}>
          <summary>{title}</summary>
          <Entries entries={entries} path={path} />
        </details>
      ))}
    </nav>
  );
};

const Contents = ({ headings }: Pick<FrameParts, 'headings'>) => (
  <nav class="docs-toc" id="docs-toc" popover="auto" aria-label="On this page">
    <b>On this page</b>
    <ul>
      {headings.map(({ id, text, is_sub }) => (
        <li key={id} class={is_sub ? 'sub' : undefined}>
          <a href={`#${id}`}>
            {text.split(/(\/)/).map((part) =>
              part === '/' ? (
                <>
                  /<wbr />
                </>
              ) : (
                part
              ),
            )}
          </a>
        </li>
      ))}
    </ul>
  </nav>
);

export const DocsFrame = ({ path, headings, groups, children }: FrameParts) => (
  <div class="docs">
    <p class="docs-buttons no-print">
      <button class="plain" type="button" popovertarget="docs-menu">
        All pages
      </button>
      {headings.length > 1 && (
        <button class="plain" type="button" popovertarget="docs-toc">
          On this page
        </button>
      )}
    </p>
    <Nav path={path} groups={groups} />
    <article>{children}</article>
    {headings.length > 1 && <Contents headings={headings} />}
  </div>
);
