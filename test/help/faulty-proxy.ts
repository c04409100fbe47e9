import { connect, createServer, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/** A proxy to Postgres or Redis that loses answers or stops responding when a test asks for it. */

/** CommandComplete message with the tag of a commit. */
const committed = Buffer.from('COMMIT\0');

const keepalive_ms = 20_000;

/** Address where the server of a URL listens. `unix:PATH` is a Redis socket. */
const serverOf = (url: URL): { path: string } | { host: string; port: number } => {
  if (url.protocol === 'unix:') return { path: url.pathname };
  const folder = url.searchParams.get('host');
  const port = Number(url.port || 5432);
  if (folder?.startsWith('/')) return { path: `${folder}/.s.PGSQL.${port}` };
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port };
};

interface Link {
  is_silent: boolean;
  is_mute: boolean;
  is_marked: boolean;
}

export const startFaultyProxy = async (t: Teardown, store_url: string) => {
  const url = new URL(store_url);
  const target = serverOf(url);
  const sockets = new Set<Socket>();
  const links = new Set<Link>();
  let armed: string | null = null;
  let is_deaf = false;
  let refuses = false;
  /** `cuts` counts commits with a lost answer, and `silenced` connections that went silent. */
  const counts = { cuts: 0, silenced: 0 };

  const server = createServer((client) => {
    if (refuses) return void client.destroy();
    const link: Link = { is_silent: false, is_mute: false, is_marked: false };
    const upstream = is_deaf ? undefined : connect(target);
    const ends = upstream === undefined ? [client] : [client, upstream];
    for (const socket of ends) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        links.delete(link);
        if (!link.is_silent) for (const other of ends) other.destroy();
        // The server notices through its keepalive that the client is gone.
        else if (socket === client) setTimeout(() => upstream?.destroy(), keepalive_ms).unref();
      });
    }
    if (upstream === undefined) return;
    links.add(link);
    client.on('data', (chunk: Buffer) => {
      link.is_marked ||= armed !== null && chunk.includes(armed);
      if (!link.is_silent) upstream.write(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      if (armed !== null && link.is_marked && chunk.includes(committed)) {
        armed = null;
        counts.cuts += 1;
        client.destroy();
      } else if (!link.is_silent && !link.is_mute) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const proxied = new URL(url.protocol === 'unix:' ? 'redis://127.0.0.1' : url.href);
  proxied.searchParams.delete('host');
  proxied.hostname = '127.0.0.1';
  proxied.port = String(typeof address === 'object' ? address?.port : '');
  const silence = (): void => {
    counts.silenced += links.size;
    for (const link of links) link.is_silent = true;
    links.clear();
  };
  return Object.assign(counts, {
    url: proxied.href,
    /**
     * Loses the answer to the next commit of a transaction that contains this text. The connection
     * ends as soon as Postgres reports the commit, which has taken effect.
     */
    arm(statement: string) {
      armed = statement;
    },
    disarm() {
      armed = null;
    },
    /** Open connections carry no data from now on, but do not end. New connections work. */
    silence,
    /** Open connections deliver requests from now on, but lose the answers. */
    mute() {
      for (const link of links) link.is_mute = true;
    },
    /** Closes all open connections immediately. */
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    /** Silences open connections, and gives new ones no answers until `heal`. */
    silenceAll() {
      is_deaf = true;
      silence();
    },
    /** Ends every connection at once, both open and new ones, until `heal`. */
    refuseAll() {
      refuses = true;
      for (const socket of sockets) socket.destroy();
    },
    heal() {
      is_deaf = false;
      refuses = false;
    },
  });
};
