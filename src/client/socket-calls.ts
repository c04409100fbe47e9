import type { Send, WireAnswer, WireRequest } from './calls.js';
import { SocketRefused } from './errors.js';
import { type Frame, Link, type LinkOptions } from './link.js';

/**
 * Sends calls over a websocket: one that a stream has open, else one of its own. Who calls is who
 * opened the socket, so headers with a credential stay here.
 */

/** Below what a socket may have in flight. */
const most_in_flight = 60;
const credential_names = ['x-api-key', 'authorization'];

/** A refusal of the frame itself has no status. */
const statusOf = ({ code, retryable }: Frame): number =>
  code === 'TOO_MANY_CALLS' ? 429 : retryable === true ? 503 : 400;

const answerOf = (frame: Frame): WireAnswer => {
  const is_reply = frame.op === 'reply';
  const headers = (frame['headers'] ?? {}) as Readonly<Record<string, string>>;
  return {
    status: is_reply ? Number(frame['status']) : statusOf(frame),
    header: (name) => headers[name] ?? '',
    body: is_reply ? frame['body'] : frame,
  };
};

const frameOf = ({ method, target, headers, body }: WireRequest): object => {
  const own = Object.entries(headers).filter(([name]) => !credential_names.includes(name));
  return {
    op: 'call',
    route: `${method} ${target}`,
    headers: Object.fromEntries(own),
    ...(body === undefined ? {} : { body }),
  };
};

/** Calls `look` at once and on each `wake`, until it gives something or the signal is aborted. */
const untilGiven = <T>(
  waiting: Set<() => void>,
  signal: AbortSignal,
  look: () => T | undefined,
): Promise<T> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      waiting.delete(again);
      signal.removeEventListener('abort', stop);
      settle();
    };
    const stop = (): void => end(() => reject(signal.reason));
    const again = (): void => {
      try {
        const found = look();
        if (found !== undefined) end(() => resolve(found));
      } catch (error) {
        end(() => reject(error));
      }
    };
    waiting.add(again);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    else again();
  });

export interface SocketCalls {
  readonly send: Send;
  close(): void;
}

/** `links`: those that streams have open. */
export const makeSocketCalls = (
  options: LinkOptions,
  links: ReadonlySet<Link>,
  sendHttp: Send,
): SocketCalls => {
  const waiting = new Set<() => void>();
  let own: Link | undefined;
  let refused: Error | undefined;
  let in_flight = 0;

  const wake = (): void => {
    for (const look of [...waiting]) look();
  };
  const openOwn = (): Link =>
    new Link(options, {
      onUp: () => undefined,
      onReady: wake,
      onFrame: () => undefined,
      onDown: () => undefined,
      onEnd(error) {
        own = undefined;
        refused = error ?? new SocketRefused(1_000, 'by this client');
        wake();
        refused = undefined;
      },
    });
  const findLink = (): Link | undefined => {
    for (const link of links) if (link.is_ready) return link;
    own ??= openOwn();
    return own.is_ready ? own : undefined;
  };
  /** A link with room for a call, which is then counted. */
  const takeLink = (): Link | undefined => {
    if (refused !== undefined) throw refused;
    const link = in_flight < most_in_flight ? findLink() : undefined;
    if (link !== undefined) in_flight += 1;
    return link;
  };

  return {
    async send(request, signal) {
      const link = await untilGiven(waiting, signal, takeLink);
      try {
        const answer = answerOf(await link.ask(frameOf(request), signal));
        const { code } = (answer.body ?? {}) as { code?: unknown };
        // Some answers are no text, or too long for a frame.
        if (code === 'HTTP_ONLY' && request.method === 'GET') return sendHttp(request, signal);
        return answer;
      } finally {
        in_flight -= 1;
        wake();
      }
    },
    close: () => own?.close(),
  };
};
