import type { Config } from '../../config.js';
import { anchorOf, listGuidePages, readGuideText, titleOf } from '../docs/index.js';
import { type Section, wordsOf } from './rules.js';

/** The sections of the guide, in memory. They are read when somebody first searches. */

const asWords = (text: string): string => ` ${wordsOf(text).join(' ')} `;

const sectionsOf = (page: string, text: string): readonly Section[] => {
  const title = titleOf(text);
  const path = `/docs/guide/${page}`;
  return text.split(/^(?=#{1,3} )/m).flatMap((part): Section[] => {
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

export const createDocumentSearch = (config: Config) => {
  let sections: readonly Section[] | undefined;
  return (): readonly Section[] => {
    sections ??= listGuidePages().flatMap((page) => sectionsOf(page, readGuideText(page, config)));
    return sections;
  };
};

export interface SearchParts {
  readonly guide_sections: () => readonly Section[];
}
