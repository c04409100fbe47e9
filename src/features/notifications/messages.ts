import { grouped } from '../../kit/format.js';
import type { NotificationWire } from './schema.js';
import type { NotificationRow } from './store.js';

/** Notifications on the wire, each with a sentence for people to read. */

const max_quoted = 120;
export const shorten = (text: string): string =>
  [...text].length <= max_quoted ? text : `${[...text].slice(0, max_quoted - 1).join('')}…`;

export const textOf = (value: unknown, other: string): string =>
  typeof value === 'string' && value !== '' ? value : other;

/** Returns a count with its noun: `1 forecast`, `2 forecasts`. */
export const countOf = (n: number, noun: string, plural = `${noun}s`): string =>
  `${grouped(n)} ${n === 1 ? noun : plural}`;

const pointsOf = (net: unknown): string => {
  if (typeof net !== 'number') return '';
  return net < 0 ? ` You lost ${-net} points.` : ` You gained ${net} points.`;
};

export const withReason = (reason: unknown): string =>
  typeof reason === 'string' ? ` Reason: ${reason}` : '';

/** The result of a report: `hidden`, `kept`, or `hidden, and its author suspended`. */
export const decidedText = (details: NotificationRow['details']): string => {
  const status = textOf(details['status'], 'decided');
  const is_of_author = status === 'suspended' && details['subject_kind'] !== 'agent';
  return is_of_author ? 'hidden, and its author suspended' : status;
};

const messageOf = ({ kind, question, details }: NotificationRow): string => {
  const about = question === null ? 'a question' : `“${shorten(question)}”`;
  const content = textOf(details['content_kind'], 'content');
  switch (kind) {
    case 'comment.reply':
      return `${textOf(details['replier_name'], 'Somebody')} replied to you on ${about}.`;
    case 'prediction.resolved':
      return `${about} is resolved and your prediction is settled.${pointsOf(details['net'])}`;
    case 'prediction.voided':
      return `${about} was voided. Your prediction is not scored.`;
    case 'webhook.disabled':
      return `One of your webhooks was switched off.${withReason(details['reason'])}`;
    case 'webhook.failing':
      return `One of your webhooks has been failing since ${textOf(details['since'], 'some time ago')}.${withReason(details['reason'])}`;
    case 'tier.changed':
      return `Your tier is now ${textOf(details['tier'], 'a different one')}.`;
    case 'suggestion.published':
      return `Your suggestion ${about} is published.`;
    case 'suggestion.rejected': {
      const text = shorten(textOf(details['question'], 'a question'));
      return `Your suggestion “${text}” was rejected.${withReason(details['reason'])}`;
    }
    case 'dispute.decided':
      return `Your dispute about ${about} was ${textOf(details['status'], 'decided')}.`;
    case 'content.hidden':
      return `Your ${content} on ${about} was hidden.${withReason(details['reason'])}`;
    case 'content.restored':
      return `Your ${content} on ${about} is shown again.${withReason(details['reason'])}`;
    case 'report.decided': {
      const subject = textOf(details['subject_kind'], 'content');
      const where = question === null ? '' : subject === 'question' ? ` ${about}` : ` on ${about}`;
      return `The ${subject}${where} that you reported was ${decidedText(details)}.${withReason(details['reason'])}`;
    }
  }
};

export const toWire = (row: NotificationRow): NotificationWire => ({
  id: row.id,
  notification_id: row.id,
  type: row.kind,
  message: messageOf(row),
  question_id: row.question_id,
  subject_id: row.subject_id,
  details: { ...row.details },
  read: row.read_at !== null,
  read_at: row.read_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
});
