import type { Db, Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { Alert } from '../notifications/schema.js';
import type { MailList } from './rules.js';
import type { DigestChoice } from './schema.js';

/** Which digests and alerts people want, in Postgres, and whose turn it is. */

export interface SettingsRow {
  readonly digest: DigestChoice;
  readonly alerts: readonly Alert[];
  readonly move_points: number;
  readonly next_digest_at: Date | null;
  readonly stopped_at: Date | null;
  readonly stopped_reason: string | null;
}

const columns = (db: Db) =>
  db`digest, alerts, move_points, next_digest_at, stopped_at, stopped_reason`;

export const readSettings = (db: Db, human_id: string) =>
  firstRow(db<SettingsRow[]>`
    select ${columns(db)} from mail_settings where human_id = ${human_id}`);

/** Like `readSettings`, and locks them, so that two changes do not overlap. */
export const lockSettings = (tx: Tx, human_id: string) =>
  firstRow(tx<SettingsRow[]>`
    select ${columns(tx)} from mail_settings where human_id = ${human_id} for update`);

/** Stores the settings of a person. Items that wait for an e-mail stay. */
export const putSettings = async (
  tx: Tx,
  human_id: string,
  row: SettingsRow,
): Promise<SettingsRow | undefined> => {
  const { digest, alerts, move_points, next_digest_at, stopped_at, stopped_reason } = row;
  return firstRow(tx<SettingsRow[]>`
    insert into mail_settings (
      human_id, digest, alerts, move_points, next_digest_at, stopped_at, stopped_reason
    )
    select
      id, ${digest}, ${alerts as string[]}::text[], ${move_points}, ${next_digest_at}::timestamptz,
      ${stopped_at}::timestamptz, ${stopped_reason}
    from humans
    where id = ${human_id}
    on conflict (human_id) do update
      set
        digested_until = case when mail_settings.digest = 'off' then null else mail_settings.digested_until end,
        digest = excluded.digest,
        alerts = excluded.alerts,
        move_points = excluded.move_points,
        next_digest_at = excluded.next_digest_at,
        stopped_at = excluded.stopped_at,
        stopped_reason = excluded.stopped_reason
    returning ${columns(tx)}`);
};

/** Stores the first settings of a person. Later settings stay. */
export const beginSettings = async (
  tx: Tx,
  human_id: string,
  first: Pick<SettingsRow, 'digest' | 'move_points' | 'next_digest_at'>,
): Promise<void> => {
  const { digest, move_points, next_digest_at } = first;
  await tx`
    insert into mail_settings (human_id, digest, move_points, next_digest_at)
    select id, ${digest}, ${move_points}, ${next_digest_at}::timestamptz
    from humans
    where id = ${human_id}
    on conflict do nothing`;
};

/**
 * Ends digests, alerts or both. Returns the address of the person if neither is left, else
 * undefined.
 */
export const endLists = async (
  tx: Tx,
  human_id: string,
  lists: readonly MailList[],
): Promise<string | undefined> => {
  const ends = (list: MailList) => lists.includes(list);
  const row = await firstRow(tx<{ email: string; is_last: boolean }[]>`
    update mail_settings s
    set
      digest = case when ${ends('digest')} then 'off' else digest end,
      next_digest_at = case when ${ends('digest')} then null else next_digest_at end,
      alerts = case when ${ends('alerts')} then '{}' else alerts end
    from humans h
    where s.human_id = ${human_id} and h.id = s.human_id
    returning h.email, s.digest = 'off' and s.alerts = '{}' as is_last`);
  return row?.is_last === true ? row.email : undefined;
};

export interface Refused {
  readonly address: string;
  readonly reason: string;
}

/**
 * Stops digests and alerts to refused addresses, normalised like `email_key`. Returns the
 * addresses that were not stopped before.
 */
export const stopMails = async (
  tx: Tx,
  refused: readonly Refused[],
  at: Date,
): Promise<readonly string[]> => {
  const rows = await tx<{ email: string }[]>`
    update mail_settings s
    set stopped_at = ${at}, stopped_reason = left(r.reason, 500)
    from humans h
    join json_to_recordset(${JSON.stringify(refused)}::text::json) as r (address text, reason text)
      on h.email_key = r.address
    where s.human_id = h.id and s.stopped_at is null
    returning h.email`;
  return rows.map(({ email }) => email);
};

export interface Reader {
  readonly id: string;
  readonly email: string;
  readonly name: string | null;
  /** False if nothing may be sent to the address. */
  readonly can_get: boolean;
}

export interface DueDigest extends Reader {
  readonly digest: DigestChoice;
  /** The last digest covered the items up to this time; null if there was no digest yet. */
  readonly digested_until: Date | null;
}

/** Locks the people whose digest is due. Other timers skip them until the transaction ends. */
export const takeDueDigests = (tx: Tx, now: Date, most: number) => tx<DueDigest[]>`
  select
    h.id, h.email, h.name, h.email_verified_at is not null as can_get, s.digest, s.digested_until
  from mail_settings s
  join humans h on h.id = s.human_id
  where s.next_digest_at <= ${now} and s.stopped_at is null
  order by s.next_digest_at, s.human_id
  limit ${most}
  for update of s skip locked`;

interface Digested {
  readonly id: string;
  readonly next_digest_at: Date | null;
}

/** Notes that people had their digests, which covered the items up to a time. */
export const noteDigests = async (
  tx: Tx,
  digested: readonly Digested[],
  until: Date,
): Promise<void> => {
  await tx`
    update mail_settings s
    set next_digest_at = d.next_digest_at, digested_until = ${until}
    from json_to_recordset(${JSON.stringify(digested)}::text::json) as d (
      id uuid, next_digest_at timestamptz
    )
    where s.human_id = d.id`;
};

/** Locks people with items that are due as alerts, unless they got an alert since `before`. */
export const takeDueAlerts = (
  tx: Tx,
  { before, most }: { readonly before: Date; readonly most: number },
) => tx<Reader[]>`
  select
    h.id, h.email, h.name,
    h.email_verified_at is not null and s.stopped_at is null and s.alerts <> '{}' as can_get
  from mail_settings s
  join humans h on h.id = s.human_id
  where s.human_id in (select reader_id from inbox_items where mail_due)
    and (s.alerted_at is null or s.alerted_at <= ${before})
  order by s.human_id
  limit ${most}
  for update of s skip locked`;

export const noteAlerts = async (tx: Tx, ids: readonly string[], at: Date): Promise<void> => {
  await tx`
    update mail_settings set alerted_at = ${at} where human_id = any (${ids as string[]}::uuid[])`;
};
