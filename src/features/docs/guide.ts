import { readdirSync, readFileSync } from 'node:fs';
import type { Config } from '../../config.js';

/** The pages of `docs/` as files: their names, texts, titles and anchors. */

export const guide_folder = new URL('../../../../docs/', import.meta.url);

/** Returns the names of all pages without `.md`, in alphabetical order. */
export const listGuidePages = (): readonly string[] =>
  readdirSync(guide_folder)
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.slice(0, -3))
    .sort();

/** Links to files outside `docs/`. These files are not served, so only the link text remains. */
const link_to_checkout = /\[([^\]]*)\]\(\.\.\/[^)]*\)/g;

export const readGuideText = (page: string, { WEBHOOK_HEADER_PREFIX }: Config): string =>
  readFileSync(new URL(`${page}.md`, guide_folder), 'utf8')
    .replaceAll('X-Svc', WEBHOOK_HEADER_PREFIX)
    .replace(link_to_checkout, '$1');

export const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? '';

/** Returns the anchor of a heading, in the same form as on GitHub. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
