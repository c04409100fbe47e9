import type { Db, Fragment, Tx } from '../../db/client.js';
import { firstRow, readTotal } from '../../db/rows.js';
import type { HumanCaller } from '../../http/caller.js';
import {
  address_life_ms,
  session_idle_ms,
  session_touch_ms,
  type TokenKind,
  token_life_ms,
} from './rules.js';

/** Queries for people and their tokens. Only the SHA-256 digest of a token is stored. */

export interface HumanRow {
  readonly id: string;
  readonly email: string;
  readonly email_key: string;
  readonly name: string | null;
  readonly password_hash: string;
  readonly email_verified_at: Date | null;
  readonly created_at: Date;
}

export const insertHuman = async (
  tx: Tx,
  human: Omit<HumanRow, 'email_verified_at'>,
): Promise<boolean> => {
  const rows = await tx`insert into humans ${tx(human)} on conflict (email_key) do nothing`;
  return rows.count === 1;
};

const readHuman = (db: Db, condition: Fragment) =>
  firstRow(db<HumanRow[]>`
    select id, email, email_key, name, password_hash, email_verified_at, created_at
    from humans
    where ${condition}`);

export const findHumanByEmail = (db: Db, email_key: string) =>
  readHuman(db, db`email_key = ${email_key}`);

export const findHuman = (db: Db, id: string) => readHuman(db, db`id = ${id}`);

/** Returns true if the person exists. The person cannot be deleted until the transaction ends. */
export const holdHuman = async (tx: Tx, id: string): Promise<boolean> =>
  (await tx`select 1 from humans where id = ${id} for key share`).length > 0;

/** Locks the person's row, so that two changes of one account do not overlap. */
export const lockHuman = (tx: Tx, id: string) => readHuman(tx, tx`id = ${id} for update`);

/**
 * The owner of all imported agents. It is not a real person: its address is not an e-mail address
 * and its password is not a hash, so nobody can sign up or log in as this owner.
 */
export const import_owner_id = '00000000-0000-7000-8000-000000000001';

export const ensureImportOwner = async (db: Db): Promise<string> => {
  await db`
    insert into humans (id, email, email_key, name, password_hash, email_verified_at)
    values (${import_owner_id}, '(imports)', '(imports)', 'Imports', '!', now())
    on conflict do nothing`;
  return import_owner_id;
};

/** Marks the address of a person as verified. If a hash is given, it also sets the password. */
export const markVerified = async (
  tx: Tx,
  id: string,
  { now, password_hash }: { readonly now: Date; readonly password_hash?: string },
): Promise<void> => {
  await tx`
    update humans
    set
      email_verified_at = coalesce(email_verified_at, ${now}),
      password_hash = coalesce(${password_hash ?? null}, password_hash)
    where id = ${id}`;
};

export interface TokenUse {
  readonly digest: Buffer;
  readonly kind: TokenKind;
  readonly now: Date;
}

/** Stores a token and returns the time when it expires. */
export const insertToken = async (
  tx: Db,
  human_id: string,
  { digest, kind, now }: TokenUse,
): Promise<Date> => {
  const expires_at = new Date(now.getTime() + token_life_ms[kind]);
  await tx`
    insert into human_tokens (digest, human_id, kind, created_at, last_used_at, expires_at)
    values (${digest}, ${human_id}, ${kind}, ${now}, ${now}, ${expires_at})`;
  return expires_at;
};

/** Finds the person of a valid token. Locks the token, so that two uses of it cannot overlap. */
export const findTokenOwner = async (tx: Tx, use: TokenUse): Promise<string | undefined> => {
  const [row] = await tx<{ human_id: string }[]>`
    select human_id
    from human_tokens
    where digest = ${use.digest} and kind = ${use.kind} and expires_at > ${use.now}
    for update`;
  return row?.human_id;
};

/** Finds the person of a session that has neither expired nor been idle for too long. */
export const findSession = (db: Db, digest: Buffer, now: Date) =>
  firstRow(db<(Omit<HumanCaller, 'kind'> & { email_key: string; last_used_at: Date })[]>`
    select h.id, h.email_key, h.email_verified_at is not null as email_verified,
      t.last_used_at, t.expires_at
    from human_tokens t
    join humans h on h.id = t.human_id
    where t.digest = ${digest} and t.kind = 'session' and t.expires_at > ${now}
      and t.last_used_at > ${new Date(now.getTime() - session_idle_ms)}`);

