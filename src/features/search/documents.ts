import type { Config } from '../../config.js';
import type { Route } from '../../http/route.js';
import {
  anchorOf,
  groupPath,
  listGuidePages,
  operationAnchor,
  readGuideText,
  titleOf,
} from '../docs/index.js';
import { type Section, wordsOf } from './rules.js';

/**
 * The sections of the guide and the operations of the API, in memory. They are read when somebody
 * first searches.
 */

const asWords = (text: string): string => ` ${wordsOf(text).join(' ')} `;

const sectionsOf = (page: string, text: string): readonly Section[] => {
  const title = titleOf(text);
  const path = `/docs/guide/${page}`;
  // A comment in a code block is not a heading.
  const prose = text.replace(/^ *```.*?^ *```$/gms, (block) => block.replace(/^#+/gm, ''));
  return prose.split(/^(?=#{1,3} )/m).flatMap((part): Section[] => {
    const [, level = '', raw = ''] = /^(#{1,3}) (.+)/.exec(part) ?? [];
    if (level === '') return [];
    const is_page = level === '#';
    const heading = is_page ? null : raw.replaceAll('`', '');
    return [
      {
        title,
        heading,
        path: is_page ? path : `${path}#${anchorOf(raw)}`,
        heading_words: asWords(`${title} ${heading ?? ''}`),
        words: asWords(`${title} ${part}`),
      },
    ];
  });
};

const operationSection = ({ id, method, path, tag, summary }: Route): Section => {
  const heading = `${method} ${path}`;
  const heading_words = asWords(`API reference ${heading} ${summary} ${id}`);
  return {
    title: 'API reference',
    heading,
    path: `${groupPath(tag)}#${operationAnchor(id)}`,
    heading_words,
    words: heading_words,
  };
};

export const createDocumentSearch = (config: Config, routes: readonly Route[]) => {
  let sections: readonly Section[] | undefined;
  return (): readonly Section[] => {
    sections ??= [
      ...listGuidePages().flatMap((page) => sectionsOf(page, readGuideText(page, config))),
      ...routes.filter(({ documented }) => documented).map(operationSection),
    ];
    return sections;
  };
};

export interface SearchParts {
  readonly guide_sections: () => readonly Section[];
}
