import { type Static, Type } from '@sinclair/typebox';
import { anonymous } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { type Answer, type Reply, reply, replyRaw, routeFor } from '../../http/route.js';
import { isFault, refuse } from '../../kit/fault.js';
import { escapeHtml } from '../../kit/html.js';
import { isId } from '../../kit/ids.js';
import { heightOf as pictureHeightOf } from '../../kit/svg-chart.js';
import type { ConsensusParts, HistoryParts } from '../consensus/index.js';
import { isNumber } from '../consensus/numbers.js';
import { type LeaderboardParts, readLeaderboard } from '../leaderboards/index.js';
import { findVisible, type QuestionParts, type QuestionRow } from '../questions/index.js';
import { lists_tag, question_faults } from '../questions/schema.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import { drawCourse } from './draw.js';
import {
  boardHeight,
  boardOf,
  boardUrl,
  renderBoard,
  requestOf,
  titleOf,
} from './leaderboard-widget.js';
import {
  embedUrl,
  max_families,
  renderNothing,
  renderWidget,
  type Widget,
} from './question-widget.js';
import { plainLine, themeOf, viewOf } from './rules.js';
import * as wire from './schema.js';
import { embedHeaders, sandbox } from './shell.js';

/** Routes of the widgets, which other sites show in their pages. */

type Needs = Deps &
  QuestionParts &
  ConsensusParts &
  HistoryParts &
  LeaderboardParts &
  TaxonomyParts;
const route = routeFor<Needs>();
const tag = 'embed';
const html = 'text/html; charset=utf-8';

/** Maximum number of points that a small chart can show. */
const chart_points = 120;

/** Finds a question that is visible to everyone, because iframes are loaded without credentials. */
const findShown = async (deps: QuestionParts, id: string): Promise<QuestionRow | null> => {
  const question = isId(id) ? await findVisible(deps, id, anonymous) : null;
  return question === null || isFault(question) ? null : question;
};

/** Reads the rows of the board that a query names, and the name of its category. */
const readBoard = async (deps: Needs, query: Static<typeof wire.board_query>) => {
  const board = boardOf(query);
  const { category } = board;
  const unknown = category === null ? null : await deps.taxonomy.checkQuery({ category });
  if (unknown !== null) return unknown;
  const page = await readLeaderboard(deps, requestOf(board));
  if (isFault(page)) return page;
  const pillars = await deps.taxonomy.read();
  const name = pillars.find(({ slug }) => slug === category)?.name ?? null;
  return { board, category: name, rows: page.leaderboard };
};

const getEmbed = route({
  id: 'embed',
  method: 'GET',
  path: '/embed/{id}',
  summary: 'Widget of a question for an iframe: updates live, loads nothing from other hosts',
  tag,
  auth: 'public',
  params: wire.embed_params,
  query: wire.embed_query,
  returns: { 200: Type.String(), 404: Type.String() },
  produces: 'text/html',
  cacheable: true,
  cache: { tag: ({ id }) => id.toLowerCase() },
  async handle({ params, query }, deps): Promise<Reply> {
    const { public_url } = deps;
    const view = viewOf(query.view);
    const theme = themeOf(query.theme);
    const headers = embedHeaders(public_url);
    const question = await findShown(deps, params.id.toLowerCase());
    if (question === null) {
      const unkept = { ...headers, 'Cache-Control': 'no-store' };
      return { ...replyRaw(html, renderNothing(view, theme), unkept), status: 404 };
    }
    const [consensus, chart] = await Promise.all([
      deps.consensus.read(question),
      view === 'chart' && !isNumber(question) ? deps.history.read(question, chart_points) : null,
    ]);
    const widget = {
      question,
      view,
      theme,
      public_url,
      chart: chart && drawCourse(question, chart),
    };
    return replyRaw(html, renderWidget({ ...widget, consensus }), headers);
  },
});

const getBoardEmbed = route({
  id: 'embedLeaderboard',
  method: 'GET',
  path: '/embed/leaderboard',
  summary: 'Widget of a leaderboard for an iframe: updates live, loads nothing from other hosts',
  tag,
  auth: 'public',
  query: wire.board_query,
  returns: { 200: Type.String() },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  produces: 'text/html',
  cacheable: true,
  cache: { tag: () => lists_tag },
  async handle({ query }, deps): Promise<Answer> {
    const { public_url } = deps;
    const widget = await readBoard(deps, query);
    if (isFault(widget)) return widget;
    return replyRaw(html, renderBoard({ ...widget, public_url }), embedHeaders(public_url));
  },
});

/** oEmbed 1.0 (oembed.com): other sites send an address and get HTML to embed. */

const question_path =
  /^\/(?:embed|questions|api\/questions)\/([0-9a-f-]{36})(?:\/(?:feed\.xml)?)?$/i;
const board_path = /^\/(?:embed\/|api\/)?leaderboard\/?$/;

/** Finds the question or board that an address of this service shows. Null for other addresses. */
const readAddress = (url: string, public_url: string) => {
  if (!URL.canParse(url)) return null;
  const own = new URL(public_url);
  const { protocol, host, pathname, searchParams, username, password } = new URL(url);
  if (!/^https?:$/.test(protocol) || host !== own.host || username !== '' || password !== '') {
    return null;
  }
  const root = own.pathname.replace(/\/$/, '');
  if (!pathname.startsWith(root)) return null;
  const path = pathname.slice(root.length);
  const query: Readonly<Record<string, string | undefined>> = Object.fromEntries(searchParams);
  if (board_path.test(path)) return { kind: 'board', query } as const;
  const id = question_path.exec(path)?.[1]?.toLowerCase();
  return id === undefined ? null : ({ kind: 'question', id, query } as const);
};

