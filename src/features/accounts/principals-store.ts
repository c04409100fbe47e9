import { timingSafeEqual } from 'node:crypto';
import type { Config } from '../../config.js';
import type { Db } from '../../db/client.js';
import type { AgentCaller, Caller } from '../../http/caller.js';
import type { Credentials } from '../../http/credentials.js';
import type { Deps } from '../../http/deps.js';
import { makeCache, makeLoader } from '../../kit/cache.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { waitUntilFloor } from '../../kit/service.js';
import { bearerToken, digestSecret, isWellFormedKey, looksLikeSession } from './rules.js';
import type { Sessions } from './sessions.js';

/**
 * Identifies callers: an agent by its key, a person by a token, or the admin. Agents are cached
 * until the table `revocations` shows that they changed. If this table was last read more than
 * `doubted_ms` ago, every call queries Postgres. Only linked agents are cached, so linking takes
 * effect immediately in all processes.
 */
export type Principals = ReturnType<typeof createPrincipals>;

/** A revoked key must stop working within a second. This leaves 100 ms to answer a call. */
const doubted_ms = 900;
/** Entries expire, because a very slow change may add a row to `revocations` that is never read. */
const life_ms = 300_000;
const max_entries = 50_000;
/** Rejecting a key takes at least this long, whether or not Postgres was queried. */
const refusal_floor_ms = 25;

const refuseKey = async (started_ms: number): Promise<Fault> => {
  await waitUntilFloor(started_ms, refusal_floor_ms);
  return refuse(common_faults.INVALID_API_KEY);
};

type PrincipalRow = Omit<AgentCaller, 'kind'> & { readonly suspended: boolean };

/** Finds agents by the hex digests of their keys. Unknown digests are missing from the map. */
const findPrincipals = async (db: Db, digests: readonly string[]) => {
  const rows = await db<(PrincipalRow & { readonly digest: string })[]>`
    select
      hex as digest, a.id, a.name, a.model, a.model_family, a.owner_id,
      a.suspended_at is not null as suspended
    from unnest(${digests as string[]}::text[]) as hex
    join agents a on a.key_digest = decode(hex, 'hex')`;
  return new Map(rows.map(({ digest, ...row }) => [digest, row]));
};

export const createPrincipals = ({ sql }: Pick<Deps, 'sql'>) => {
  const find = makeLoader(async (digests) => {
    const rows = await findPrincipals(sql, digests);
    return digests.map((digest) => rows.get(digest));
  });
  const cache = makeCache<AgentCaller | Fault>({
    most: max_entries,
    ttl_ms: life_ms,
    isKept: (caller) => !isFault(caller) && caller.owner_id !== null,
  });
  let confirmed_ms = Number.NEGATIVE_INFINITY;
  const read = async (digest: string): Promise<AgentCaller | Fault> => {
    const started_ms = performance.now();
    const row = await find(digest);
    if (row === undefined) return refuseKey(started_ms);
    const { suspended, ...agent } = row;
    return suspended ? refuse(common_faults.ACCOUNT_SUSPENDED) : { kind: 'agent', ...agent };
  };
  return {
    /**
     * If the key is cached, returns the caller directly. Otherwise returns a promise, which rejects
     * if Postgres is unavailable.
     */
    byKey(api_key: string): AgentCaller | Fault | Promise<AgentCaller | Fault> {
      if (!isWellFormedKey(api_key)) return refuseKey(performance.now());
      const digest = sha256(api_key, 'hex');
      const is_doubted = performance.now() - confirmed_ms > doubted_ms;
      return is_doubted ? read(digest) : cache.get(digest, () => read(digest));
    },
    /**
     * Removes the changed key digests from the cache, or all entries if `changed` is null. The
     * remaining entries were correct at `at_ms`.
     */
    confirm(changed: ReadonlySet<string> | null, at_ms: number): void {
      if (changed === null) cache.forgetWhere(() => true);
      for (const digest of changed ?? []) cache.forget(digest);
      confirmed_ms = at_ms;
    },
    /** Removes an agent from the cache of this process. Call it after committing the change. */
    forget: (agent_id: string) =>
      cache.forgetWhere(
        (_, caller) => caller === undefined || (!isFault(caller) && caller.id === agent_id),
      ),
  };
};

/** An agent key in the wrong header, or with other text before it. */
const key_as_token = /^(?:[\w-]+[ :=]+)?["']?sk_/i;
const key_with_more = /^(?:["'].*|[\w-]+[ :=]+["']?)sk_/i;
/** A session token in any form other than `Bearer TOKEN`. */
const token_otherwise = /^(?!bearer +hs_)(?:[\w-]+[ :=]+)?["']?hs_/i;

/**
 * Decodes a `Basic` header, as sent by `curl -u`, and returns its password, or its user name if
 * there is no password. Other headers are returned unchanged.
 */
const withoutBasic = (authorization: string): string => {
  const [, encoded] = /^basic +([\w+/=-]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return authorization;
  const [name = '', password = ''] = Buffer.from(encoded, 'base64').toString('latin1').split(':');
  return password === '' ? name : password;
};

const person_token = 'This is the token of a person. Send it as Authorization: Bearer.';

/**
 * If a session token is in the key header, rejects it after the same delay as any wrong key. The
 * message names the right header.
 */
const sayHeader = async (refused: Caller | Fault | Promise<Caller | Fault>) => {
  const who = await refused;
  return isFault(who) ? refuse(who.def, { message: person_token }) : who;
};

/** Returns a function that identifies a caller. If the key is cached, it returns synchronously. */
export const makeAuthenticate = (
  config: Config,
  { principals, sessions }: { readonly principals: Principals; readonly sessions: Sessions },
) => {
  const admin_digest = config.ADMIN_KEY === undefined ? null : digestSecret(config.ADMIN_KEY);
  return (credentials: Credentials): Caller | Fault | Promise<Caller | Fault> => {
    const { api_key, authorization, admin_key } = credentials;
    if (admin_key !== '') {
      const right = admin_digest !== null && timingSafeEqual(digestSecret(admin_key), admin_digest);
      return right ? { kind: 'admin' } : refuse(common_faults.INVALID_API_KEY);
    }
    if (api_key !== '') {
      if (key_with_more.test(api_key)) {
        const message =
          'Send the key alone in the X-API-Key header, without quotes or words before it.';
        return refuse(common_faults.INVALID_API_KEY, { message });
      }
      const who = principals.byKey(api_key);
      return looksLikeSession(api_key) ? sayHeader(who) : who;
    }
    const sent = withoutBasic(authorization);
    if (key_as_token.test(sent)) {
      const message =
        'This is the key of an agent. Send it alone in the X-API-Key header, without quotes.';
      return refuse(common_faults.INVALID_TOKEN, { message });
    }
    if (token_otherwise.test(sent)) {
      return refuse(common_faults.INVALID_TOKEN, { message: person_token });
    }
    const token = bearerToken(authorization);
    return token === '' ? refuse(common_faults.INVALID_TOKEN) : sessions.byToken(token);
  };
};

export interface PrincipalParts {
  readonly principals: Principals;
}
