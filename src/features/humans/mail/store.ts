import type { Config } from '../../../config.js';
import { makeId } from '../../../kit/ids.js';
import type { Db, Sql, Tx } from '../../../kit/pg/client.js';
import { createSealer } from '../../../kit/sealing.js';
import { claim_ms, type Letter, letter_keep_ms, letter_life_ms } from './letter.js';

/**
 * Mails wait in their table, written in the transaction that causes them, so that a mail goes out
 * exactly when its cause was committed. A sender claims a mail by moving `next_at` past its own
 * time limit; a sender that dies leaves it to the next one, so a mail may arrive twice, with one
 * id. The links in a mail are credentials: what it says is sealed for as long as it waits.
 */

export interface MailRow {
  readonly id: string;
  readonly recipient: string;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly attempts: number;
  readonly created_at: Date;
}

type Content = Pick<Letter, 'text' | 'links'>;

/** Seals and opens what mails say; every process with the same SECRET_KEY can open it. */
export interface MailSealer {
  seal(id: string, content: Content): Buffer;
  /** Null when it was sealed with another SECRET_KEY. */
  open(mail: Pick<MailRow, 'id' | 'sealed'>): Content | null;
}

export const createMailSealer = ({ SECRET_KEY }: Pick<Config, 'SECRET_KEY'>): MailSealer => {
  if (SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  const sealer = createSealer(SECRET_KEY, 'prediction-forum mails 1');
  return {
    seal: (id, { text, links }) => sealer.seal(id, JSON.stringify({ text, links })),
    open({ id, sealed }) {
      const content = sealer.open(id, sealed);
      return content === null ? null : JSON.parse(content);
    },
  };
};

export interface Queueing {
  readonly config: Pick<Config, 'SECRET_KEY'>;
  readonly at: Date;
}

/** Queues a mail in the transaction that causes it. */
export const queueMail = async (tx: Tx, letter: Letter, by: Queueing): Promise<void> => {
  const id = makeId();
  const sealed = createMailSealer(by.config).seal(id, letter);
  await tx`
    insert into mails (id, recipient, subject, sealed, created_at, next_at)
    values (${id}, ${letter.to}, ${letter.subject}, ${sealed}, ${by.at}, ${by.at})`;
};

/** Claims due mails; those that are too old are given up on the way. */
export const claimMails = async (sql: Sql, now: Date, most: number): Promise<MailRow[]> => {
  const oldest = new Date(now.getTime() - letter_life_ms);
  await sql`
    update mails
    set failed_at = ${now}, sealed = null
    where sent_at is null and failed_at is null and created_at < ${oldest}`;
  return sql<MailRow[]>`
    update mails
    set attempts = attempts + 1, next_at = ${new Date(now.getTime() + claim_ms)}
    where id in (
      select id
      from mails
      where sent_at is null and failed_at is null and next_at <= ${now}
      order by next_at
      limit ${most}
      for update skip locked
    )
    returning id, recipient, subject, sealed, attempts, created_at`;
};

/** Mails that were never looked at, each given out once; they stay unsent. */
export const claimForLog = (sql: Sql, most: number): Promise<MailRow[]> =>
  sql<MailRow[]>`
    update mails
    set attempts = 1
    where id in (
      select id
      from mails
      where sent_at is null and failed_at is null and attempts = 0
      order by id
      limit ${most}
      for update skip locked
    )
    returning id, recipient, subject, sealed, attempts, created_at`;

/** A mail that went out keeps no text: its links are credentials. */
export const markSent = async (sql: Sql, id: string, now: Date): Promise<void> => {
  await sql`
    update mails
    set sent_at = ${now}, sealed = null
    where id = ${id}`;
};

export const markRetry = async (sql: Sql, id: string, next_at: Date): Promise<void> => {
  await sql`update mails set next_at = ${next_at} where id = ${id}`;
};

export const markFailed = async (sql: Sql, id: string, now: Date): Promise<void> => {
  await sql`
    update mails
    set failed_at = ${now}, sealed = null
    where id = ${id}`;
};

export const pruneMails = async (sql: Sql, now: Date): Promise<void> => {
  await sql`delete from mails where created_at < ${new Date(now.getTime() - letter_keep_ms)}`;
};

/** The newest mails that were not sent. */
export const readUnsent = (db: Db, most: number): Promise<MailRow[]> =>
  db<MailRow[]>`
    select id, recipient, subject, sealed, attempts, created_at
    from mails
    where sealed is not null
    order by id desc
    limit ${most}`;
