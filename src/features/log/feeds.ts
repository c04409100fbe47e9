import { Type } from '@sinclair/typebox';
import { anonymous } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { replyRaw, routeFor } from '../../http/route.js';
import { textEnum } from '../../http/schemas.js';
import { isFault } from '../../kit/fault.js';
import { type LogEntry, readData, timeOf } from '../events/log-entry.js';
import { findVisible, type QuestionParts } from '../questions/index.js';
import { question_faults, question_params } from '../questions/schema.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import { readLife, readNews } from './feed-store.js';

/** Atom feeds for people and their feed readers, from the same log as everything else. */

const route = routeFor<Deps & QuestionParts & TaxonomyParts>();

interface Story {
  readonly title: string;
  readonly content: string;
}

const list = (value: unknown): string =>
  Array.isArray(value) ? value.map((item) => `“${item}”`).join(', ') : '';

const outcomeOf = ({ outcome, correct_options, outcome_value }: Record<string, unknown>): string =>
  outcome_value !== undefined
    ? String(outcome_value)
    : typeof outcome === 'boolean'
      ? outcome
        ? 'Yes'
        : 'No'
      : list(correct_options);

const stories: Readonly<Record<string, (data: Record<string, unknown>) => Story>> = {
  'question.created': (data) => ({
    title: `New: ${data['question']}`,
    content: [
      String(data['question']),
      ...(list(data['options']) === '' ? [] : [`Options: ${list(data['options'])}.`]),
      `Predictions are accepted until ${data['closes_at']}.`,
    ].join('\n'),
  }),
  'question.closing_soon': (data) => ({
    title: `Closing soon: ${data['question']}`,
    content: `Predictions are accepted until ${data['closes_at']}.`,
  }),
  'question.closed': (data) => ({
    title: `Closed: ${data['question']}`,
    content: 'Predictions are no longer accepted.',
  }),
  'question.resolved': (data) => ({
    title: `Resolved: ${outcomeOf(data)} – ${data['question']}`,
    content:
      `Outcome: ${outcomeOf(data)}.` +
      (Number(data['revision']) > 1 ? ` This is revision ${data['revision']}.` : ''),
  }),
  'question.voided': (data) => ({
    title: `Voided: ${data['question']}`,
    content: `The question gets no outcome.${data['reason'] === null ? '' : ` ${data['reason']}`}`,
  }),
  'question.reopened': (data) => ({
    title: `Reopened: ${data['question']}`,
    content: `Predictions are accepted until ${data['closes_at']}.`,
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

const atom_type = 'application/atom+xml';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  // A parser would turn an unescaped carriage return into a line feed.
  '\r': '&#13;',
};

/** Characters that XML 1.0 does not allow, including lone surrogates. */
const not_xml = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** Escapes text for the content of an element, or for an attribute value in double quotes. */
export const escapeXml = (text: string): string =>
  text
    .replaceAll(not_xml, '\u{fffd}')
    .replaceAll(/[&<>"'\r]/g, (character) => escapes[character] as string);

const element = (name: string, text: string): string => `<${name}>${escapeXml(text)}</${name}>`;

const link = (rel: string, type: string, href: string): string =>
  `<link rel="${rel}" type="${type}" href="${escapeXml(href)}"/>`;

/** The entry has the id of the event, so it stays the same entry after a deployment. */
const writeEntry = (entry: LogEntry, public_url: string): string => {
  const { id, event, offset, question_id, category, subcategory } = entry;
  const data = readData(entry);
  const { title, content } = stories[event]?.(data) ?? { title: event, content: '' };
  const at = timeOf(entry);
  return [
    '<entry>',
    element('id', `urn:uuid:${id}`),
    element('title', title),
    element('updated', at),
    element('published', at),
    link('alternate', 'text/html', `${public_url}/questions/${question_id}`),
    ...[category, subcategory]
      .filter((term) => term !== null)
      .map((term) => `<category term="${escapeXml(term)}"/>`),
    element('content', content),
    // For programs that read the feed. The offset is a cursor of the log.
    element('log:offset', String(offset)),
    element('log:event', event),
    element('log:data', JSON.stringify(data)),
    '</entry>',
  ].join('\n');
};

interface Feed {
  readonly id: string;
  readonly title: string;
  readonly subtitle: string;
  readonly href: string;
  /** Path of the web page about the same subject. */
  readonly page: string;
  readonly public_url: string;
  readonly events: readonly LogEntry[];
  /** The time of the feed while it has no events. */
  readonly since: Date;
}

/** Writes Atom (RFC 4287), escaped so that no text can become markup. */
export const writeFeed = (feed: Feed): string => {
  const [newest] = feed.events;
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:log="urn:x-prediction-forum:log">',
    element('id', feed.id),
    element('title', feed.title),
    element('subtitle', feed.subtitle),
    element('updated', newest === undefined ? feed.since.toISOString() : timeOf(newest)),
    '<author><name>Prediction Forum</name></author>',
    link('self', atom_type, feed.href),
    link('alternate', 'text/html', `${feed.public_url}${feed.page}`),
    ...feed.events.map((entry) => writeEntry(entry, feed.public_url)),
    '</feed>',
    '',
  ].join('\n');
};

const answer = (feed: Feed) => replyRaw(`${atom_type}; charset=utf-8`, writeFeed(feed));

const news = route({
  id: 'newsFeed',
  method: 'GET',
  path: '/feed.xml',
  summary: 'New and resolved questions, as an Atom feed',
  tag: 'feeds',
  auth: 'public',
  query: Type.Object({
    category: Type.Optional(Type.String({ maxLength: 60 })),
    events: Type.Optional(
      textEnum(['question.created'], { description: 'Only new questions, not how others ended.' }),
    ),
  }),
  returns: { 200: Type.String() },
  produces: atom_type,
  cacheable: true,
  faults: [taxonomy_faults.INVALID_CATEGORY],
  async handle({ query }, { sql, taxonomy, public_url }) {
    const { category } = query;
    const unknown = await taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const of_one = category === undefined ? '' : `?category=${category}`;
    const wanted = Object.entries(query).map(([name, value]) => `${name}=${value}`);
    const href = `${public_url}/feed.xml${wanted.length === 0 ? '' : `?${wanted.join('&')}`}`;
    return answer({
      public_url,
      href,
      id: href,
      since: new Date(0),
      page: `/questions${of_one}`,
      title: category === undefined ? 'Prediction Forum' : `Prediction Forum: ${category}`,
      subtitle: query.events === undefined ? 'New and resolved questions' : 'New questions',
      events: await readNews(sql, query),
    });
  },
});

const life = route({
  id: 'questionFeed',
  method: 'GET',
  path: '/questions/{id}/feed.xml',
  summary: 'News about one question, as an Atom feed',
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
    // Feed readers have no credential, so a feed shows only public content.
    const question = await findVisible(deps, id, anonymous);
    if (isFault(question)) return question;
    return answer({
      public_url,
      href: `${public_url}/questions/${id}/feed.xml`,
      id: `urn:uuid:${id}`,
      page: `/questions/${id}`,
      title: question.question,
      subtitle: 'News about this question',
      events: await readLife(sql, id),
      since: question.created_at,
    });
  },
});

export const routes = [news, life];