export const touchSession = async (db: Db, digest: Buffer, now: Date): Promise<void> => {
  await db`
    update human_tokens
    set last_used_at = ${now}
    where digest = ${digest}
      and last_used_at <= ${new Date(now.getTime() - session_touch_ms)}`;
};

export const deleteToken = async (db: Db, digest: Buffer): Promise<void> => {
  await db`delete from human_tokens where digest = ${digest}`;
};

export const deleteTokens = async (tx: Tx, human_id: string): Promise<void> => {
  await tx`delete from human_tokens where human_id = ${human_id}`;
};

export const pruneTokens = async (tx: Tx, human_id: string, now: Date): Promise<void> => {
  await tx`
    delete from human_tokens
    where human_id = ${human_id}
      and (
        expires_at <= ${now}
        or (kind = 'session' and last_used_at <= ${new Date(now.getTime() - session_idle_ms)})
      )`;
};

export const countTokens = (tx: Tx, human_id: string, kind: TokenKind, since: Date) =>
  readTotal(tx<{ total: number }[]>`
    select count(*)::int as total
    from human_tokens
    where human_id = ${human_id} and kind = ${kind} and created_at > ${since}`);

export interface SessionRow {
  /** The first half of the digest. It identifies the session but gives no access. */
  readonly id: string;
  readonly digest: Buffer;
  readonly created_at: Date;
  readonly last_used_at: Date;
  readonly expires_at: Date;
}

const max_sessions = 100;

/** Lists the valid sessions of a person, most recently used first. */
export const listSessions = (db: Db, human_id: string, now: Date) =>
  db<SessionRow[]>`
    select substr(encode(digest, 'hex'), 1, 32)::uuid as id, digest, created_at, last_used_at,
      expires_at
    from human_tokens
    where human_id = ${human_id} and kind = 'session' and expires_at > ${now}
      and last_used_at > ${new Date(now.getTime() - session_idle_ms)}
    order by last_used_at desc, digest
    limit ${max_sessions}`;

/** Ends session `id`, or all except `but` (a digest). Returns the digests of the ended sessions. */
export const deleteSessions = async (
  tx: Tx,
  human_id: string,
  which: { readonly id: string } | { readonly but: Buffer },
): Promise<Buffer[]> => {
  const rows = await tx<{ digest: Buffer }[]>`
    delete from human_tokens
    where human_id = ${human_id}
      and kind = 'session'
      and ${
        'id' in which
          ? tx`substr(encode(digest, 'hex'), 1, 32)::uuid = ${which.id}::uuid`
          : tx`digest <> ${which.but}`
      }
    returning digest`;
  return rows.map(({ digest }) => digest);
};

/** Invalidates all password reset links that were mailed to a person. */
export const deleteResets = async (tx: Tx, human_id: string): Promise<void> => {
  await tx`delete from human_tokens where human_id = ${human_id} and kind = 'reset'`;
};

export const setPassword = async (tx: Tx, id: string, password_hash: string): Promise<void> => {
  await tx`update humans set password_hash = ${password_hash} where id = ${id}`;
};

export const renameHuman = async (tx: Tx, id: string, name: string | null): Promise<void> => {
  await tx`update humans set name = ${name} where id = ${id}`;
};

/** Deletes a person with all sessions and known addresses. All agents must be unlinked first. */
export const deleteHuman = async (tx: Tx, id: string): Promise<void> => {
  await tx`delete from humans where id = ${id}`;
};

/** Remembers a network address of a person. Deletes addresses unused for `address_life_ms`. */
export const rememberAddress = async (tx: Tx, human_id: string, digest: Buffer, now: Date) => {
  await tx`
    insert into known_addresses (human_id, digest, last_used_at)
    values (${human_id}, ${digest}, ${now})
    on conflict (human_id, digest) do update set last_used_at = excluded.last_used_at`;
  await tx`
    delete from known_addresses
    where human_id = ${human_id}
      and last_used_at < ${new Date(now.getTime() - address_life_ms)}`;
};

export const isKnownAddress = async (
  db: Db,
  human_id: string,
  digest: Buffer,
): Promise<boolean> => {
  const rows = await db`
    select from known_addresses where human_id = ${human_id} and digest = ${digest}`;
  return rows.count === 1;
};
