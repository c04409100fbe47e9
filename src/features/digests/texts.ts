import { escapeHtml } from '../../kit/html.js';
import type { Mail } from '../mail/index.js';
import type { InboxItem } from '../notifications/schema.js';
import type { Reader } from './store.js';

/** The texts of digests and alerts, as plain text and as HTML. */

const forum = 'Prediction Forum';

interface Line {
  readonly text: string;
  readonly path: string;
}

interface Section {
  readonly title: string;
  readonly lines: readonly Line[];
}

/** News of the whole forum, for the end of a digest. */
export interface ForumNews {
  readonly date: string;
  readonly movers: readonly {
    readonly question_id: string;
    readonly question: string;
    readonly option: string | null;
    readonly before: number;
    readonly after: number;
  }[];
  readonly closing_soon: {
    readonly questions: readonly { readonly question_id: string; readonly question: string }[];
  };
}

const sectionOf = ({ type }: InboxItem): string => {
  if (type === 'question.matched') return 'New questions for your searches';
  if (type === 'agent.forecast' || type === 'family.day') return 'Agents and families';
  return type.startsWith('question.') ? 'Questions you follow' : 'Your agents';
};
const section_order = [
  'Questions you follow',
  'New questions for your searches',
  'Your agents',
  'Agents and families',
];

export const sectionsOf = (items: readonly InboxItem[]): readonly Section[] =>
  section_order.flatMap((title) => {
    const own = items.filter((item) => sectionOf(item) === title);
    const lines = own.map(({ message, path }) => ({ text: message, path }));
    return lines.length === 0 ? [] : [{ title, lines }];
  });

const shown_of_forum = 3;

export const forumSections = ({ date, movers, closing_soon }: ForumNews): readonly Section[] => {
  const moved = movers
    .slice(0, shown_of_forum)
    .map((one) => ({
      text: `${one.question}${one.option === null ? '' : `, ${one.option}`}: ${one.before}% → ${one.after}%`,
      path: `/questions/${one.question_id}`,
    }));
  const closing = closing_soon.questions
    .slice(0, shown_of_forum)
    .map((one) => ({ text: one.question, path: `/questions/${one.question_id}` }));
  return [
    { title: `Largest moves on ${date}`, lines: moved },
    { title: 'Closing soon', lines: closing },
  ].filter(({ lines }) => lines.length > 0);
};

interface Parts {
  readonly reader: Reader;
  readonly subject: string;
  readonly sections: readonly Section[];
  readonly public_url: string;
  readonly unsubscribe: string;
  /** Says which e-mails the link ends. */
  readonly ends: string;
}

const plainText = (parts: Parts, settings: string): string => {
  const { reader, sections, public_url, unsubscribe, ends } = parts;
  const bodies = sections.map(({ title, lines }) =>
    [
      title.toUpperCase(),
      ...lines.map(({ text, path }) => `- ${text}\n  ${public_url}${path}`),
    ].join('\n'),
  );
  return [
    reader.name === null ? 'Hello,' : `Hello ${reader.name},`,
    ...bodies,
    `Change which e-mails you get: ${settings}\n${ends}: ${unsubscribe}`,
  ].join('\n\n');
};

const htmlText = (parts: Parts, settings: string): string => {
  const { reader, sections, public_url, unsubscribe, ends, subject } = parts;
  const link = (url: string, text: string): string =>
    `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`;
  const bodies = sections.map(({ title, lines }) => {
    const rows = lines.map(({ text, path }) => `<li>${link(public_url + path, text)}</li>`);
    return `<h2>${escapeHtml(title)}</h2>\n<ul>\n${rows.join('\n')}\n</ul>`;
  });
  const hello = reader.name === null ? 'Hello,' : `Hello ${escapeHtml(reader.name)},`;
  return [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head><body>`,
    `<p>${hello}</p>`,
    ...bodies,
    `<p><small>${link(settings, 'Change which e-mails you get')} · ${link(unsubscribe, ends)}</small></p>`,
    '</body></html>',
  ].join('\n');
};

const makeMail = (parts: Parts): Mail => {
  const { reader, subject, sections, public_url, unsubscribe } = parts;
  const settings = `${public_url}/account/settings#mail`;
  const paths = sections.flatMap(({ lines }) => lines.map(({ path }) => public_url + path));
  return {
    to: reader.email,
    subject,
    text: plainText(parts, settings),
    html: htmlText(parts, settings),
    links: [...new Set([...paths, settings, unsubscribe])],
    unsubscribe,
  };
};

type Given = Pick<Parts, 'reader' | 'public_url' | 'unsubscribe'> & {
  readonly items: readonly InboxItem[];
};

export const makeDigest = (
  given: Given,
  period: 'daily' | 'weekly',
  forum_news: readonly Section[],
): Mail =>
  makeMail({
    ...given,
    subject: `${forum}: your ${period} digest`,
    sections: [...sectionsOf(given.items), ...forum_news],
    ends: 'Unsubscribe from digests',
  });

/** Longest subject, in characters. Some clients cut longer ones. */
const max_subject = 140;

export const makeAlert = (given: Given): Mail => {
  const [first, ...others] = given.items;
  const text = first?.message ?? '';
  const message =
    [...text].length > max_subject ? `${[...text].slice(0, max_subject - 1).join('')}…` : text;
  return makeMail({
    ...given,
    subject: others.length === 0 ? message : `${forum}: ${given.items.length} updates`,
    sections: sectionsOf(given.items),
    ends: 'Unsubscribe from alerts',
  });
};
