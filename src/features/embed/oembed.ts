import { escapeHtml } from '../../web/page.js';
import type { QuestionRow } from '../questions/index.js';
import { embedUrl } from './page.js';
import { plainLine, themeOf, viewOf } from './rules.js';
import type { Oembed, Room, Theme, View } from './schema.js';

/** oEmbed 1.0 (oembed.com): what a page that is given an address puts into itself. */

/** What an address means: a question, and how it is to be shown. */
export interface Asked {
  readonly question_id: string;
  readonly view: View;
  readonly theme: Theme;
}

const places = /^\/(?:embed|questions|api\/questions)\/([0-9a-f-]{36})(?:\/(?:feed\.xml)?)?$/i;

/** Null for an address that is none of a question of this service. */
export const readAddress = (url: string, public_url: string): Asked | null => {
  if (!URL.canParse(url)) return null;
  const own = new URL(public_url);
  const { protocol, host, pathname, searchParams, username, password } = new URL(url);
  if (!/^https?:$/.test(protocol) || host !== own.host || username !== '' || password !== '') {
    return null;
  }
  const root = own.pathname.replace(/\/$/, '');
  if (!pathname.startsWith(root)) return null;
  const question_id = places.exec(pathname.slice(root.length))?.[1];
  if (question_id === undefined) return null;
  return {
    question_id: question_id.toLowerCase(),
    view: viewOf(searchParams.get('view') ?? undefined),
    theme: themeOf(searchParams.get('theme') ?? undefined),
  };
};

const usual_width = 600;
/** Heights at which nothing is cut off at 300 px and more; the page then says its own. */
const heights: Readonly<Record<View, number>> = { card: 460, chart: 400, compact: 150 };
const row_height = 38;

const heightOf = (view: View, { options }: QuestionRow): number =>
  heights[view] + (view === 'compact' ? 0 : Math.max(0, options.length - 4) * row_height);

const cache_seconds = 3_600;

export const makeOembed = (
  question: QuestionRow,
  { view, theme }: Asked,
  { public_url, room }: { readonly public_url: string; readonly room: Room },
): Oembed => {
  const { maxwidth = usual_width, maxheight = Number.POSITIVE_INFINITY } = room;
  const width = Math.min(usual_width, maxwidth);
  const height = Math.min(heightOf(view, question), maxheight);
  const title = plainLine(question.question);
  const src = escapeHtml(embedUrl(public_url, question.id, view, theme));
  return {
    version: '1.0',
    type: 'rich',
    provider_name: 'Prediction Forum',
    provider_url: public_url,
    title,
    cache_age: cache_seconds,
    html:
      `<iframe src="${src}" width="${width}" height="${height}" title="${escapeHtml(title)}" ` +
      'loading="lazy" ' +
      'sandbox="allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox" ' +
      'style="border:0;max-width:100%"></iframe>',
    width,
    height,
  };
};
