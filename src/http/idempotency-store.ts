import type { Db } from '../db/client.js';

/** Claims and stored answers in Postgres. All times are from the clock of the database. */

export interface NewClaim {
  readonly scope: string;
  readonly key: string;
  readonly route: string;
  readonly digest: Buffer;
  /** Digest of the credentials that the call makes invalid; null for nearly every call. */
  readonly credential: Buffer | null;
  readonly lease_id: string;
}

export interface KnownRow extends Pick<NewClaim, 'scope' | 'key' | 'digest' | 'lease_id'> {
  readonly state: 'running' | 'done';
  readonly answer: Uint8Array | null;
}

/** How long an answer is stored. */
const kept_hours = 24;

/**
 * Claims every free key: a new one, one older than a day, or one that the same request holds with
 * an expired lease. Returns the rows of all other keys. The same claim may be sent again.
 *
 * This does not wait until the commit is on disk. If a crash of Postgres loses a claim, the call
 * had no effect yet: the commit of its effect would have written the claim to disk too.
 */
export const claimAll = async (
  db: Db,
  claims: readonly NewClaim[],
  lease_ms: number,
): Promise<{ readonly leases: ReadonlySet<string>; readonly known: readonly KnownRow[] }> => {
  const rows = claims.map((claim) => ({
    ...claim,
    digest: claim.digest.toString('hex'),
    credential: claim.credential?.toString('hex'),
  }));
  const claimed = await db<{ lease_id: string }[]>`
    insert into idempotency as i
      (scope, key, route, digest, state, lease_id, lease_until, credential, created_at)
    select
      d.scope, d.key, d.route, decode(d.digest, 'hex'), 'running', d.lease_id,
      now() + ${lease_ms}::integer * interval '1 millisecond', decode(d.credential, 'hex'), now()
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        scope text, key text, route text, digest text, lease_id uuid, credential text
      ),
      (select set_config('synchronous_commit', 'off', true)) as unwaited
    order by d.scope, d.key
    on conflict (scope, key) do update
    set
      route = excluded.route, digest = excluded.digest, state = 'running', answer = null,
      lease_id = excluded.lease_id, lease_until = excluded.lease_until,
      credential = excluded.credential, created_at = excluded.created_at
    where i.lease_id = excluded.lease_id
      or i.created_at <= now() - ${kept_hours}::integer * interval '1 hour'
      or (i.state = 'running' and i.lease_until <= now() and i.digest = excluded.digest)
    returning i.lease_id`;
  const leases = new Set(claimed.map((row) => row.lease_id));
  const others = claims.filter(({ lease_id }) => !leases.has(lease_id));
  return { leases, known: others.length === 0 ? [] : await findAll(db, others) };
};

const findAll = (
  db: Db,
  claims: readonly Pick<NewClaim, 'scope' | 'key'>[],
): Promise<KnownRow[]> => db<KnownRow[]>`
  select i.scope, i.key, i.digest, i.state, i.lease_id, i.answer
  from idempotency i
  join unnest(
    ${claims.map(({ scope }) => scope)}::text[],
    ${claims.map(({ key }) => key)}::text[]
  ) as d (scope, key) on d.scope = i.scope and d.key = i.key`;

/** Returns the answer to a call that made its own credentials invalid, up to `within_ms` later. */
export const findByCredential = async (
  db: Db,
  claim: NewClaim,
  within_ms: number,
): Promise<KnownRow | undefined> => {
  const [row] = await db<KnownRow[]>`
    select scope, key, digest, state, lease_id, answer
    from idempotency
    where credential = ${claim.credential} and key = ${claim.key} and route = ${claim.route}
      and digest = ${claim.digest} and state = 'done'
      and created_at > now() - ${within_ms}::integer * interval '1 millisecond'`;
  return row;
};

/** Identifies a claim that is held. */
type Held = Pick<NewClaim, 'scope' | 'key' | 'lease_id'>;

/**
 * Stores answers under their claims. Returns the leases that were still held. If `replaces` is
 * false, an answer that is already stored stays.
 */
export const storeAnswers = async (
  db: Db,
  rows: readonly (Held & { readonly answer: Buffer })[],
  replaces: boolean,
): Promise<ReadonlySet<string>> => {
  const stored = await db<{ lease_id: string }[]>`
    update idempotency i
    set state = 'done', answer = decode(d.answer, 'hex')
    from unnest(
      ${rows.map((row) => row.scope)}::text[],
      ${rows.map((row) => row.key)}::text[],
      ${rows.map((row) => row.lease_id)}::uuid[],
      ${rows.map((row) => row.answer.toString('hex'))}::text[]
    ) as d (scope, key, lease_id, answer)
    where i.scope = d.scope and i.key = d.key and i.lease_id = d.lease_id
      and (${replaces} or i.state = 'running')
    returning i.lease_id`;
  return new Set(stored.map((row) => row.lease_id));
};

/** Frees a key whose call had no effect. Does nothing once its answer is stored. */
export const deleteClaim = async (db: Db, claim: Held): Promise<void> => {
  await db`
    delete from idempotency
    where scope = ${claim.scope} and key = ${claim.key} and lease_id = ${claim.lease_id}
      and state = 'running'`;
};

/** Deletes at most `most` rows older than a day; returns how many. Concurrent calls are safe. */
export const deleteOld = async (db: Db, most: number): Promise<number> => {
  const gone = await db`
    delete from idempotency
    where (scope, key) in (
      select scope, key
      from idempotency
      where created_at <= now() - ${kept_hours}::integer * interval '1 hour'
      order by created_at
      limit ${most}
      for update skip locked
    )`;
  return gone.count;
};
