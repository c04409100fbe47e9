import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/**
 * A door to Postgres that can lose an answer: once armed with a piece of a statement, it ends the
 * first connection on which that was sent as soon as Postgres reports the commit, and nobody hears
 * of it. The transaction took effect all the same.
 */

export interface CuttingProxy {
  readonly url: string;
  /** From now on the next commit of a transaction with such a statement is not heard of. */
  arm(statement: string): void;
  disarm(): void;
  /** How many commits were not heard of. */
  readonly cuts: number;
}

/** CommandComplete with the tag of a commit. */
const committed = Buffer.from('COMMIT\0');

/** Where the server of a URL listens; `unix:PATH` is one of Redis. */
const serverOf = (url: URL): { path: string } | { host: string; port: number } => {
  if (url.protocol === 'unix:') return { path: url.pathname };
  const folder = url.searchParams.get('host');
  const port = Number(url.port || 5432);
  if (folder?.startsWith('/')) return { path: `${folder}/.s.PGSQL.${port}` };
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port };
};

const listen = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });

export const startCuttingProxy = async (
  t: Teardown,
  database_url: string,
): Promise<CuttingProxy> => {
  const url = new URL(database_url);
  const target = serverOf(url);
  const sockets = new Set<Socket>();
  let armed: string | null = null;
  let cuts = 0;

  const server = createServer((client) => {
    const upstream = connect(target);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', end);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    let is_marked = false;
    client.on('data', (chunk: Buffer) => {
      is_marked ||= armed !== null && chunk.includes(armed);
      upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      if (armed !== null && is_marked && chunk.includes(committed)) {
        armed = null;
        cuts += 1;
        end();
      } else client.write(chunk);
    });
  });
  const port = await listen(server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  url.searchParams.delete('host');
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return {
    url: url.href,
    arm(statement) {
      armed = statement;
    },
    disarm() {
      armed = null;
    },
    get cuts() {
      return cuts;
    },
  };
};

export interface SilentProxy {
  readonly url: string;
  /** Connections that are open now neither carry anything more nor end; later ones are good. */
  silence(): void;
  /** Later ones are taken and not heard either, until `heal`. */
  silenceAll(): void;
  heal(): void;
  /** How many were open when they fell silent. */
  readonly silenced: number;
}

/** A way to a store that breaks without a word, as behind a firewall that forgot its state. */
export const startSilentProxy = async (t: Teardown, store_url: string): Promise<SilentProxy> => {
  const url = new URL(store_url);
  const target = serverOf(url);
  const sockets = new Set<Socket>();
  let talking = new Set<() => void>();
  let is_deaf = false;
  let silenced = 0;

  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
    if (is_deaf) return;
    const upstream = connect(target);
    sockets.add(upstream);
    let is_silent = false;
    const pairs = [
      [client, upstream],
      [upstream, client],
    ] as const;
    for (const [from, to] of pairs) {
      from.on('data', (chunk) => {
        if (!is_silent) to.write(chunk);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        talking.delete(fallSilent);
        if (!is_silent) to.destroy();
      });
    }
    const fallSilent = (): void => {
      is_silent = true;
    };
    talking.add(fallSilent);
  });
  const port = await listen(server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const silence = (): void => {
    silenced += talking.size;
    for (const fallSilent of talking) fallSilent();
    talking = new Set();
  };
  const proxied = new URL(url.protocol === 'unix:' ? 'redis://127.0.0.1' : url.href);
  proxied.searchParams.delete('host');
  proxied.hostname = '127.0.0.1';
  proxied.port = String(port);
  return {
    url: proxied.href,
    silence,
    silenceAll() {
      is_deaf = true;
      silence();
    },
    heal() {
      is_deaf = false;
    },
    get silenced() {
      return silenced;
    },
  };
};
