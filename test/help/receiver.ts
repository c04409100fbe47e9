import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeAuthority, type Pair } from './authority.js';
import { until } from './until.js';

/**
 * A webhook receiver: an HTTPS server on 127.0.0.1 with its own certificate authority. Answers are
 * scripted per path and used in order. After the last one, and on other paths, it answers 204.
 */

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Number of the connection. It shows whether requests reused a connection. */
  readonly connection: number;
}

interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A function writes the response itself, or never answers. */
type Answer = ScriptedAnswer | ((response: ServerResponse, received: Received) => void);

type Handler = (received: Received, response: ServerResponse) => void;

/** Calls `handle` for every request when its body is complete. */
const serve = async (pair: Pair, handle: Handler) => {
  const connections = new Map<Socket, number>();
  let count = 0;
  const server = createServer(pair, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.once('end', () => {
      const { url = '/', headers, socket } = request;
      const connection = connections.get(socket) ?? 0;
      handle({ path: url, headers, body: Buffer.concat(chunks), connection }, response);
    });
  });
  server.on('secureConnection', (socket) => {
    count += 1;
    connections.set(socket, count);
    socket.on('error', () => undefined).on('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = (): Promise<unknown> => {
    for (const socket of connections.keys()) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  return { port: (server.address() as AddressInfo).port, close };
};

/** `names` are DNS names for the certificate, in addition to 127.0.0.1. */
export const startReceiver = async (names: readonly string[] = []) => {
  const { ca_pem, issue } = await makeAuthority();
  const folder = mkdtempSync(path.join(tmpdir(), 'receiver-'));
  const ca_file = path.join(folder, 'ca.pem');
  writeFileSync(ca_file, ca_pem);
  const received: Received[] = [];
  const scripts = new Map<string, Answer[]>();
  const loads = new Map<string, { now: number; most: number }>();
  /** Requests to one path, in order of arrival. */
  const of = (at: string): readonly Received[] => received.filter((one) => one.path === at);
  /** Number of requests to a path that are in progress now, and the highest number so far. */
  const load = (at: string) => {
    const known = loads.get(at) ?? { now: 0, most: 0 };
    loads.set(at, known);
    return known;
  };
  const { port, close } = await serve(
    await issue({ names: ['127.0.0.1', ...names] }),
    (one, to) => {
      const own = load(one.path);
      own.now += 1;
      own.most = Math.max(own.most, own.now);
      to.once('close', () => {
        own.now -= 1;
      });
      const answer = scripts.get(one.path)?.shift() ?? { status: 204 };
      if (typeof answer === 'function') answer(to, one);
      else to.writeHead(answer.status, answer.headers ?? {}).end(answer.body ?? '');
      received.push(one);
    },
  );
  return {
    port,
    ca_pem,
    ca_file,
    of,
    load,
    received: received as readonly Received[],
    /** Issues a certificate for another server of the same test. */
    issue,
    url: (at: string) => `https://127.0.0.1:${port}${at}`,
    /** Adds answers to requests to a path. The answers are used in this order. */
    script: (at: string, ...answers: Answer[]): void => {
      scripts.set(at, [...(scripts.get(at) ?? []), ...answers]);
    },
    /** Resolves when this many requests to a path have arrived. Rejects after `ms`. */
    waitFor: (at: string, count: number, ms = 10_000): Promise<readonly Received[]> =>
      until(`${count} requests to ${at}`, () => of(at).length >= count && of(at), ms),
    /** Forgets all requests and scripted answers. */
    clear: (): void => {
      received.length = 0;
      for (const map of [scripts, loads]) map.clear();
    },
    close: async (): Promise<void> => {
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
