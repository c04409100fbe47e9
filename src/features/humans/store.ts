import type { Db, Tx } from '../../kit/pg/client.js';
import { address_life_ms, session_idle_ms, session_touch_ms, type TokenKind } from './rules.js';

/** People and their tokens. A token is stored as its SHA-256 digest only. */

export interface HumanRow {
  readonly id: string;
  readonly email: string;
  readonly email_key: string;
  readonly name: string | null;
  readonly password_hash: string;
  readonly email_verified_at: Date | null;
  readonly created_at: Date;
}

export interface NewHuman {
  readonly id: string;
  readonly email: string;
  readonly email_key: string;
  readonly name: string | null;
  readonly password_hash: string;
  readonly created_at: Date;
}

/** Adds a person; false when the address has an account already. */
export const insertHuman = async (tx: Tx, human: NewHuman): Promise<boolean> => {
  const rows = await tx`
    insert into humans (id, email, email_key, name, password_hash, created_at)
    values (
      ${human.id}, ${human.email}, ${human.email_key}, ${human.name}, ${human.password_hash},
      ${human.created_at}
    )
    on conflict (email_key) do nothing`;
  return rows.count === 1;
};

export const findHumanByEmail = async (
  db: Db,
  email_key: string,
): Promise<HumanRow | undefined> => {
  const [row] = await db<HumanRow[]>`
    select id, email, email_key, name, password_hash, email_verified_at, created_at
    from humans
    where email_key = ${email_key}`;
  return row;
};

export const findHuman = async (db: Db, id: string): Promise<HumanRow | undefined> => {
  const [row] = await db<HumanRow[]>`
    select id, email, email_key, name, password_hash, email_verified_at, created_at
    from humans
    where id = ${id}`;
  return row;
};

/** Locks the person's row, so that two changes of one account follow each other. */
export const lockHuman = async (tx: Tx, id: string): Promise<HumanRow | undefined> => {
  const [row] = await tx<HumanRow[]>`
    select id, email, email_key, name, password_hash, email_verified_at, created_at
    from humans
    where id = ${id}
    for update`;
  return row;
};

export const markVerified = async (tx: Tx, id: string, now: Date): Promise<void> => {
  await tx`
    update humans
    set email_verified_at = coalesce(email_verified_at, ${now})
    where id = ${id}`;
};

export const setPassword = async (tx: Tx, id: string, password_hash: string): Promise<void> => {
  await tx`update humans set password_hash = ${password_hash} where id = ${id}`;
};

export interface NewToken {
  readonly digest: Buffer;
  readonly human_id: string;
  readonly kind: TokenKind;
  readonly created_at: Date;
  readonly expires_at: Date;
}

export const insertToken = async (tx: Db, token: NewToken): Promise<void> => {
  await tx`
    insert into human_tokens (digest, human_id, kind, created_at, last_used_at, expires_at)
    values (
      ${token.digest}, ${token.human_id}, ${token.kind}, ${token.created_at},
      ${token.created_at}, ${token.expires_at}
    )`;
};

export interface TokenUse {
  readonly digest: Buffer;
  readonly kind: TokenKind;
  readonly now: Date;
}

/**
 * The person of a token that has not expired; the row is locked, so that one use follows another.
 */
export const findTokenOwner = async (tx: Tx, use: TokenUse): Promise<string | undefined> => {
  const [row] = await tx<{ human_id: string }[]>`
    select human_id
    from human_tokens
    where digest = ${use.digest} and kind = ${use.kind} and expires_at > ${use.now}
    for update`;
  return row?.human_id;
};

export interface SessionRow {
  readonly human_id: string;
  readonly email_key: string;
  readonly verified: boolean;
  readonly last_used_at: Date;
  readonly expires_at: Date;
}

/** The person behind a session that is neither expired nor idle for too long. */
export const findSession = async (
  db: Db,
  digest: Buffer,
  now: Date,
): Promise<SessionRow | undefined> => {
  const [row] = await db<SessionRow[]>`
    select h.id as human_id, h.email_key, h.email_verified_at is not null as verified,
      t.last_used_at, t.expires_at
    from human_tokens t
    join humans h on h.id = t.human_id
    where t.digest = ${digest} and t.kind = 'session' and t.expires_at > ${now}
      and t.last_used_at > ${new Date(now.getTime() - session_idle_ms)}`;
  return row;
};

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

/** Ends every session and every link of a person. */
export const deleteTokens = async (tx: Tx, human_id: string): Promise<void> => {
  await tx`delete from human_tokens where human_id = ${human_id}`;
};

/** Forgets a person's tokens that work no longer. */
export const pruneTokens = async (tx: Tx, human_id: string, now: Date): Promise<void> => {
  await tx`
    delete from human_tokens
    where human_id = ${human_id}
      and (
        expires_at <= ${now}
        or (kind = 'session' and last_used_at <= ${new Date(now.getTime() - session_idle_ms)})
      )`;
};

export const countTokensSince = async (
  tx: Tx,
  human_id: string,
  use: { readonly kind: TokenKind; readonly since: Date },
): Promise<number> => {
  const [row] = await tx<{ total: number }[]>`
    select count(*)::int as total
    from human_tokens
    where human_id = ${human_id} and kind = ${use.kind} and created_at > ${use.since}`;
  return row?.total ?? 0;
};

export interface KeptAddress {
  readonly human_id: string;
  readonly digest: Buffer;
  readonly now: Date;
}

/** Notes where a person was seen, and forgets where that was long ago. */
export const keepAddress = async (tx: Tx, { human_id, digest, now }: KeptAddress) => {
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
