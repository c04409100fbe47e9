/**
 * The address of Redis, as REDIS_URL gives it:
 *
 *   redis://host:port/0, rediss://…, unix:PATH    one server
 *   redis://a:6379,b:6379,c:6379/?cluster         a Redis Cluster, found through any of these nodes
 *   redis://a:26379,b:26379/?sentinel=NAME        the master that these Sentinels know as NAME
 *
 * User and password come before the first host, percent-encoded if necessary. They are for Redis;
 * if the Sentinels need another password, add `&sentinel_password=`.
 */

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

interface Several {
  readonly hosts: readonly RedisHost[];
  readonly username?: string;
  readonly password?: string;
  readonly is_tls: boolean;
}

export type RedisAddress =
  /** In the form that ioredis reads. A plain path names a socket. */
  | { readonly kind: 'server'; readonly url: string }
  | ({ readonly kind: 'cluster' } & Several)
  | ({
      readonly kind: 'sentinel';
      readonly name: string;
      readonly db: number;
      readonly sentinel_password?: string;
    } & Several);

const parts_of = /^(rediss?):\/\/(?:([^@/?]*)@)?([^@/?]*)(?:\/([^/?]*))?(?:\?(.*))?$/;
const default_port = { cluster: 6_379, sentinel: 26_379 };

const readHost = (text: string, default_number: number): RedisHost => {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^:[\]\s]+)(?::(\d+))?$/i.exec(text) ?? [];
  const number = port === undefined ? default_number : Number(port);
  if (host === '' || number < 1 || number > 65_535) {
    throw new Error(`"${text}" is not a host or host:port`);
  }
  return { host: host.replace(/[[\]]/g, ''), port: number };
};

const readCredentials = (text: string | undefined): Pick<Several, 'username' | 'password'> => {
  if (text === undefined || text === '') return {};
  const at = text.indexOf(':');
  const given = at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  const [username = '', password = ''] = given.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      throw new Error('a % in the user or the password must be written as %25');
    }
  });
  return { ...(username && { username }), ...(password && { password }) };
};

const readDb = (path: string): number => {
  if (!/^\d{0,5}$/.test(path)) throw new Error(`"/${path}" is not a database number`);
  return Number(path);
};

/** Reads REDIS_URL. Throws a sentence for a person, which never contains the password. */
export const readRedisAddress = (text: string): RedisAddress => {
  const socket = text.replace(/^unix:/, '');
  if (socket.startsWith('/')) return { kind: 'server', url: socket };
  const parts = parts_of.exec(text);
  const [, scheme, credentials, hosts = '', path = '', members = ''] = parts ?? [];
  if (scheme === undefined) throw new Error('must be redis://HOST, rediss://HOST or unix:/PATH');
  const query = new URLSearchParams(members);
  const [is_cluster, name] = [query.has('cluster'), query.get('sentinel')];
  if (!is_cluster && name === null) {
    if (!hosts.includes(',')) return { kind: 'server', url: text };
    throw new Error('several hosts need ?cluster or ?sentinel=NAME at the end');
  }
  if (is_cluster && name !== null) throw new Error('use ?cluster or ?sentinel=, not both');
  if (name === '')
    throw new Error('sentinel= needs the name that the Sentinels use for the master');
  const known = is_cluster ? ['cluster'] : ['sentinel', 'sentinel_password'];
  const unknown = [...query.keys()].find((member) => !known.includes(member));
  if (unknown !== undefined) throw new Error(`"${unknown}" is not a known option`);
  const port = default_port[is_cluster ? 'cluster' : 'sentinel'];
  const several: Several = {
    hosts: hosts.split(',').map((host) => readHost(host, port)),
    ...readCredentials(credentials),
    is_tls: scheme === 'rediss',
  };
  const db = readDb(path);
  if (name === null) {
    if (db !== 0) throw new Error('a cluster has only database 0');
    return { kind: 'cluster', ...several };
  }
  const sentinel_password = query.get('sentinel_password');
  const secret = sentinel_password === null ? {} : { sentinel_password };
  return { kind: 'sentinel', name, db, ...secret, ...several };
};
