import { gzipSync } from 'node:zlib';
import { cutAfter, type Misbehaviour, pour, say } from '../../help/hostile.js';

/** What receivers answer, byte for byte, and how each answer is to be treated. */

export const answer = (status: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...headers, '', ''].join('\r\n');
export const plain = (status: string, ...headers: readonly string[]): Misbehaviour =>
  say(answer(status, 'Content-Length: 0', ...headers));

export interface Case {
  readonly does: Misbehaviour;
  readonly state: 'delivered' | 'waiting';
  readonly status: number | null;
  readonly error?: string;
  /** Least and most seconds until the next attempt. */
  readonly delay?: readonly [least: number, most: number];
  readonly answer?: string | RegExp;
}

const one_step = [4, 6] as const;
export const chunked = answer('200 OK', 'Transfer-Encoding: chunked');
export const bomb = gzipSync(Buffer.alloc(20_000_000));

const failed = { state: 'waiting', delay: one_step } as const;
const broken = { ...failed, status: null } as const;

type Cases = Readonly<Record<string, Case>>;

const good: Cases = {
  '/204': { does: say(answer('204 No Content')), state: 'delivered', status: 204 },
  '/200': {
    does: say(`${answer('200 OK', 'Content-Length: 2')}ok`),
    ...{ state: 'delivered', status: 200, answer: 'ok' },
  },
  '/200-to-the-end': {
    does: say(`${answer('200 OK')}until the end`),
    ...{ state: 'delivered', status: 200, answer: 'until the end' },
  },
  '/202-after-103': {
    does: say(answer('103 Early Hints') + answer('202 OK', 'Content-Length: 0')),
    ...{ state: 'delivered', status: 202 },
  },
  '/299': { does: plain('299 Odd'), state: 'delivered', status: 299 },
};

const failures: Cases = {
  '/300': { does: plain('300 Many'), ...failed, status: 300 },
  '/304': { does: say(answer('304 Not Modified')), ...failed, status: 304 },
  '/404': { does: plain('404 Gone'), ...failed, status: 404 },
  '/410': { does: plain('410 Gone'), ...failed, status: 410 },
  '/500': { does: plain('500 Broken'), ...failed, status: 500 },
  '/999': { does: plain('999 Odd'), ...failed, status: 999 },
};

const broken_answers: Cases = {
  '/199': { does: say(answer('199 Odd')), ...broken, error: 'connection_lost' },
  '/100-not-asked-for': {
    does: say(answer('100 Continue') + answer('202 OK', 'Content-Length: 0')),
    ...{ ...broken, error: 'answer_invalid' },
  },
  '/101': {
    does: say(answer('101 Switching Protocols', 'Upgrade: x', 'Connection: upgrade')),
    ...broken,
    error: 'answer_invalid',
  },
  '/no-http': { does: say('SSH-2.0-OpenSSH_9.6\r\n'), ...broken, error: 'answer_invalid' },
  '/binary': { does: say(Buffer.alloc(512, 0xff)), ...broken, error: 'answer_invalid' },
  '/two-lengths': {
    does: say(answer('200 OK', 'Content-Length: 1', 'Content-Length: 2')),
    ...{ ...broken, error: 'answer_invalid' },
  },
  '/nothing': { does: say(''), ...broken, error: 'connection_lost' },
  '/cut-in-headers': {
    does: cutAfter('HTTP/1.1 200 OK\r\nContent-Le'),
    ...{ ...broken, error: 'connection_lost' },
  },
  '/cut-after-200': {
    does: cutAfter(`${answer('200 OK', 'Content-Length: 100')}only this`),
    ...{ ...failed, status: 200, error: 'connection_lost', answer: 'only this' },
  },
  '/cut-in-chunks': {
    does: cutAfter(`${chunked}5\r\nhello\r\n`),
    ...{ ...failed, status: 200, error: 'connection_lost', answer: 'hello' },
  },
};

const endless_answers: Cases = {
  '/endless-100': {
    does: pour('', Buffer.from(answer('100 Continue').repeat(50))),
    ...{ ...broken, error: 'answer_invalid' },
  },
  '/megabyte-of-headers': {
    does: say(
      answer('200 OK', ...Array.from({ length: 16_384 }, (_, n) => `X-${n}: ${'h'.repeat(52)}`)),
    ),
    ...{ ...broken, error: 'answer_invalid' },
  },
  '/endless-header': {
    does: pour('HTTP/1.1 200 OK\r\nX-Long: ', Buffer.alloc(65_536, 'h')),
    ...{ ...broken, error: 'answer_invalid' },
  },
  '/endless-body': {
    does: pour(answer('200 OK'), Buffer.alloc(65_536, 'y')),
    ...{ state: 'delivered', status: 200, answer: 'y'.repeat(1_024) },
  },
  '/endless-500': {
    does: pour(answer('500 Broken'), Buffer.alloc(65_536, 'n')),
    ...{ ...failed, status: 500, answer: 'n'.repeat(1_024) },
  },
  '/endless-chunks': {
    does: pour(chunked, Buffer.from('1\r\nz\r\n'.repeat(10_000))),
    ...{ state: 'delivered', status: 200, answer: 'z'.repeat(1_024) },
  },
  '/gzip-bomb': {
    does: say(
      Buffer.concat([
        Buffer.from(answer('200 OK', 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`)),
        bomb,
      ]),
    ),
    ...{ state: 'delivered', status: 200, answer: /^.{1,1024}$/s },
  },
};

/** Answers that ask for a time; dates count from `now_ms`. */
const makeAsking = (now_ms: number): Cases => {
  const in_eight_s = new Date(now_ms + 8_000).toUTCString();
  const asks = (status: string, text: string): Misbehaviour =>
    plain(status, `Retry-After: ${text}`);
  return {
    '/500-asks': { does: asks('500 Broken', '9'), ...failed, status: 500 },
    '/429-0': { does: asks('429 Slow', '0'), ...failed, status: 429, delay: [5, 6] },
    '/429-7': { does: asks('429 Slow', '7'), ...failed, status: 429, delay: [7, 8.4] },
    '/429-99999': { does: asks('429 Slow', '99999'), ...failed, status: 429, delay: [10, 10] },
    '/429-date': { does: asks('429 Slow', in_eight_s), ...failed, status: 429, delay: [7, 9.6] },
    '/429-junk': { does: asks('429 Slow', 'soon, -1'), ...failed, status: 429 },
    '/429-twice': {
      does: plain('429 Slow', 'Retry-After: 7', 'Retry-After: 9'),
      ...{ ...failed, status: 429, delay: [4, 8.4] },
    },
    '/429-bare': { does: plain('429 Slow'), ...failed, status: 429 },
    '/503-7': { does: asks('503 Away', '7'), ...failed, status: 503, delay: [7, 8.4] },
  };
};

export const makeCases = (now_ms: number): Cases => ({
  ...good,
  ...failures,
  ...broken_answers,
  ...endless_answers,
  ...makeAsking(now_ms),
});
