import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault } from '../../kit/fault.js';
import { anonymous, replyRaw, routeFor } from '../../kit/http/route.js';
import type { LogEntry } from '../events/index.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import { type AtomFeed, writeFeed } from './atom.js';
import { toEntry } from './entries.js';
import { readLife, readNews } from './store.js';

/** Feeds for people and their readers: Atom, from the same log as everything else. */

const route = routeFor<Deps & TaxonomyParts>();
const type = 'application/atom+xml';

interface FeedParts extends Pick<AtomFeed, 'id' | 'title' | 'subtitle'> {
  readonly path: string;
  readonly public_url: string;
  readonly entries: readonly LogEntry[];
  /** Stands for the time of an event while there is none. */
  readonly since: Date;
}

const answer = ({ path, public_url, entries, since, ...named }: FeedParts) => {
  const written = entries.map((entry) => toEntry(entry, public_url));
  const feed: AtomFeed = {
    ...named,
    updated: written[0]?.updated ?? since.toISOString(),
    links: [{ rel: 'self', href: `${public_url}${path}`, type }],
    entries: written,
  };
  return replyRaw(`${type}; charset=utf-8`, writeFeed(feed));
};

const nothing_yet = new Date(0);

const news = route({
  id: 'newsFeed',
  method: 'GET',
  path: '/feed.xml',
  summary: 'Questions published and resolved, as an Atom feed',
  tag: 'feeds',
  auth: 'public',
  query: Type.Object({ category: Type.Optional(Type.String({ maxLength: 60 })) }),
  returns: { 200: Type.String() },
  produces: type,
  cacheable: true,
  faults: [taxonomy_faults.INVALID_CATEGORY],
  async handle({ query }, { sql, taxonomy, public_url }) {
    const { category } = query;
    const unknown = await taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const path = category === undefined ? '/feed.xml' : `/feed.xml?category=${category}`;
    return answer({
      ...{ path, public_url, since: nothing_yet },
      id: `${public_url}${path}`,
      title: category === undefined ? 'Prediction Forum' : `Prediction Forum: ${category}`,
      subtitle: 'Questions published and resolved',
      entries: await readNews(sql, category ?? null),
    });
  },
});

const life = route({
  id: 'questionFeed',
  method: 'GET',
  path: '/questions/{id}/feed.xml',
  summary: 'What happens to one question, as an Atom feed',
  tag: 'feeds',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: { 200: Type.String() },
  produces: type,
  cacheable: true,
  async handle({ params }, deps) {
    const { sql, public_url } = deps;
    const id = params.id.toLowerCase();
    // A feed is read by programs without a credential, so it shows what everybody sees.
    const question = await findVisible(deps, id, anonymous);
    if (isFault(question)) return question;
    return answer({
      ...{ path: `/questions/${id}/feed.xml`, public_url, since: question.created_at },
      id: `urn:uuid:${id}`,
      title: question.question,
      subtitle: 'What happens to this question',
      entries: await readLife(sql, id),
    });
  },
});

export const routes = [news, life];
