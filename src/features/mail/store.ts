import type { Config } from '../../config.js';
import type { Db, Fragment, Sql, Tx } from '../../db/client.js';
import { makeId } from '../../kit/ids.js';
import { createSealer } from '../../kit/sealing.js';

/**
 * Queued e-mails are rows. Each row is written in the transaction that causes the e-mail, so it is
 * sent only if that transaction commits. A sender claims an e-mail by moving `next_at` past its own
 * time limit. If the sender dies, another claims it later, so an e-mail may arrive twice, with the
 * same id. The links are credentials, so the text is sealed while it waits.
 */

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The links in the text, for the outbox page and for programs that read it. */
  readonly links: readonly string[];
  /** The text as HTML. */
  readonly html?: string;
  /** The address that ends mails of this kind with one click (RFC 8058). */
  readonly unsubscribe?: string;
}

/** The parts of an e-mail that are sealed while it waits. */
type Content = Pick<Mail, 'text' | 'links' | 'html' | 'unsubscribe'>;

export interface MailRow {
  readonly id: string;
  readonly recipient: string;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly attempts: number;
  readonly created_at: Date;
}

/** Older e-mails are no longer sent, because their links have expired or soon will. */
export const mail_life_ms = 24 * 3_600_000;
/** The same for digests and alerts, which are no longer news then. */
export const bulk_life_ms = 4 * 24 * 3_600_000;
/** How long a row is stored, for the outbox page. */
export const mail_keep_ms = 7 * 24 * 3_600_000;
/** How long one sender may hold an e-mail: longer than any time limit of the SMTP client. */
export const claim_ms = 120_000;

const sealerOf = ({ SECRET_KEY }: Pick<Config, 'SECRET_KEY'>) => {
  if (SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  return createSealer(SECRET_KEY, 'prediction-forum mails 1');
};

/** Makes a function that opens an e-mail; null if it was sealed with another SECRET_KEY. */
export const makeMailOpener = (config: Pick<Config, 'SECRET_KEY'>) => {
  const sealer = sealerOf(config);
  return ({ id, sealed }: MailRow): Content | null => {
    const content = sealer.open(id, sealed);
    return content === null ? null : JSON.parse(content);
  };
};

interface Queueing {
  readonly config: Pick<Config, 'SECRET_KEY'>;
  readonly at: Date;
  /** True for digests and alerts. They wait behind all other e-mails. */
  readonly is_bulk?: boolean;
}

export const queueMails = async (
  tx: Tx,
  mails: readonly Mail[],
  { config, at, is_bulk = false }: Queueing,
): Promise<void> => {
  if (mails.length === 0) return;
  const { seal } = sealerOf(config);
  const rows = mails.map(({ to, subject, ...content }) => {
    const id = makeId();
    return {
      id,
      recipient: to,
      subject,
      sealed: seal(id, JSON.stringify(content)).toString('hex'),
    };
  });
  await tx`
    insert into mails (id, recipient, subject, sealed, created_at, next_at, is_bulk)
    select m.id, m.recipient, m.subject, decode(m.sealed, 'hex'), ${at}, ${at}, ${is_bulk}
    from unnest(
      ${rows.map(({ id }) => id)}::uuid[],
      ${rows.map(({ recipient }) => recipient)}::text[],
      ${rows.map(({ subject }) => subject)}::text[],
      ${rows.map(({ sealed }) => sealed)}::text[]
    ) as m (id, recipient, subject, sealed)`;
};

export const queueMail = (tx: Tx, mail: Mail, queueing: Queueing): Promise<void> =>
  queueMails(tx, [mail], queueing);

/** Number of e-mails that one sender holds at a time. */
export const claimed_at_once = 10;

/** Updates and returns waiting e-mails that no other sender holds, earliest first. */
const claim = (sql: Sql, set: Fragment, due: Fragment) =>
  sql<MailRow[]>`
    update mails
    set ${set}
    where id in (
      select id
      from mails
      where sent_at is null and failed_at is null and ${due}
      order by is_bulk, next_at, id
      limit ${sql.unsafe(String(claimed_at_once))}
      for update skip locked
    )
    returning id, recipient, subject, sealed, attempts, created_at`;

/** SQL for whether a waiting e-mail is too old. */
const isOld = (db: Db, now: Date) => {
  const [oldest, oldest_bulk] = [mail_life_ms, bulk_life_ms].map(
    (life_ms) => new Date(now.getTime() - life_ms),
  ) as [Date, Date];
  return db`created_at < case when is_bulk then ${oldest_bulk}::timestamptz else ${oldest}::timestamptz end`;
};

export const claimMails = async (sql: Sql, now: Date): Promise<MailRow[]> => {
  const next_at = new Date(now.getTime() + claim_ms);
  return claim(
    sql,
    sql`attempts = attempts + 1, next_at = ${next_at}`,
    sql`next_at <= ${now} and not (${isOld(sql, now)})`,
  );
};

/** Gives up on waiting e-mails that are too old. */
export const expireMails = async (sql: Sql, now: Date): Promise<void> => {
  await sql`
    update mails
    set failed_at = ${now}, sealed = null
    where sent_at is null and failed_at is null and ${isOld(sql, now)}`;
};

/** Claims e-mails that have not been logged yet. Each one is returned once and stays unsent. */
export const claimForLog = (sql: Sql): Promise<MailRow[]> =>
  claim(sql, sql`attempts = 1`, sql`attempts = 0`);

/** Marks an e-mail as sent or failed and deletes its text, because its links are credentials. */
export const endMail = async (
  sql: Db,
  id: string,
  end: { readonly sent_at: Date } | { readonly failed_at: Date },
): Promise<void> => {
  await sql`update mails set ${sql({ ...end, sealed: null })} where id = ${id}`;
};

export const postponeMail = async (sql: Sql, id: string, next_at: Date): Promise<void> => {
  await sql`update mails set next_at = ${next_at} where id = ${id}`;
};

/** Gives up on the digests and alerts that wait for these addresses. */
export const dropBulkMails = async (
  tx: Tx,
  recipients: readonly string[],
  at: Date,
): Promise<void> => {
  await tx`
    update mails
    set failed_at = ${at}, sealed = null
    where recipient = any (${recipients as string[]}::text[])
      and is_bulk
      and sent_at is null
      and failed_at is null`;
};

export const deleteMailsTo = async (tx: Tx, recipient: string): Promise<void> => {
  await tx`delete from mails where recipient = ${recipient}`;
};

export const pruneMails = async (sql: Sql, now: Date): Promise<void> => {
  await sql`delete from mails where created_at < ${new Date(now.getTime() - mail_keep_ms)}`;
};

export const readUnsent = (db: Db, most: number): Promise<MailRow[]> =>
  db<MailRow[]>`
    select id, recipient, subject, sealed, attempts, created_at
    from mails
    where sealed is not null
    order by id desc
    limit ${most}`;
