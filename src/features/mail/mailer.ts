import { createTransport } from 'nodemailer';
import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import * as store from './store.js';

/**
 * Sends the queued e-mails to SMTP_URL. Each attempt has a time limit, and the pauses after
 * failures grow. An e-mail is tried until it is too old, unless the server refuses it for good.
 * Without SMTP_URL, each e-mail is logged once and stays unsent. The links in an e-mail are
 * credentials, so they are logged in development mode only.
 */

/** Time until the next attempt: 10 s at first, then four times as long each time, up to an hour. */
export const backoffMs = (attempts: number): number =>
  Math.min(10_000 * 4 ** Math.min(attempts - 1, 5), 3_600_000);

/** Opens the SMTP client. Every phase of an SMTP conversation has a time limit. */
export const openSmtp = (url: string) =>
  createTransport({
    url,
    pool: true,
    maxConnections: 5,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 20_000,
    dnsTimeout: 10_000,
  });
type SmtpClient = Pick<ReturnType<typeof openSmtp>, 'sendMail'>;

/** Called in the transaction that ends an e-mail, if the server refused its recipient for good. */
export type OnRefused = (
  tx: Tx,
  refused: { readonly recipient: string; readonly reason: string; readonly at: Date },
) => Promise<void>;

/**
 * Returns the server's reason if it refused the recipient or the message for good (5xx after RCPT
 * or DATA). Null after any other failure: the sender, the log-in or the connection is at fault.
 */
const refusalIn = (error: unknown): string | null => {
  const { command, response, responseCode } = error as Partial<Record<string, unknown>>;
  const is_final = Number(responseCode) >= 500 && (command === 'RCPT TO' || command === 'DATA');
  return is_final ? String(response ?? responseCode) : null;
};

/** True if the server answered, so that other e-mails can be sent meanwhile. */
const isAnswered = (error: unknown): boolean =>
  Number((error as { readonly responseCode?: unknown }).responseCode) >= 400 &&
  (error as { readonly code?: unknown }).code !== 'EAUTH';

/** Gives up on an e-mail that was sealed with another SECRET_KEY and can never be opened. */
const giveUpSealed = async ({ sql, log, clock }: Deps, { id }: store.MailRow): Promise<void> => {
  log.error({ mail_id: id }, 'mail: given up, because SECRET_KEY does not open it');
  await store.endMail(sql, id, { failed_at: clock() });
};

/** Mail clients show a button for the address, and send a POST there when it is pressed. */
const unsubscribeHeaders = (url: string | undefined) =>
  url === undefined
    ? {}
    : {
        'List-Unsubscribe': `<${url}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
        'Auto-Submitted': 'auto-generated',
        Precedence: 'bulk',
      };

interface Sending {
  readonly smtp: SmtpClient;
  readonly onRefused: OnRefused;
}

/** Sends one e-mail. Returns false if the server cannot be reached. */
const sendOne = async (deps: Deps, sending: Sending, mail: store.MailRow): Promise<boolean> => {
  const { sql, log, clock, config } = deps;
  const { smtp, onRefused } = sending;
  const content = store.makeMailOpener(config)(mail);
  if (content === null) {
    await giveUpSealed(deps, mail);
    return true;
  }
  const { id, attempts, recipient } = mail;
  try {
    await smtp.sendMail({
      from: config.MAIL_FROM,
      to: { name: '', address: recipient },
      subject: mail.subject,
      text: content.text,
      ...(content.html === undefined ? {} : { html: content.html }),
      headers: unsubscribeHeaders(content.unsubscribe),
      messageId: `<${id}@prediction-forum>`,
      date: mail.created_at,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  } catch (error) {
    const reason = refusalIn(error);
    const said = { ...describeError(error), mail_id: id, attempt: attempts };
    log.warn({ ...said, last: reason !== null }, 'mail: not sent');
    const at = clock();
    if (reason === null) {
      await store.postponeMail(sql, id, new Date(at.getTime() + backoffMs(attempts)));
      return isAnswered(error);
    }
    await sql.begin(async (tx) => {
      await store.endMail(tx, id, { failed_at: at });
      await onRefused(tx, { recipient, reason, at });
    });
    return true;
  }
  await store.endMail(sql, id, { sent_at: clock() });
  log.info({ mail_id: id, attempt: attempts }, 'mail: sent');
  return true;
};

/**
 * Sends the e-mails that are due. Returns how many were claimed, and whether the server could be
 * reached for all of them.
 */
export const sendDue = async (deps: Deps, sending: Sending) => {
  const mails = await store.claimMails(deps.sql, deps.clock());
  const reached = await Promise.all(mails.map((mail) => sendOne(deps, sending, mail)));
  return { claimed: mails.length, is_reached: reached.every(Boolean) };
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

const later_ms = 1_000;
/** Pruning reads the whole table. */
const prune_every_ms = 3_600_000;

/** Creates the mail service. Any number of processes may run it; one of them claims each e-mail. */
export const createMailer = (
  deps: Deps,
  { onRefused, every_ms = later_ms }: { onRefused: OnRefused; every_ms?: number },
): Service => {
  const { SMTP_URL } = deps.config;
  const smtp = SMTP_URL === undefined ? undefined : openSmtp(SMTP_URL);
  let pruned_ms = Number.NEGATIVE_INFINITY;
  const loop = makeLoop({
    name: 'mailer',
    log: deps.log,
    every_ms,
    async turn() {
      if (smtp === undefined) {
        if ((await logDue(deps)) > 0) return 'again';
      } else {
        const { claimed, is_reached } = await sendDue(deps, { smtp, onRefused });
        // If the server is down, the others wait too, instead of all being tried at once.
        if (claimed > 0) return is_reached ? 'again' : 'rest';
      }
      await store.expireMails(deps.sql, deps.clock());
      if (performance.now() - pruned_ms > prune_every_ms) {
        await store.pruneMails(deps.sql, deps.clock());
        pruned_ms = performance.now();
      }
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
