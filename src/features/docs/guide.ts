import { readdirSync, readFileSync } from 'node:fs';
import type { Config } from '../../config.js';

/** The pages of `docs/` as files: their contents, texts, titles and anchors. */

export const guide_folder = new URL('../../../../docs/', import.meta.url);

/** The four kinds of page. Each has a folder. */
const kinds = ['tutorials', 'how-to', 'reference', 'explanation'] as const;

/** Runs a function once, when its result is first needed. */
const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/** The folder of each page, by the page's name without `.md`. Names are unique across folders. */
const readFolders = once(
  (): ReadonlyMap<string, string> =>
    new Map(
      kinds.flatMap((kind) =>
        readdirSync(new URL(`${kind}/`, guide_folder))
          .filter((file) => file.endsWith('.md'))
          .map((file) => [file.slice(0, -3), kind] as const),
      ),
    ),
);

export const listGuideImages = once((): readonly string[] =>
  readdirSync(new URL('images/', guide_folder)),
);

export interface GuideSection {
  readonly title: string;
  readonly pages: readonly GuideEntry[];
}

interface GuideEntry {
  readonly page: string;
  /** The short title for lists of pages. */
  readonly title: string;
  readonly about: string;
}

/** Reads the contents from `docs/README.md`: a heading per section, and a list item per page. */
export const listGuideSections = once((): readonly GuideSection[] => {
  const text = readFileSync(new URL('README.md', guide_folder), 'utf8');
  const [, ...sections] = text.split(/^## /m);
  return sections.map((section) => ({
    title: section.slice(0, section.indexOf('\n')),
    pages: Array.from(
      section.matchAll(/^- \[(.+?)\]\([a-z-]+\/([a-z-]+)\.md\): (.+)$/gm),
      ([, title = '', page = '', about = '']) => ({ page, title, about }),
    ),
  }));
});

/** Returns the names of all pages without `.md`, in the order of the contents. */
export const listGuidePages = (): readonly string[] =>
  listGuideSections().flatMap(({ pages }) => pages.map(({ page }) => page));

/** Links to files outside `docs/`. These files are not served, so only the link text remains. */
const link_to_checkout = /\[([^\]]*)\]\(\.\.\/\.\.\/[^)]*\)/g;

/** The folder in a link to another page. On this site, all pages are in one folder. */
const link_to_page = /\]\(\.\.\/(?:tutorials|how-to|reference|explanation)\//g;

/** Returns the Markdown of a page with the links that it has on this site. */
export const readGuideText = (page: string, { WEBHOOK_HEADER_PREFIX }: Config): string =>
  readFileSync(new URL(`${readFolders().get(page)}/${page}.md`, guide_folder), 'utf8')
    .replaceAll('X-Svc', WEBHOOK_HEADER_PREFIX)
    .replace(link_to_checkout, '$1')
    .replace(link_to_page, '](')
    .replaceAll('](../images/', '](/docs/images/');

export const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? '';

/** Returns the anchor of a heading, in the same form as on GitHub. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
