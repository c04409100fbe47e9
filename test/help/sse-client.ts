import http from 'node:http';
import { createParser } from 'eventsource-parser';
import type { Teardown } from './stores.js';
import { until } from './until.js';

/** One connection to a stream of server-sent events, read by a third-party parser. */

export interface SseMessage {
  /** Empty for an event of the log. */
  readonly name: string;
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: an event is read by tests that know its shape.
  readonly data: any;
}

export const openSse = async (
  t: Teardown,
  url: string,
  headers: Readonly<Record<string, string>> = {},
) => {
  const messages: SseMessage[] = [];
  let retry: number | undefined;
  let bytes = 0;
  const parser = createParser({
    onEvent: ({ event = '', id, data }) => {
      messages.push({ name: event, id, data: JSON.parse(data) });
    },
    onRetry: (ms) => {
      retry = ms;
    },
  });
  const request = http.get(url, { headers, agent: false });
  t.teardown(() => {
    request.destroy();
  });
  const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
  request.on('error', () => undefined);
  answer.setEncoding('utf8');
  answer.on('data', (text: string) => {
    bytes += text.length;
    parser.feed(text);
  });
  const ended = new Promise<'end' | 'cut'>((resolve) => {
    answer.once('end', () => resolve('end'));
    answer.once('error', () => resolve('cut'));
  });
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    messages: messages as readonly SseMessage[],
    /** How the stream ended: normally or cut off. */
    ended,
    /** Number of characters received. */
    bytes: () => bytes,
    /** Offsets of the log events, in order of arrival. */
    offsets: () => messages.filter(({ name }) => name === '').map(({ data }) => data.offset),
    /** The first message with this name. */
    get: (wanted: string) =>
      until(`a message ${wanted}`, () => messages.find(({ name }) => name === wanted)),
    retry: () => retry,
    pause: () => answer.pause(),
    resume: () => answer.resume(),
    close: () => request.destroy(),
  };
};
