import { dayText, percentText, shortNumber } from '../../kit/format.js';
import type { InboxRow } from './inbox-store.js';
import { countOf, decidedText, shorten, textOf, withReason } from './messages.js';
import type { InboxItem } from './schema.js';

/** The items of an inbox on the wire, each with a sentence for people and the page about it. */

const figureText = (row: InboxRow, figure: number): string => {
  const { range_min, range_max, unit, question_type } = row;
  if (range_min === null || range_max === null) return percentText(figure);
  const value = range_min + (figure / 100) * (range_max - range_min);
  if (question_type === 'date') return dayText(new Date(value));
  return `${shortNumber(value, range_max - range_min)}${unit === null ? '' : ` ${unit}`}`;
};

const figuresIn = (value: unknown): readonly number[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'number') ? value : [];

/** Says how the headline moved: of the option that moved most, if there are options. */
const moveText = (row: InboxRow): string => {
  const before = figuresIn(row.details['before']);
  const after = figuresIn(row.details['after']);
  const sizes = after.map((one, n) => Math.abs(one - (before[n] ?? one)));
  const n = sizes.indexOf(Math.max(...sizes));
  if (n < 0) return 'moved';
  const option = (row.options ?? [])[n];
  const named = option === undefined ? '' : `: ${option}`;
  const [from = 0, to = 0] = [before[n], after[n]];
  return `moved${named} from ${figureText(row, from)} to ${figureText(row, to)}`;
};

/** The agents of a person that an item is about. */
const agentsText = ({ agent_name, details }: InboxRow): string =>
  agent_name ?? countOf(Number(details['agents'] ?? 0), 'of your agents', 'of your agents');

const netText = (row: InboxRow): string => {
  const { net } = row.details;
  if (typeof net !== 'number') return '';
  const total = row.agent_name === null ? ' in total' : '';
  const points = countOf(Math.abs(net), 'point');
  return ` ${agentsText(row)} ${net < 0 ? 'lost' : 'gained'} ${points}${total}.`;
};

const messageOf = (row: InboxRow): string => {
  const { kind, details } = row;
  const about = row.question === null ? 'A question' : `“${shorten(row.question)}”`;
  const agent = row.agent_name ?? 'Your agent';
  const content = textOf(details['content_kind'], 'content');
  switch (kind) {
    case 'question.moved':
      return `${about} ${moveText(row)}.`;
    case 'question.closing_soon':
      return `${about} closes within 24 hours.`;
    case 'question.resolved':
      return details['is_correction'] === true
        ? `The outcome of ${about} was corrected: ${textOf(details['outcome'], 'see the page')}.`
        : `${about} is resolved: ${textOf(details['outcome'], 'see the page')}.`;
    case 'question.voided':
      return `${about} was voided. Its forecasts are not scored.`;
    case 'question.matched':
      return `New question: ${about}`;
    case 'agent.forecast': {
      const count = Number(details['predictions'] ?? 1);
      if (count === 1) return `${agent} made a forecast on ${about}.`;
      const many =
        count >= 1_000 ? `at least ${countOf(count, 'forecast')}` : countOf(count, 'forecast');
      return `${agent} made ${many} today, the last on ${about}.`;
    }
    case 'family.day': {
      const [predictions, agents, resolved] = ['predictions', 'agents', 'resolved'].map((name) =>
        Number(details[name] ?? 0),
      ) as [number, number, number];
      const results = resolved === 0 ? '' : `, and ${countOf(resolved, 'result')}`;
      return `${textOf(details['family'], 'The family')}: ${countOf(predictions, 'forecast')} by ${countOf(agents, 'agent')} on ${textOf(details['day'], 'one day')}${results}.`;
    }
    case 'comment.reply':
      return `${textOf(details['replier_name'], 'Somebody')} replied to ${agent} on ${about}.`;
    case 'prediction.resolved':
      return `${about} is resolved.${netText(row)}`;
    case 'prediction.voided':
      return `${about} was voided. The forecasts of your agents are not scored.`;
    case 'webhook.disabled':
      return `A webhook of ${agent} was switched off.${withReason(details['reason'])}`;
    case 'webhook.failing':
      return `A webhook of ${agent} has been failing since ${textOf(details['since'], 'some time ago')}.${withReason(details['reason'])}`;
    case 'tier.changed':
      return `${agent} is now in the tier ${textOf(details['tier'], 'unknown')}.`;
    case 'suggestion.published':
      return `The question that ${agent} suggested is published: ${about}`;
    case 'suggestion.rejected': {
      const text = shorten(textOf(details['question'], 'a question'));
      return `“${text}”, which ${agent} suggested, was rejected.${withReason(details['reason'])}`;
    }
    case 'dispute.decided':
      return `The dispute of ${agent} about ${about} was ${textOf(details['status'], 'decided')}.`;
    case 'report.decided': {
      const subject = textOf(details['subject_kind'], 'content');
      const where =
        row.question === null ? '' : subject === 'question' ? ` ${about}` : ` on ${about}`;
      const by = row.agent_name === null ? 'you' : agent;
      return `The ${subject}${where} that ${by} reported was ${decidedText(details)}.${withReason(details['reason'])}`;
    }
    case 'content.hidden':
      return `A ${content} of ${agent} on ${about} was hidden.${withReason(details['reason'])}`;
    case 'content.restored':
      return `A ${content} of ${agent} on ${about} is shown again.${withReason(details['reason'])}`;
  }
};

const pathOf = ({ kind, question_id, agent_id, subject_id, details }: InboxRow): string => {
  if (kind === 'family.day') return `/families/${textOf(details['family'], 'other')}`;
  if (kind === 'agent.forecast' && agent_id !== null) return `/agents/${agent_id}`;
  if (kind === 'prediction.resolved' && subject_id !== null) return `/predictions/${subject_id}`;
  if (kind === 'comment.reply') return `/questions/${question_id}?tab=discussion`;
  if (kind.startsWith('webhook.')) return '/account/webhooks';
  if (question_id !== null) return `/questions/${question_id}`;
  return agent_id === null ? '/account/notifications' : `/account/agents/${agent_id}`;
};

export const showItem = (row: InboxRow): InboxItem => ({
  id: row.id,
  type: row.kind,
  message: messageOf(row),
  path: pathOf(row),
  question_id: row.question_id,
  agent_id: row.agent_id,
  subject_id: row.subject_id,
  details: { ...row.details },
  read: row.read_at !== null,
  read_at: row.read_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
});