const usual_width = 600;
/**
 * Heights in pixels at which nothing is cut off, for a title of three lines. The page later reports
 * its exact height. Below the width `narrow`, there are more line breaks and half as many columns
 * of families.
 */
const heights: Readonly<Record<wire.View, number>> = { card: 370, chart: 450, compact: 180 };
const narrow = 480;
const narrow_more = 90;
const row_height = 40;

interface Sized {
  readonly view: wire.View;
  readonly width: number;
  readonly families: number;
}

const cardHeight = (question: QuestionRow, { width, families }: Sized): number => {
  const { options, range_min, status } = question;
  const is_number = range_min !== null;
  const columns = (is_number ? 2 : 4) / (width < narrow ? 2 : 1);
  const of_options = options.length === 0 ? 0 : (options.length - 3) * row_height;
  const shown = Math.min(families, max_families);
  const family_rows = Math.ceil(shown / columns) * (is_number ? 28 : row_height);
  const of_families = shown < 2 ? 0 : 30 + family_rows + (families > shown ? 28 : 0);
  const of_outcome = status === 'resolved' ? row_height : 0;
  return heights.card - (is_number ? 60 : 0) + of_options + of_families + of_outcome;
};

const heightOf = (question: QuestionRow, sized: Sized): number => {
  const { view, width } = sized;
  const at_width = view === 'card' ? cardHeight(question, sized) : heights[view];
  return at_width + (width < narrow ? narrow_more : 0);
};

/**
 * Returns the thumbnail with its size in pixels. The chart has two pixels per unit. A thumbnail
 * that does not fit is omitted.
 */
const thumbnailOf = (id: string, { maxwidth, maxheight }: wire.Room, public_url: string) => {
  const units = Math.min(600, Math.floor((maxwidth ?? 1_200) / 2));
  const height = 2 * pictureHeightOf(units);
  if (units < 320 || height > (maxheight ?? height)) return {};
  return {
    thumbnail_url: `${public_url}/api/questions/${id}/chart.png?width=${units}`,
    thumbnail_width: 2 * units,
    thumbnail_height: height,
  };
};

const cache_seconds = 3_600;

interface Shown {
  readonly title: string;
  /** Address of the widget. */
  readonly src: string;
  readonly public_url: string;
  readonly room: wire.Room;
  /** Returns the height in pixels at which nothing is cut off in a frame of this width. */
  readonly heightAt: (width: number) => number;
}

const makeOembed = ({ title, src, public_url, room, heightAt }: Shown): wire.Oembed => {
  const { maxwidth = usual_width, maxheight = Number.POSITIVE_INFINITY } = room;
  const width = Math.min(usual_width, maxwidth);
  const height = Math.min(heightAt(width), maxheight);
  return {
    version: '1.0',
    type: 'rich',
    provider_name: 'Prediction Forum',
    provider_url: public_url,
    title,
    cache_age: cache_seconds,
    html:
      `<iframe class="forecast" src="${escapeHtml(src)}" width="${width}" height="${height}" title="${escapeHtml(title)}" ` +
      'loading="lazy" ' +
      `sandbox="${sandbox}" ` +
      'style="border:0;max-width:100%"></iframe>',
    width,
    height,
  };
};

interface ShownQuestion extends Pick<Widget, 'view' | 'theme' | 'public_url'> {
  readonly room: wire.Room;
  /** Number of model families that have made forecasts. */
  readonly families: number;
}

export const questionOembed = (question: QuestionRow, shown: ShownQuestion): wire.Oembed => {
  const { view, theme, public_url, room, families } = shown;
  return {
    ...makeOembed({
      title: plainLine(question.question),
      src: embedUrl(public_url, question.id, view, theme),
      heightAt: (width) => heightOf(question, { view, width, families }),
      public_url,
      room,
    }),
    ...thumbnailOf(question.id, room, public_url),
  };
};

const getOembed = route({
  id: 'oembed',
  method: 'GET',
  path: '/oembed',
  summary: 'oEmbed 1.0: iframe for the address of a question, a leaderboard or a widget',
  tag,
  auth: 'public',
  query: wire.oembed_query,
  returns: { 200: wire.oembed_schema },
  cacheable: true,
  faults: [question_faults.QUESTION_NOT_FOUND, taxonomy_faults.INVALID_CATEGORY],
  async handle({ query }, deps) {
    const { public_url } = deps;
    const named = readAddress(query.url, public_url);
    if (named?.kind === 'board') {
      const shown_board = await readBoard(deps, named.query);
      if (isFault(shown_board)) return shown_board;
      const { board, rows } = shown_board;
      const src = boardUrl(public_url, board);
      const heightAt = () => boardHeight(rows.length);
      const shown = { title: titleOf(board), src, heightAt, public_url, room: query };
      return reply(200, makeOembed(shown));
    }
    const question = named === null ? null : await findShown(deps, named.id);
    if (named === null || question === null) {
      return refuse(question_faults.QUESTION_NOT_FOUND, {
        message: 'No published question or leaderboard of this service has the address in url.',
      });
    }
    const { model_breakdown } = await deps.consensus.read(question);
    const [view, theme] = [viewOf(named.query['view']), themeOf(named.query['theme'])];
    const families = model_breakdown.length;
    return reply(200, questionOembed(question, { view, theme, public_url, room: query, families }));
  },
});

export const routes = [getBoardEmbed, getEmbed, getOembed];
