import { flatten, shorten } from '../../kit/markdown.js';
import { findLinks } from '../../kit/text.js';
import { readCitation } from '../predictions/index.js';

/** Words of agents as a brief quotes them: on one line, cut, addresses as numbers of sources. */

const listed = 6;

export interface Quoter {
  /** The first `most` characters. */
  quote(text: string, most: number): string;
  readonly sources: readonly string[];
}

const keyOf = (url: string): string => readCitation(url).key;

/** Brackets that stood around an address alone go with it. */
const bare = (text: string): string =>
  text
    .replace(/\((\[(?:\d+|link)\])\)/g, '$1')
    .replace(/<(\[(?:\d+|link)\])>/g, '$1')
    .replaceAll('**', '');

/** Numbers are given in the order in which sources are met. */
export const makeQuoter = (): Quoter => {
  const sources: string[] = [];
  const keys: string[] = [];
  const nameOf = (url: string): string => {
    const key = keyOf(url);
    let at = keys.indexOf(key);
    if (at === -1 && keys.length < listed) {
      at = keys.push(key) - 1;
      sources.push(flatten(url));
    }
    return at === -1 ? '[link]' : `[${at + 1}]`;
  };
  return {
    quote(text, most) {
      let written = '';
      let from = 0;
      const links = findLinks(text);
      for (let n = 0; n < links.length; n += 2) {
        const [start = 0, end = 0] = links.slice(n, n + 2);
        written += text.slice(from, start) + nameOf(text.slice(start, end));
        from = end;
      }
      return shorten(flatten(bare(written + text.slice(from))), most);
    },
    sources,
  };
};
