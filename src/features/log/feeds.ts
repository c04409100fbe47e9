import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { anonymous, replyRaw, routeFor } from '../../http/route.js';
import { isFault } from '../../kit/fault.js';
import { type LogEntry, readData } from '../events/index.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import { type AtomEntry, type AtomFeed, atom_type, writeFeed } from './atom.js';
import { readLife, readNews } from './feed-store.js';

/** Feeds for people and their readers: Atom, from the same log as everything else. */

const route = routeFor<Deps & TaxonomyParts>();

/** An event in a title and a few sentences for people. */
interface Story {
  readonly title: string;
  readonly content: string;
}

const list = (value: unknown): string =>
  Array.isArray(value) ? value.map((item) => `“${item}”`).join(', ') : '';

const outcomeOf = ({ outcome, correct_options }: Record<string, unknown>): string =>
  typeof outcome === 'boolean' ? (outcome ? 'Yes' : 'No') : list(correct_options);

const stories: Readonly<Record<string, (data: Record<string, unknown>) => Story>> = {
  'question.created': (data) => ({
    title: `New: ${data['question']}`,
    content: [
      String(data['question']),
      ...(list(data['options']) === '' ? [] : [`Options: ${list(data['options'])}.`]),
      `Predictions are taken until ${data['closes_at']}.`,
    ].join('\n'),
  }),
  'question.closing_soon': (data) => ({
    title: `Closing soon: ${data['question']}`,
    content: `Predictions are taken until ${data['closes_at']}.`,
  }),
  'question.closed': (data) => ({
    title: `Closed: ${data['question']}`,
    content: 'Predictions are no longer taken.',
  }),
  'question.resolved': (data) => ({
    title: `Resolved: ${outcomeOf(data)} – ${data['question']}`,
    content:
      `Outcome: ${outcomeOf(data)}.` +
      (Number(data['revision']) > 1 ? ` This is revision ${data['revision']}.` : ''),
  }),
  'dispute.opened': (data) => ({
    title: `Disputed: ${data['question']}`,
    content: `${data['user_name']} disputes the outcome.`,
  }),
  'dispute.resolved': (data) => ({
    title: `Dispute ${data['status']}: ${data['question']}`,
    content: `A dispute about the outcome was decided: ${data['status']}.`,
  }),
};

/** The id is that of the event, so an entry stays the same entry whatever is deployed. */
const toEntry = (entry: LogEntry, public_url: string): AtomEntry => {
  const data = readData(entry);
  const { timestamp } = JSON.parse(entry.body) as { timestamp: string };
  return {
    ...(stories[entry.event]?.(data) ?? { title: entry.event, content: '' }),
    id: `urn:uuid:${entry.id}`,
    updated: timestamp,
    href: `${public_url}/api/questions/${entry.question_id}`,
    categories: [entry.category, entry.subcategory].filter((term) => term !== null),
    event: { offset: entry.offset, name: entry.event, data },
  };
};

interface FeedParts extends Omit<AtomFeed, 'updated' | 'entries'> {
  readonly public_url: string;
  readonly events: readonly LogEntry[];
  /** Stands for the time of an event while there is none. */
  readonly since: Date;
}

const answer = ({ public_url, events, since, ...feed }: FeedParts) => {
  const entries = events.map((entry) => toEntry(entry, public_url));
  const updated = entries[0]?.updated ?? since.toISOString();
  return replyRaw(`${atom_type}; charset=utf-8`, writeFeed({ ...feed, updated, entries }));
};

const news = route({
  id: 'newsFeed',
  method: 'GET',
  path: '/feed.xml',
  summary: 'Questions published and resolved, as an Atom feed',
  tag: 'feeds',
  auth: 'public',
  query: Type.Object({ category: Type.Optional(Type.String({ maxLength: 60 })) }),
  returns: { 200: Type.String() },
  produces: atom_type,
  cacheable: true,
  faults: [taxonomy_faults.INVALID_CATEGORY],
  async handle({ query }, { sql, taxonomy, public_url }) {
    const { category } = query;
    const unknown = await taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const href = `${public_url}/feed.xml${category === undefined ? '' : `?category=${category}`}`;
    return answer({
      ...{ public_url, href, id: href, since: new Date(0) },
      title: category === undefined ? 'Prediction Forum' : `Prediction Forum: ${category}`,
      subtitle: 'Questions published and resolved',
      events: await readNews(sql, category ?? null),
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
  produces: atom_type,
  cacheable: true,
  async handle({ params }, deps) {
    const { sql, public_url } = deps;
    const id = params.id.toLowerCase();
    // A feed is read by programs without a credential, so it shows what everybody sees.
    const question = await findVisible(deps, id, anonymous);
    if (isFault(question)) return question;
    return answer({
      ...{ public_url, href: `${public_url}/questions/${id}/feed.xml`, id: `urn:uuid:${id}` },
      title: question.question,
      subtitle: 'What happens to this question',
      events: await readLife(sql, id),
      since: question.created_at,
    });
  },
});

export const routes = [news, life];
