import { createTransport } from 'nodemailer';
import type { Deps } from '../../../kit/deps.js';
import { describeError } from '../../../kit/log.js';
import type { Service } from '../../../kit/service.js';
import { backoffMs, most_attempts } from './letter.js';
import {
  claimForLog,
  claimMails,
  createMailSealer,
  type MailRow,
  type MailSealer,
  markFailed,
  markRetry,
  markSent,
  pruneMails,
} from './store.js';

/**
 * Sends the queued mails. With SMTP_URL they go to that server, each attempt with a time limit and
 * a growing pause after a failure. Without it each is written to the log once and stays unsent; the
 * links are credentials, so only development mode writes them.
 */

const most_at_once = 10;
const prune_every_ms = 3_600_000;

export interface Post {
  send(mail: MailRow, text: string): Promise<void>;
  close(): void;
}

/** The SMTP client; every phase of a conversation is bounded. */
export const openPost = (smtp_url: string, from: string): Post => {
  const transport = createTransport({
    url: smtp_url,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 20_000,
    dnsTimeout: 10_000,
  });
  return {
    async send(mail, text) {
      await transport.sendMail({
        from,
        to: { name: '', address: mail.recipient },
        subject: mail.subject,
        text,
        messageId: `<${mail.id}@prediction-forum>`,
        date: mail.created_at,
        disableFileAccess: true,
        disableUrlAccess: true,
      });
    },
    close: () => transport.close(),
  };
};

/** The server refused the address itself: trying again changes nothing. */
const isRefusal = (error: unknown): boolean =>
  typeof error === 'object' &&
  error !== null &&
  (error as { code?: unknown }).code === 'EENVELOPE' &&
  Number((error as { responseCode?: unknown }).responseCode) >= 500;

/** Another SECRET_KEY sealed it: nobody here will ever read it. */
const giveUpSealed = async ({ sql, log, clock }: Deps, { id }: MailRow): Promise<void> => {
  log.error({ mail_id: id }, 'mail: one does not open with SECRET_KEY and is given up');
  await markFailed(sql, id, clock());
};

interface Sending {
  readonly post: Post;
  readonly sealer: MailSealer;
}

const sendOne = async (deps: Deps, { post, sealer }: Sending, mail: MailRow): Promise<void> => {
  const content = sealer.open(mail);
  if (content === null) return giveUpSealed(deps, mail);
  try {
    await post.send(mail, content.text);
    await markSent(deps.sql, mail.id, deps.clock());
    deps.log.info({ mail_id: mail.id, attempt: mail.attempts }, 'mail: sent');
  } catch (error) {
    const now = deps.clock();
    const last = mail.attempts >= most_attempts || isRefusal(error);
    deps.log.warn(
      { ...describeError(error), mail_id: mail.id, attempt: mail.attempts, last },
      'mail: not sent',
    );
    if (last) await markFailed(deps.sql, mail.id, now);
    else {
      await markRetry(deps.sql, mail.id, new Date(now.getTime() + backoffMs(mail.attempts)));
    }
  }
};

/** Sends what is due; returns how many mails were taken up. */
export const sendDue = async (deps: Deps, post: Post): Promise<number> => {
  const mails = await claimMails(deps.sql, deps.clock(), most_at_once);
  const sending = { post, sealer: createMailSealer(deps.config) };
  await Promise.all(mails.map((mail) => sendOne(deps, sending, mail)));
  return mails.length;
};

/** Writes what nobody can send to the log; returns how many mails that were. */
export const logDue = async (deps: Deps): Promise<number> => {
  const mails = await claimForLog(deps.sql, most_at_once);
  const revealing = deps.config.NODE_ENV === 'development';
  const sealer = createMailSealer(deps.config);
  for (const mail of mails) {
    const { id, recipient, subject } = mail;
    const content = sealer.open(mail);
    if (content === null) {
      await giveUpSealed(deps, mail);
      continue;
    }
    const { links } = content;
    if (revealing) deps.log.info({ mail_id: id, to: recipient, subject, links }, 'mail: not sent');
    else deps.log.warn({ mail_id: id, subject }, 'mail: SMTP_URL is not set, nothing was sent');
  }
  return mails.length;
};

export interface MailerOptions {
  /** How often the table is looked at when there was nothing to do. */
  readonly every_ms?: number;
}

/** The mail service; any number of processes may run one, each mail is taken by one of them. */
export const createMailer = (deps: Deps, { every_ms = 1_000 }: MailerOptions = {}): Service => {
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> = Promise.resolve();
  let stopped = true;
  let post: Post | undefined;
  let prune_at_ms = 0;

  const runRound = async (): Promise<void> => {
    let taken = 0;
    try {
      taken = post === undefined ? await logDue(deps) : await sendDue(deps, post);
      if (Date.now() >= prune_at_ms) {
        prune_at_ms = Date.now() + prune_every_ms;
        await pruneMails(deps.sql, deps.clock());
      }
    } catch (error) {
      deps.log.warn(describeError(error), 'mail: the store is away');
    }
    if (!stopped) plan(taken > 0 ? 0 : every_ms);
  };

  const plan = (ms: number): void => {
    timer = setTimeout(() => {
      round = runRound();
    }, ms);
  };

  return {
    name: 'mailer',
    async start() {
      const url = deps.config.SMTP_URL;
      if (url !== undefined) post = openPost(url, deps.config.MAIL_FROM);
      stopped = false;
      plan(0);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await round;
      post?.close();
    },
  };
};
