import type { Config } from '../../config.js';
import type { Db, Fragment, Sql, Tx } from '../../db/client.js';
import { makeId } from '../../kit/ids.js';
import { createSealer } from '../../kit/sealing.js';

/**
 * Mails wait in their table, written in the transaction that causes them, so that a mail goes out
 * exactly when its cause was committed. A sender claims a mail by moving `next_at` past its own
 * time limit; a sender that dies leaves it to the next one, so a mail may arrive twice, with one
 * id. The links in a mail are credentials: its text is sealed for as long as it waits.
 */

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The links in the text, for the outbox page and for programs that read it. */
  readonly links: readonly string[];
}

export interface MailRow {
  readonly id: string;
  readonly recipient: string;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly attempts: number;
  readonly created_at: Date;
}

/** A mail this old is not sent any more: the link in it has expired or soon will. */
export const mail_life_ms = 24 * 3_600_000;
/** A row is kept this long, for the outbox page. */
export const mail_keep_ms = 7 * 24 * 3_600_000;
/** One sender may hold a mail this long; longer than every time limit of the SMTP client. */
export const claim_ms = 120_000;

const sealerOf = ({ SECRET_KEY }: Pick<Config, 'SECRET_KEY'>) => {
  if (SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  return createSealer(SECRET_KEY, 'prediction-forum mails 1');
};

/** Opens mails; null for one that was sealed with another SECRET_KEY. */
export const makeMailOpener = (config: Pick<Config, 'SECRET_KEY'>) => {
  const sealer = sealerOf(config);
  return ({ id, sealed }: MailRow): Pick<Mail, 'text' | 'links'> | null => {
    const content = sealer.open(id, sealed);
    return content === null ? null : JSON.parse(content);
  };
};

export const queueMail = async (
  tx: Tx,
  { to, subject, text, links }: Mail,
  { config, at }: { readonly config: Pick<Config, 'SECRET_KEY'>; readonly at: Date },
): Promise<void> => {
  const id = makeId();
  const sealed = sealerOf(config).seal(id, JSON.stringify({ text, links }));
  await tx`
    insert into mails (id, recipient, subject, sealed, created_at, next_at)
    values (${id}, ${to}, ${subject}, ${sealed}, ${at}, ${at})`;
};

/** Changes waiting mails that no other sender holds, the earliest first. */
const claim = (sql: Sql, set: Fragment, due: Fragment) =>
  sql<MailRow[]>`
    update mails
    set ${set}
    where id in (
      select id
      from mails
      where sent_at is null and failed_at is null and ${due}
      order by next_at, id
      limit 10
      for update skip locked
    )
    returning id, recipient, subject, sealed, attempts, created_at`;

export const claimMails = async (sql: Sql, now: Date): Promise<MailRow[]> => {
  const oldest = new Date(now.getTime() - mail_life_ms);
  await sql`
    update mails
    set failed_at = ${now}, sealed = null
    where sent_at is null and failed_at is null and created_at < ${oldest}`;
  const next_at = new Date(now.getTime() + claim_ms);
  return claim(sql, sql`attempts = attempts + 1, next_at = ${next_at}`, sql`next_at <= ${now}`);
};

/** Claims mails that were not logged yet. Each is returned once and stays unsent. */
export const claimForLog = (sql: Sql): Promise<MailRow[]> =>
  claim(sql, sql`attempts = 1`, sql`attempts = 0`);

/** A mail that went out or is given up keeps no text: its links are credentials. */
export const endMail = async (
  sql: Sql,
  id: string,
  end: { readonly sent_at: Date } | { readonly failed_at: Date },
): Promise<void> => {
  await sql`update mails set ${sql({ ...end, sealed: null })} where id = ${id}`;
};

export const postponeMail = async (sql: Sql, id: string, next_at: Date): Promise<void> => {
  await sql`update mails set next_at = ${next_at} where id = ${id}`;
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
