import { counted, grouped } from '../../kit/prose.js';
import { readCitation } from '../predictions/index.js';
import type { QuestionRow } from '../questions/index.js';
import { brief_limits, positionOf } from './rules.js';
import type { Brief } from './schema.js';
import type { SampleRow } from './store.js';

/** Which pages the predictions rest on, and which of them several share. */

interface Page {
  readonly url: string;
  count: number;
  readonly families: Set<string>;
  readonly sides: Map<number, number>;
}

const hostOf = (url: string): string => {
  const host = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? '';
  return host.toLowerCase().replace(/^www\./, '');
};

const collect = (sample: readonly SampleRow[]) => {
  const pages = new Map<string, Page>();
  const hosts = new Map<string, number>();
  for (const { citations, model_family, side } of sample) {
    const own_hosts = new Set<string>();
    const own_pages = new Set<string>();
    for (const url of citations) {
      const { key } = readCitation(url);
      if (own_pages.has(key)) continue;
      own_pages.add(key);
      own_hosts.add(hostOf(url));
      const page = pages.get(key) ?? { url, count: 0, families: new Set(), sides: new Map() };
      pages.set(key, page);
      page.count += 1;
      page.families.add(model_family);
      page.sides.set(side, (page.sides.get(side) ?? 0) + 1);
    }
    for (const host of own_hosts) hosts.set(host, (hosts.get(host) ?? 0) + 1);
  }
  return { pages: [...pages.values()], hosts };
};

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export const sourcesOf = (
  question: QuestionRow,
  sample: readonly SampleRow[],
): Brief['sources'] => {
  const { pages, hosts } = collect(sample);
  const shared = pages
    .filter(({ count }) => count > 1)
    .sort((a, b) => b.count - a.count || order(a.url, b.url));
  const top_hosts = [...hosts]
    .filter(([, count]) => count > 1)
    .sort((a, b) => b[1] - a[1] || order(a[0], b[0]))
    .slice(0, brief_limits.hosts);
  return {
    text: textOf(sample.length, pages.length, shared.length),
    looked_at: sample.length,
    distinct: pages.length,
    unique: pages.length - shared.length,
    shared: shared.slice(0, brief_limits.shared_sources).map((page) => ({
      url: page.url,
      predictions: page.count,
      families: page.families.size,
      positions: [...page.sides]
        .sort((a, b) => b[1] - a[1] || b[0] - a[0])
        .map(([side, predictions]) => ({ position: positionOf(question, side), predictions })),
    })),
    hosts: top_hosts.map(([host, predictions]) => ({ host, predictions })),
  };
};

const textOf = (read: number, distinct: number, shared: number): string => {
  if (distinct === 0) return 'No prediction cites a page.';
  if (read === 1) return `The one prediction cites ${counted(distinct, 'page')}.`;
  const pages = `${counted(read, 'prediction')} cite ${counted(distinct, 'page')}`;
  if (shared === 0) return `${pages}, and no two of them the same.`;
  const several = shared === 1 ? 'one is' : `${grouped(shared)} are`;
  return `${pages}; ${several} cited more than once.`;
};
