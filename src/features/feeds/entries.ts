import { type LogEntry, readData } from '../events/index.js';
import type { AtomEntry } from './atom.js';

/** An event as an entry of a feed: a title, and a few sentences for people. */

interface Told {
  readonly title: string;
  readonly content: string;
}

const list = (value: unknown): string =>
  Array.isArray(value) ? value.map((item) => `“${item}”`).join(', ') : '';

const outcomeOf = ({ outcome, correct_options }: Record<string, unknown>): string =>
  typeof outcome === 'boolean' ? (outcome ? 'Yes' : 'No') : list(correct_options);

const tellers: Readonly<Record<string, (data: Record<string, unknown>) => Told>> = {
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
export const toEntry = (entry: LogEntry, public_url: string): AtomEntry => {
  const data = readData(entry);
  const { timestamp } = JSON.parse(entry.body) as { timestamp: string };
  const told = tellers[entry.event]?.(data) ?? { title: entry.event, content: '' };
  const href = `${public_url}/api/questions/${entry.question_id}`;
  return {
    ...told,
    id: `urn:uuid:${entry.id}`,
    updated: timestamp,
    links: [{ rel: 'alternate', href, type: 'application/json' }],
    categories: [entry.category, entry.subcategory].filter((term) => term !== null),
    event: { offset: entry.offset, name: entry.event, data },
  };
};
