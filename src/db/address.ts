import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { ConnectionError, isOutage } from '../kit/outage.js';
import { CannotStart } from '../kit/service.js';

/**
 * The address of Postgres: a URL in libpq's form, with one host or several, and
 * `target_session_attrs`, which says what kind of host is wanted. This file opens the sockets
 * itself, because the postgres package would keep using the host that it chose first.
 */

const wishes = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const;
export type Wish = (typeof wishes)[number];

const tls_modes = {
  disable: 'off',
  allow: 'prefer',
  prefer: 'prefer',
  require: 'require',
  true: 'require',
  'verify-ca': 'verify',
  'verify-full': 'verify',
} as const;
type Tls = (typeof tls_modes)[keyof typeof tls_modes];

export interface Host {
  /** The host as people write it, for messages. */
  readonly name: string;
  readonly target: net.NetConnectOpts;
  readonly tls: Tls;
}

export interface Address {
  /** The URL for the postgres package, without the hosts and the settings that are used here. */
  readonly url: string;
  readonly hosts: readonly Host[];
  readonly wish: Wish;
}

const not_encoded = 'characters of the user or the password need to be percent-encoded';

const wrong = (why: string): never => {
  throw new CannotStart(`The address of Postgres is invalid: ${why}.`);
};

const url_form = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^/?#@]*)([^#]*)$/;
const host_form = /^(\[[^\]]*\]|[^:]*)(?::(\d{0,5}))?$/;

const describeHost = (host: string, given_port: string, mode: Tls): Host => {
  const port = Number(given_port || 5432);
  if (!(port >= 1 && port <= 65_535)) return wrong(`${given_port} is not a port`);
  if (host.startsWith('/')) {
    return { name: host, target: { path: `${host}/.s.PGSQL.${port}` }, tls: 'off' };
  }
  const bare = (host || 'localhost').replace(/^\[|\]$/g, '');
  return { name: `${bare}:${port}`, target: { host: bare, port }, tls: mode };
};

const readHosts = (authority: string, query: URLSearchParams, mode: Tls): Host[] => {
  const pairs = authority.split(',').map((text) => {
    const [, host, port = ''] = host_form.exec(text) ?? wrong(`${text} is not host:port`);
    return { host: decodeURIComponent(host as string), port };
  });
  const hosts = query.get('host')?.split(',') ?? pairs.map(({ host }) => host);
  const ports = query.get('port')?.split(',') ?? pairs.map(({ port }) => port);
  if (ports.length !== 1 && ports.length !== hosts.length) {
    wrong(`it has ${hosts.length} hosts and ${ports.length} ports`);
  }
  return hosts.map((host, n) => describeHost(host, ports[n] ?? ports[0] ?? '', mode));
};

/**
 * Reads the address. Throws a sentence that says what is wrong, without the password. If the
 * address has several hosts, the default is the primary; libpq would use any of them.
 */
export const readAddress = (text: string): Address => {
  const [, scheme, user, authority = '', rest = ''] =
    url_form.exec(text) ??
    wrong('it must look like postgres://user:password@host:5432,other:5432/database');
  // If the password contains / or ?, the @ comes too late: after the supposed end of the hosts.
  const has_late_at = user === '' && /^(?:[^?]*|[^=]*)@/.test(rest);
  if (has_late_at || !URL.canParse(`${scheme}${user}localhost${rest}`)) wrong(not_encoded);
  const url = new URL(`${scheme}${user}localhost${rest}`);
  const query = url.searchParams;
  const mode = query.get('sslmode') ?? query.get('ssl') ?? 'disable';
  const hosts = readHosts(authority, query, tls_modes[mode as keyof typeof tls_modes] ?? 'off');
  const fallback = hosts.length > 1 ? 'primary' : 'any';
  const wish = (query.get('target_session_attrs') ?? fallback) as Wish;
  if (!wishes.includes(wish)) wrong(`target_session_attrs must be one of ${wishes.join(', ')}`);
  for (const name of ['host', 'port', 'sslmode', 'ssl', 'target_session_attrs']) query.delete(name);
  return { url: url.href, hosts, wish };
};

