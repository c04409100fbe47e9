/** Atom (RFC 4287), written so that no text can become markup. */

export const atom_type = 'application/atom+xml';

export interface AtomEntry {
  readonly id: string;
  readonly title: string;
  /** ISO 8601. */
  readonly updated: string;
  /** The JSON that the entry is about. */
  readonly href: string;
  readonly categories: readonly string[];
  readonly content: string;
  /** The event itself, for programs: the offset is the cursor of the log. */
  readonly event: { readonly offset: number; readonly name: string; readonly data: unknown };
}

export interface AtomFeed {
  readonly id: string;
  readonly title: string;
  readonly subtitle: string;
  readonly updated: string;
  /** The address of the feed. */
  readonly href: string;
  readonly entries: readonly AtomEntry[];
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  // Otherwise a parser would make a line feed of it.
  '\r': '&#13;',
};

/** Whatever XML 1.0 has no place for, lone surrogates included. */
const not_xml = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** Text as the content of an element, or as the value of an attribute between double quotes. */
export const escapeXml = (text: string): string =>
  text
    .replaceAll(not_xml, '\u{fffd}')
    .replaceAll(/[&<>"'\r]/g, (character) => escapes[character] as string);

const element = (name: string, text: string): string => `<${name}>${escapeXml(text)}</${name}>`;

const link = (rel: string, type: string, href: string): string =>
  `<link rel="${rel}" type="${type}" href="${escapeXml(href)}"/>`;

const writeEntry = (entry: AtomEntry): string =>
  [
    '<entry>',
    element('id', entry.id),
    element('title', entry.title),
    element('updated', entry.updated),
    element('published', entry.updated),
    link('alternate', 'application/json', entry.href),
    ...entry.categories.map((term) => `<category term="${escapeXml(term)}"/>`),
    element('content', entry.content),
    element('log:offset', String(entry.event.offset)),
    element('log:event', entry.event.name),
    element('log:data', JSON.stringify(entry.event.data)),
    '</entry>',
  ].join('\n');

export const writeFeed = (feed: AtomFeed): string =>
  [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:log="urn:x-prediction-forum:log">',
    element('id', feed.id),
    element('title', feed.title),
    element('subtitle', feed.subtitle),
    element('updated', feed.updated),
    '<author><name>Prediction Forum</name></author>',
    link('self', atom_type, feed.href),
    ...feed.entries.map(writeEntry),
    '</feed>',
    '',
  ].join('\n');
