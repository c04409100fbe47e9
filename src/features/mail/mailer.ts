import { createTransport } from 'nodemailer';
import type { Deps } from '../../http/deps.js';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import * as store from './store.js';

/**
 * Sends the queued e-mails to SMTP_URL. Each attempt has a time limit, and the pauses after
 * failures grow. Without SMTP_URL, each e-mail is logged once and stays unsent. The links in an
 * e-mail are credentials, so they are logged in development mode only.
 */

export const max_attempts = 8;
/** Time until the next attempt: 10 s at first, then four times as long each time, up to an hour. */
export const backoffMs = (attempts: number): number =>
  Math.min(10_000 * 4 ** (attempts - 1), 3_600_000);

/** Opens the SMTP client. Every phase of an SMTP conversation has a time limit. */
export const openSmtp = (url: string) =>
  createTransport({
    url,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 20_000,
    dnsTimeout: 10_000,
  });
type SmtpClient = Pick<ReturnType<typeof openSmtp>, 'sendMail'>;

/** True if the server refused the address itself. Trying again would change nothing. */
const isRefusal = (error: unknown): boolean => {
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  return code === 'EENVELOPE' && Number(responseCode) >= 500;
};

/** Gives up on an e-mail that was sealed with another SECRET_KEY and can never be opened. */
const giveUpSealed = async ({ sql, log, clock }: Deps, { id }: store.MailRow): Promise<void> => {
  log.error({ mail_id: id }, 'mail: given up, because SECRET_KEY does not open it');
  await store.endMail(sql, id, { failed_at: clock() });
};

const sendOne = async (deps: Deps, smtp: SmtpClient, mail: store.MailRow): Promise<void> => {
  const { sql, log, clock, config } = deps;
  const content = store.makeMailOpener(config)(mail);
  if (content === null) return giveUpSealed(deps, mail);
  const { id, attempts } = mail;
  try {
    await smtp.sendMail({
      from: config.MAIL_FROM,
      to: { name: '', address: mail.recipient },
      subject: mail.subject,
      text: content.text,
      messageId: `<${id}@prediction-forum>`,
      date: mail.created_at,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    await store.endMail(sql, id, { sent_at: clock() });
    log.info({ mail_id: id, attempt: attempts }, 'mail: sent');
  } catch (error) {
    const last = attempts >= max_attempts || isRefusal(error);
    log.warn({ ...describeError(error), mail_id: id, attempt: attempts, last }, 'mail: not sent');
    const now = clock();
    if (last) await store.endMail(sql, id, { failed_at: now });
    else await store.postponeMail(sql, id, new Date(now.getTime() + backoffMs(attempts)));
  }
};

/** Sends the e-mails that are due. Returns how many were claimed. */
export const sendDue = async (deps: Deps, smtp: SmtpClient): Promise<number> => {
  const mails = await store.claimMails(deps.sql, deps.clock());
  await Promise.all(mails.map((mail) => sendOne(deps, smtp, mail)));
  return mails.length;
};

/** Logs the queued e-mails, for use without an SMTP server. Returns how many there were. */
export const logDue = async (deps: Deps): Promise<number> => {
  const { sql, log, config } = deps;
  const mails = await store.claimForLog(sql);
  const open = store.makeMailOpener(config);
  for (const mail of mails) {
    const { id: mail_id, recipient: to, subject } = mail;
    const content = open(mail);
    if (content === null) await giveUpSealed(deps, mail);
    else if (config.NODE_ENV === 'development') {
      log.info({ mail_id, to, subject, links: content.links }, 'mail: not sent');
    } else log.warn({ mail_id, subject }, 'mail: not sent, because SMTP_URL is not set');
  }
  return mails.length;
};

/** Creates the mail service. Any number of processes may run it; one of them claims each e-mail. */
export const createMailer = (deps: Deps, every_ms = 1_000): Service => {
  const { SMTP_URL } = deps.config;
  const smtp = SMTP_URL === undefined ? undefined : openSmtp(SMTP_URL);
  const loop = makeLoop({
    name: 'mailer',
    log: deps.log,
    every_ms,
    async turn() {
      const taken = smtp === undefined ? await logDue(deps) : await sendDue(deps, smtp);
      if (taken > 0) return 'again';
      await store.pruneMails(deps.sql, deps.clock());
      return 'rest';
    },
  });
  return {
    ...loop,
    async stop() {
      await loop.stop();
      smtp?.close();
    },
  };
};
