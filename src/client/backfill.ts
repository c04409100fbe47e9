import type { Client } from './client.js';
import { isStateTopic, type LogEvent, type StreamOptions } from './types.js';

/** Reads the part of the log that is too long for a replay, by pages over HTTP. */

export interface Page {
  /** In their order, each once. */
  readonly events: readonly LogEvent[];
  /** Everything up to here is in this page or the ones before. */
  readonly upto: number;
  /** There is still more than a replay can give. */
  readonly more: boolean;
  /** What comes right behind the offset is not there any more. */
  readonly lost: { readonly reason: string; readonly until: number } | null;
}

export type ReadPage = (after: number, signal: AbortSignal) => Promise<Page>;

const most_topics = 50;
const page_size = 100;
/** Well below what the service gives in one replay. */
const replay_most = 5_000;

export const makeReader = (
  call: Client['call'],
  { topics, filter = {} }: StreamOptions,
): ReadPage => {
  const wanted = topics.filter((topic) => !isStateTopic(topic));
  const [only] = wanted;
  const known = wanted.length === 1 && only !== undefined ? { topic: only } : {};
  const parts = Array.from({ length: Math.ceil(wanted.length / most_topics) }, (_, n) =>
    wanted.slice(n * most_topics, (n + 1) * most_topics),
  );
  return async (after, signal) => {
    const answers = await Promise.all(
      parts.map((topic) => {
        const query = { ...filter, topic, after, limit: page_size };
        return call('listEvents', { query, signal, over: 'http' });
      }),
    );
    // Beyond this there may be events that one of the answers has and another has not come to.
    const upto = Math.min(...answers.map(({ next }) => next));
    const found = new Map<number, LogEvent>();
    for (const { events } of answers) {
      for (const event of events) {
        const { offset } = event;
        if (offset <= upto) found.set(offset, { op: 'event', ...known, ...event } as LogEvent);
      }
    }
    return {
      events: [...found.values()].sort((a, b) => a.offset - b.offset),
      upto,
      more: Math.max(...answers.map(({ head }) => head)) - upto > replay_most,
      lost: answers.find(({ gap }) => gap !== null)?.gap ?? null,
    };
  };
};