const connect_ms = 3_000;
const keep_alive_ms = 5_000;
const tls_request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Asks the server for TLS. Exactly one byte may come back before the handshake. */
const secure = async (plain: net.Socket, { tls: mode, target }: Host, signal: AbortSignal) => {
  plain.write(tls_request);
  const [answer] = (await once(plain, 'data', { signal })) as [Buffer];
  if (answer.length !== 1) throw new Error('Postgres sent more than the answer about TLS');
  if (answer[0] !== 83) {
    if (mode === 'prefer') return plain;
    throw new Error('Postgres does not support TLS');
  }
  const { host = '' } = target as net.TcpNetConnectOpts;
  const socket = tls.connect({
    socket: plain,
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    rejectUnauthorized: mode === 'verify',
  });
  await once(socket, 'secureConnect', { signal });
  return socket;
};

const describeAbort = (error: unknown): unknown =>
  (error as Error).name === 'AbortError'
    ? new ConnectionError('CONNECT_TIMEOUT', 'Postgres did not accept the connection in time')
    : error;

export const openSocket = async (host: Host): Promise<net.Socket> => {
  const socket = net.connect(host.target);
  // A socket may report a second error, which must not end the process.
  socket.on('error', () => undefined);
  const signal = AbortSignal.timeout(connect_ms);
  try {
    await once(socket, 'connect', { signal });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keep_alive_ms);
    return host.tls === 'off' ? socket : await secure(socket, host, signal);
  } catch (error) {
    socket.destroy();
    throw describeAbort(error);
  }
};

/** The state that a server reports. */
export interface HostState {
  readonly standby: boolean;
  /** Always true for a standby. */
  readonly read_only: boolean;
}

const isWanted = (wish: Wish, { standby, read_only }: HostState): boolean => {
  if (wish === 'primary') return !standby;
  if (wish === 'read-write') return !read_only;
  if (wish === 'read-only') return read_only;
  return wish === 'any' || standby;
};

export interface HostFinder {
  /** Returns the host to connect to. If no host is in the wanted state, rejects with an outage. */
  find(): Promise<Host>;
  /** Forgets the host, because its state may have changed or another host may now suit better. */
  forget(): void;
}

/** If there are several hosts, asks all at once and remembers the first in the wanted state. */
export const makeHostFinder = (
  { hosts, wish }: Address,
  probe: (host: Host) => Promise<HostState>,
): HostFinder => {
  const [only] = hosts as [Host];
  const findAny = async (wanted: Wish): Promise<Host> => {
    const asked = hosts.map(async (host) => {
      const state = await probe(host);
      if (isWanted(wanted, state)) return host;
      const is = `${state.read_only ? 'read-only ' : ''}${state.standby ? 'standby' : 'primary'}`;
      throw new ConnectionError('NO_HOST', `is a ${is}`);
    });
    return Promise.any(asked).catch(({ errors }: AggregateError) => {
      // A wrong password is not an outage.
      const grave = errors.find((error) => !isOutage(error));
      const why = hosts.map(({ name }, n) => `${name}: ${errors[n].message || errors[n].code}`);
      throw grave ?? new ConnectionError('NO_HOST', `no ${wanted} server (${why.join('; ')})`);
    });
  };
  const search = (): Promise<Host> =>
    wish === 'prefer-standby' ? findAny('standby').catch(() => findAny('any')) : findAny(wish);
  let found: Promise<Host> | undefined;
  return {
    async find() {
      if (hosts.length === 1 && wish === 'any') return only;
      const mine = found ?? search();
      found = mine;
      mine.catch(() => {
        if (found === mine) found = undefined;
      });
      return mine;
    },
    forget() {
      found = undefined;
    },
  };
};
