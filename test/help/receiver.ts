import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Authority, makeAuthority } from './authority.js';

/**
 * A webhook receiver: an HTTPS server on 127.0.0.1 whose certificate comes from an authority of its
 * own. Answers are scripted by path and used up in order; then, and for other paths, it says 204.
 */

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Of the connection it came over: tells kept connections from new ones. */
  readonly connection: number;
  readonly at_ms: number;
}

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A function answers by itself, or never. */
export type Answer = ScriptedAnswer | ((response: ServerResponse, received: Received) => void);

export interface Receiver {
  readonly port: number;
  readonly received: readonly Received[];
  /** Those to one path, in order of arrival. */
  of(path: string): readonly Received[];
  readonly ca_pem: string;
  readonly ca_file: string;
  /** A certificate for another server of the same test. */
  readonly issue: Authority['issue'];
  url(path: string): string;
  /** What requests to `path` get, in this order. */
  script(path: string, ...answers: Answer[]): void;
  /** Resolves when `count` requests to `path` have come; rejects after `ms`. */
  waitFor(path: string, count: number, ms?: number): Promise<readonly Received[]>;
  /** Requests to `path` under way now, and the most there ever were. */
  load(path: string): { now: number; most: number };
  /** Forgets what has come and what is scripted. */
  clear(): void;
  close(): Promise<void>;
}

interface Waiter {
  readonly path: string;
  readonly count: number;
  readonly done: (received: readonly Received[]) => void;
}

const send = (response: ServerResponse, answer: ScriptedAnswer): void => {
  response.writeHead(answer.status, answer.headers ?? {});
  response.end(answer.body ?? '');
};

/** `names`: DNS names for the certificate, beside 127.0.0.1. */
export const startReceiver = async (names: readonly string[] = []): Promise<Receiver> => {
  const { ca_pem, issue } = await makeAuthority();
  const pair = await issue({ names: ['127.0.0.1', ...names] });
  const folder = mkdtempSync(path.join(tmpdir(), 'receiver-'));
  const ca_file = path.join(folder, 'ca.pem');
  writeFileSync(ca_file, ca_pem);

  const received: Received[] = [];
  const scripts = new Map<string, Answer[]>();
  const loads = new Map<string, { now: number; most: number }>();
  const connections = new Map<Socket, number>();
  let connection_count = 0;
  let waiters: Waiter[] = [];

  const loadOf = (at: string) => {
    const load = loads.get(at) ?? { now: 0, most: 0 };
    loads.set(at, load);
    return load;
  };
  const by_path = new Map<string, Received[]>();
  const of = (at: string): Received[] => {
    const all = by_path.get(at) ?? [];
    by_path.set(at, all);
    return all;
  };
  const note = (one: Received): void => {
    received.push(one);
    const count = of(one.path).push(one);
    const ready = waiters.filter((w) => w.path === one.path && w.count <= count);
    waiters = waiters.filter((w) => !ready.includes(w));
    for (const waiter of ready) waiter.done(of(one.path));
  };

  const server = createServer(pair);
  server.on('secureConnection', (socket) => {
    connection_count += 1;
    connections.set(socket, connection_count);
    socket.on('error', () => undefined);
    socket.on('close', () => connections.delete(socket));
  });
  server.on('request', (request, response) => {
    const at = request.url ?? '/';
    const load = loadOf(at);
    load.now += 1;
    load.most = Math.max(load.most, load.now);
    response.once('close', () => {
      load.now -= 1;
    });
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.once('end', () => {
      const one: Received = {
        path: at,
        headers: request.headers,
        body: Buffer.concat(chunks),
        connection: connections.get(request.socket) ?? 0,
        at_ms: performance.now(),
      };
      const answer = scripts.get(at)?.shift() ?? { status: 204 };
      if (typeof answer === 'function') answer(response, one);
      else send(response, answer);
      note(one);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    port,
    received,
    of,
    ca_pem,
    issue,
    ca_file,
    url: (at) => `https://127.0.0.1:${port}${at}`,
    script: (at, ...answers) => {
      scripts.set(at, [...(scripts.get(at) ?? []), ...answers]);
    },
    load: loadOf,
    waitFor: (at, count, ms = 10_000) =>
      new Promise((resolve, reject) => {
        if (of(at).length >= count) {
          resolve(of(at));
          return;
        }
        const timer = setTimeout(
          () => reject(new Error(`${at}: ${of(at).length} of ${count} requests after ${ms} ms`)),
          ms,
        );
        const done = (all: readonly Received[]): void => {
          clearTimeout(timer);
          resolve(all);
        };
        waiters.push({ path: at, count, done });
      }),
    clear: () => {
      received.length = 0;
      for (const map of [by_path, scripts, loads]) map.clear();
    },
    close: async () => {
      for (const socket of connections.keys()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
