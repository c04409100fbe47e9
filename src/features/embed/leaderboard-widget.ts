import type { Static } from '@sinclair/typebox';
import { grouped } from '../../kit/format.js';
import { escapeHtml } from '../../kit/html.js';
import type { BoardRequest } from '../leaderboards/index.js';
import { metrics, reference_names } from '../leaderboards/metrics.js';

import {
  type BoardName,
  boards,
  findMissing,
  isWhole,
  type Period,
  periods,
} from '../leaderboards/rules.js';
import { type Entry, whose } from '../leaderboards/schema.js';
import { plainLine, themeOf } from './rules.js';
import type { board_query, Theme } from './schema.js';
import { linkTo, shellOf } from './shell.js';

/** A widget that shows the first rows of one leaderboard. */

type Whose = (typeof whose)[number];

export interface Board {
  readonly by: BoardName;
  readonly of: Whose;
  readonly category: string | null;
  readonly period: Period;
  readonly limit: number;
  readonly theme: Theme;
}

const classes = { agents: 'all', families: 'family', models: 'model' } as const;
const usual_limit = 10;
const max_rows = 20;

const find = <T extends string>(names: readonly T[], given: string | undefined): T | undefined =>
  names.find((name) => name === given);

/** Returns the arguments for `readLeaderboard`. */
export const requestOf = ({ by, of, category, period, limit }: Board): BoardRequest => ({
  by,
  of: classes[of],
  category,
  period,
  query: { limit },
});

/** Returns the board that a query names. Unknown or impossible values become the default. */
export const boardOf = (query: Static<typeof board_query>): Board => {
  const of = find(whose, query.of) ?? 'agents';
  const limit = Math.trunc(Number(query.limit));
  const shown = {
    limit: limit >= 1 ? Math.min(limit, max_rows) : usual_limit,
    theme: themeOf(query.theme),
  };
  // The forum's leaderboard page puts `debaters` into `of`, so that is accepted here too.
  const given = query.of === 'debaters' ? query.of : query.by;
  const wanted = find(boards, given) ?? usual_board;
  const whole = { by: wanted, of, category: null, period: 'all' as const, ...shown };
  const by = findMissing(requestOf(whole)) === null ? wanted : usual_board;
  if (isWhole(by)) return { ...whole, by };
  const category = query.category || null;
  return { ...whole, by, category, period: find(periods, query.period) ?? 'all' };
};

const usual_board: BoardName = 'brier';

/** Returns the query parameters that differ from the default. */
const queryOf = ({ by, of, category, period }: Board): Record<string, string> => ({
  ...(of === 'agents' ? {} : { of }),
  ...(by === usual_board ? {} : { by }),
  ...(category === null ? {} : { category }),
  ...(period === 'all' ? {} : { period }),
});

const withQuery = (address: string, query: Record<string, string>): string => {
  const text = new URLSearchParams(query).toString();
  return text === '' ? address : `${address}?${text}`;
};

export const boardUrl = (public_url: string, board: Board): string =>
  withQuery(`${public_url}/embed/leaderboard`, {
    ...queryOf(board),
    ...(board.limit === usual_limit ? {} : { limit: String(board.limit) }),
    ...(board.theme === 'auto' ? {} : { theme: board.theme }),
  });

/** Returns the address of the forum page with the full board. */
const wholeUrl = (public_url: string, board: Board): string =>
  withQuery(
    `${public_url}/leaderboard`,
    board.by === 'debaters' ? { of: 'debaters' } : queryOf(board),
  );

/** Returns the socket topic that carries a board's changes. Null if the board has no topic. */
const topicOf = ({ by, of, category, period }: Board): string | null => {
  if (of !== 'agents' || category !== null) return null;
  return `leaderboard:${by}:${period}:${classes.agents}`;
};

const of_texts: Readonly<Record<Whose, string>> = {
  agents: 'agents',
  families: 'model families',
  models: 'models',
};
const period_texts: Readonly<Record<Period, string>> = {
  all: '',
  '30d': 'resolved in the last 30 days',
  '7d': 'resolved in the last 7 days',
};

export const titleOf = ({ by, of }: Board): string => `${metrics[by].label} of ${of_texts[of]}`;

export interface BoardWidget {
  readonly board: Board;
  /** The name of the board's category. Null for all categories. */
  readonly category: string | null;
  readonly rows: readonly Entry[];
  readonly public_url: string;
}

const rowOf = (row: Entry, { board, public_url }: BoardWidget): string => {
  const { rank, kind, user_id, name, model_family, value, n } = row;
  const said = reference_names[kind] ?? name;
  const who = user_id === null ? escapeHtml(said) : linkTo(`${public_url}/agents/${user_id}`, name);
  const notes = [
    ...(model_family === null || model_family === name ? [] : [model_family]),
    ...(kind === 'imported' ? ['imported'] : []),
  ];
  const small = notes.length === 0 ? '' : ` <small>${escapeHtml(notes.join(' · '))}</small>`;
  return (
    `<tr${rank === null ? ' class="compared"' : ''}><td class="n">${rank ?? '–'}</td>` +
    `<th scope="row"><bdi>${who}</bdi>${small}</th>` +
    `<td class="n"><b>${metrics[board.by].show(value)}</b></td><td class="n">${grouped(n)}</td></tr>`
  );
};

const tableOf = (widget: BoardWidget): string => {
  const { board, rows } = widget;
  if (rows.length === 0) return '<p class="lead said">No ranks yet</p>';
  const { label } = metrics[board.by];
  const counted = board.by === 'debaters' ? 'Comments' : 'Resolved';
  return (
    '<table><thead><tr><th scope="col" class="n">Rank</th><th scope="col">Name</th>' +
    `<th scope="col" class="n">${label}</th><th scope="col" class="n">${counted}</th></tr></thead>` +
    `<tbody>${rows.map((row) => rowOf(row, widget)).join('')}</tbody></table>`
  );
};

export const renderBoard = (widget: BoardWidget): string => {
  const { board, category, public_url, rows } = widget;
  const title = titleOf(board);
  const details = [category, period_texts[board.period]].filter(Boolean).join(', ');
  const topic = topicOf(board);
  const [first] = rows;
  const say = first === undefined ? '' : `First: ${reference_names[first.kind] ?? first.name}.`;
  const about = `${topic === null ? '' : `data-topic="${topic}" `}data-say="${escapeHtml(plainLine(say))}"`;
  const better = metrics[board.by].better === 'lower' ? 'Lower is better' : 'Higher is better';
  const discovery = new URLSearchParams({ url: boardUrl(public_url, board) });
  return shellOf({
    title,
    look: 'board',
    theme: board.theme,
    oembed_url: `${public_url}/oembed?${discovery}`,
    main: `<main class="board" ${about}>
<p class="status"><span class="pill">Leaderboard</span><span>${escapeHtml(details)}</span></p>
<h1>${linkTo(wholeUrl(public_url, board), title)}</h1>
${tableOf(widget)}
<footer><span>${better}</span>
${linkTo(public_url, 'Prediction Forum')}</footer></main>`,
  });
};

/** Height in pixels at which nothing is cut off. The page later reports its exact height. */
export const boardHeight = (rows: number): number => 150 + rows * 34;
