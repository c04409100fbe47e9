import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Teardown } from '../help/stores.js';

/**
 * A proxy in front of the service. It behaves like bad networks and third-party proxies: it loses
 * answers, never answers, or answers on its own.
 */

export type Mood =
  | 'pass'
  /** The service answers, but the answer is dropped. */
  | 'lose'
  /** Never answers. */
  | 'hang'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

const forward = (target: string, asked: IncomingMessage, body: Buffer) =>
  new Promise<{ readonly answer: IncomingMessage; readonly text: Buffer }>((resolve, reject) => {
    const { method, headers, url } = asked;
    const call = request(new URL(url ?? '/', target), { method, headers }, (answer) => {
      buffer(answer).then((text) => resolve({ answer, text }), reject);
    });
    call.once('error', reject);
    call.end(body);
  });

const behave = async (
  mood: Mood,
  { asked, answered, target }: { asked: IncomingMessage; answered: ServerResponse; target: string },
): Promise<void> => {
  if (mood === 'hang') return;
  if (typeof mood === 'object') {
    answered.writeHead(mood.status, mood.headers).end(mood.body);
    return;
  }
  const { answer, text } = await forward(target, asked, await buffer(asked));
  if (mood === 'lose') asked.socket.destroy();
  else answered.writeHead(answer.statusCode ?? 500, answer.headers).end(text);
};

export const startFront = async (t: Teardown, target: string) => {
  /** Behaviour for the next requests, one entry each. All later requests use `pass`. */
  const moods: Mood[] = [];
  const seen: { readonly method: string; readonly path: string; readonly key: string }[] = [];
  const server = createServer((asked, answered) => {
    const { method = '', url = '', headers } = asked;
    seen.push({ method, path: url, key: String(headers['idempotency-key'] ?? '') });
    behave(moods.shift() ?? 'pass', { asked, answered, target }).catch(() => answered.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, moods, seen };
};
