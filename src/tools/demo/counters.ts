import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Client, verifyWebhook } from '#client/node.js';
import { green } from '../../boot/terminal.mjs';
import type { Screen } from '../command.js';
import type { Story } from './live.js';

/** Counts the events that arrive during the demo, and compares them with the calls that were made. */

export type IsOwn = (prediction: { readonly user_id?: string }) => boolean;

/** Collects the ids of live predictions from now on. Resolves when the stream is live. */
const listen = (client: Client, isOwn: IsOwn) =>
  new Promise<ReadonlySet<string>>((resolve, reject) => {
    const seen = new Set<string>();
    const { done } = client.stream({
      topics: ['all'],
      filter: { events: ['prediction.placed'] },
      backfill: true,
      onItem: (item) => {
        if (item.event === 'prediction.placed' && isOwn(item.data)) seen.add(item.id);
      },
      onStatus: ({ status }) => {
        if (status === 'live') resolve(seen);
      },
    });
    done.catch(reject);
  });

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/**
 * A webhook receiver as a subscriber would write it: it uses HTTPS, verifies the signature over the
 * raw bytes, and recognises repeats by their `webhook-id`.
 */
export const startReceiver = async (tls: { cert: string; key: string }, isOwn: IsOwn) => {
  const state = { verified: new Set<string>(), rejected: 0, secret: '' };
  /** Returns the status to answer with. */
  const take = async (body: Buffer, headers: IncomingHttpHeaders): Promise<number> => {
    // The secret is known only once the webhook exists. Earlier deliveries are refused and come
    // again.
    if (state.secret === '') return 503;
    try {
      const { id, event, data } = await verifyWebhook(headers, body, state.secret);
      if (event === 'prediction.placed' && isOwn(data)) state.verified.add(id);
      return 200;
    } catch {
      state.rejected += 1;
      return 401;
    }
  };
  const server = createServer(tls, async (request, response) => {
    const body = await buffer(request).catch(() => null);
    if (body !== null) response.writeHead(await take(body, request.headers)).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return Object.assign(state, { port: (server.address() as AddressInfo).port, close });
};

/** Starts a websocket and a webhook of the person. Both count the predictions of live agents. */
export const openCounters = async (story: Story, person: Client, isOwn: IsOwn) => {
  const { client, closers, data_dir } = story;
  closers.push(client.close);
  const on_socket = await listen(client, isOwn);
  const read = (name: string): string => readFileSync(path.join(data_dir, name), 'utf8');
  const tls = { cert: read('dev-cert.pem'), key: read('dev-key.pem') };
  const receiver = await startReceiver(tls, isOwn);
  closers.push(receiver.close);
  const url = `https://127.0.0.1:${receiver.port}/events`;
  const hook = { url, events: ['prediction.placed'] as const };
  const { id, secret } = await person.call('createWebhook', { body: hook });
  closers.push(() => person.call('deleteWebhook', { params: { id } }));
  receiver.secret = secret;
  return { on_socket, receiver };
};

export interface Tally {
  readonly sent: {
    readonly questions: number;
    readonly predictions: number;
    readonly comments: number;
    readonly resolved: number;
    /** Ids of the events that the live predictions caused. */
    readonly accepted: ReadonlySet<string>;
  };
  readonly found: Readonly<Record<'questions' | 'predictions' | 'comments' | 'resolved', number>>;
  readonly on_socket: ReadonlySet<string>;
  readonly verified: ReadonlySet<string>;
  readonly rejected: number;
}

const areSame = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((id) => b.has(id));

/** Compares the calls of the demo with the counts of the service, and the event ids of both. */
export const summarise = (
  { sent, found, on_socket, verified, rejected }: Tally,
  screen: Screen = { write: () => undefined },
) => {
  const { accepted } = sent;
  const same = (name: string, wanted: number, got: number, is_same = wanted === got) =>
    [name, wanted, got, is_same] as const;
  const rows = [
    same('questions', sent.questions, found.questions),
    same('agents’ predictions', sent.predictions, found.predictions),
    same('comments and replies', sent.comments, found.comments),
    same('resolved questions', sent.resolved, found.resolved),
    same(
      'live events on the websocket',
      accepted.size,
      on_socket.size,
      areSame(accepted, on_socket),
    ),
    same('verified webhook deliveries', accepted.size, verified.size, areSame(accepted, verified)),
    same('deliveries with a wrong signature', 0, rejected),
  ];
  const equal = rows.every(([, , , is_right]) => is_right);
  const lines = rows.map(
    ([name, wanted, got, is_right]) =>
      `  ${name.padEnd(34)} ${String(wanted).padStart(8)} ${String(got).padStart(8)}  ` +
      (is_right ? green('✓', screen) : '✗'),
  );
  const title = `  ${''.padEnd(34)} ${'sent'.padStart(8)} ${'found'.padStart(8)}`;
  return {
    equal,
    lines: [title, ...lines, '', equal ? 'All counts are equal.' : 'The counts differ.'],
  };
};
