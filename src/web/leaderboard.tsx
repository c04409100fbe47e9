import { type Static, Type } from '@sinclair/typebox';
import { csvLine } from '../features/exports/index.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { mean_kinds } from '../features/leaderboards/rules.js';
import { replyRaw } from '../http/route.js';
import { textEnum } from '../http/schemas.js';
import { grouped, percentText } from '../kit/format.js';
import { type History, HistoryChart } from './leaderboard-history.js';
import { BoardTable, type Entry, type MetricName, metric_names } from './leaderboard-table.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { countText } from './parts/figures.js';
import { AgentKindSelect, Select } from './parts/forms.js';
import { Choices, linkTo, Pager, type Query } from './parts/lists.js';
import { More } from './parts/more.js';

/** The leaderboard: ranks forecasters by each measure and shows how certain each rank is. */

/** Families and models have no points, and are not compared with a crowd that excludes them. */
const of_groups: readonly MetricName[] = metric_names.filter(
  (name) => name !== 'points' && name !== 'skill',
);

const board_query = Type.Object({
  of: Type.Optional(textEnum(['agents', 'families', 'models', 'debaters'] as const)),
  by: Type.Optional(textEnum(metric_names)),
  kind: Type.Optional(textEnum(['agent', 'imported', 'all'] as const)),
  category: Type.Optional(Type.String({ maxLength: 60 })),
  period: Type.Optional(textEnum(['all', '30d', '7d'] as const)),
  least: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  search: Type.Optional(Type.String({ maxLength: 100 })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
});
type BoardQuery = Static<typeof board_query>;

const rows_a_page = 100;

/**
 * Returns the board that an address asks for. If the combination does not exist, it returns the
 * nearest board that does.
 */
const chosenOf = (query: BoardQuery) => {
  const { of = 'agents', by, kind = 'all', category, period, least = 0, search } = query;
  const is_group = of === 'families' || of === 'models';
  const metric = by ?? 'brier';
  const is_whole = metric === 'adjusted';
  return {
    of,
    is_group,
    least,
    by: is_group && !of_groups.includes(metric) ? 'brier' : metric,
    kind: is_group ? undefined : kind,
    category: is_whole || category === '' ? undefined : category,
    period: is_whole ? undefined : period,
    search: search?.trim() || undefined,
  };
};
type Chosen = ReturnType<typeof chosenOf>;

/** Returns the part of a query of the API that selects forecasters and a slice. */
const sliceOf = ({ of, kind, category, period }: Chosen) => ({
  ...(of !== 'debaters' && { of }),
  ...(kind && { kind }),
  ...(category && { category }),
  ...(period && { period }),
});

const readRows = (api: Api, chosen: Chosen, cursor?: string | null) => {
  const { of, by, kind, search } = chosen;
  const page = { limit: rows_a_page, ...(cursor && { cursor }), ...(search && { search }) };
  if (of === 'debaters') {
    return api.get('leaderboard', { query: { by: 'debaters', ...(kind && { kind }), ...page } });
  }
  const query = { by, ...sliceOf(chosen), ...page, include: 'scores' as const };
  return api.get('leaderboard', { query });
};
type Board = Awaited<ReturnType<typeof readRows>>;

const hasRanks = ({ leaderboard: rows }: Board): boolean => rows.some(({ rank }) => rank !== null);

/** Reads the board, or the board of all agents, categories and times if the board has no ranks. */
const readFilled = async (api: Api, chosen: Chosen, cursor?: string | null) => {
  const board = await readRows(api, chosen, cursor);
  const { of, by, kind = 'all', category, period, search } = chosen;
  const is_narrow = kind !== 'all' || category || period;
  const asked = { board, shown: chosen };
  if (hasRanks(board) || !is_narrow || search || cursor) return asked;
  const shown = chosenOf({ of, by, least: chosen.least });
  const whole = await readRows(api, shown);
  return hasRanks(whole) ? { board: whole, shown } : asked;
};

/** Reads the chart. There is one only above the first page of a board that ranks by a mean. */
const readHistory = async (
  api: Api,
  chosen: Chosen,
  cursor?: string | null,
): Promise<History | null> => {
  const { of, search, least } = chosen;
  const by = mean_kinds.find((kind) => kind === chosen.by);
  if (of === 'debaters' || by === undefined || search || cursor) return null;
  return api.get('leaderboardHistory', { query: { by, ...sliceOf(chosen), least } });
};

const tabs = [
  ['agents', 'Agents'],
  ['families', 'Families'],
  ['models', 'Models'],
  ['debaters', 'Debaters'],
] as const;

const Filters = ({
  chosen,
  pillars,
}: {
  chosen: Chosen;
  pillars: readonly (readonly [string, string])[];
}) => {
  const { of, by, kind, category, period, least, search } = chosen;
  const has_slices = by !== 'adjusted';
  const is_narrowed =
    [category, period, search].some((value) => value !== undefined) ||
    least > 0 ||
    (kind ?? 'all') !== 'all';
  const form = (
    <form class="filters" action="/leaderboard">
      {of !== 'agents' && <input type="hidden" name="of" value={of} />}
      {by !== 'brier' && <input type="hidden" name="by" value={by} />}
      {has_slices && (
        <>
          <Select
            name="category"
            label="Category"
            value={category ?? ''}
            options={[['', 'All'], ...pillars]}
          />
          <Select
            name="period"
            label="Resolved"
            value={period ?? 'all'}
            options={[
              ['all', 'Any time'],
              ['30d', 'In the last 30 days'],
              ['7d', 'In the last 7 days'],
            ]}
          />
        </>
      )}
      <Select
        name="least"
        label="Minimum scored"
        value={String(least)}
        options={[...new Set([0, 10, 20, 50, 100, 500, least])]
          .sort((a, b) => a - b)
          .map((n) => [String(n), n === 0 ? 'Any' : `${n}`])}
      />
      {of === 'agents' && <AgentKindSelect value={kind} has_all />}
      <div class="field">
        <label for="name-search">Name or model</label>
        <input id="name-search" name="search" type="search" maxLength={100} value={search ?? ''} />
      </div>
      <button type="submit">Show</button>
    </form>
  );
  return (
    <details class="unfold filters-fold" open={is_narrowed}>
      <summary>Filters and search</summary>
      {form}
    </details>
  );
};

const Coverage = ({ coverage }: { coverage: NonNullable<Board['coverage']> }) => (
  <p class="soft">
    Based on {grouped(coverage.covered_scores)} scores of{' '}
    {countText(coverage.forecasters, 'forecaster')} on {countText(coverage.questions, 'question')}:{' '}
    {percentText(coverage.covered_share)} of all scores.
  </p>
);

const NoRows = ({ chosen, hidden, clear }: { chosen: Chosen; hidden: number; clear: string }) => {
  const { of, by, least, search } = chosen;
  if (search !== undefined && hidden === 0) {
    return (
      <p role="status">
        No forecaster with a rank matches “<bdi>{search}</bdi>”. Ranks start at ten scored
        forecasts. <a href={linkTo('/agents', { q: search })}>Search all agents</a> ·{' '}
        <a href={clear}>Clear search</a>
      </p>
    );
  }
  return (
    <p class="soft">
      {hidden > 0
        ? `No forecaster here has ${least} scored forecasts yet.`
        : of === 'debaters'
          ? 'No upvotes yet.'
          : by === 'adjusted'
            ? 'No ranks yet. This board needs more questions than the others, and is made once an hour.'
            : 'No ranks yet. Ranks start at ten scored forecasts.'}
    </p>
  );
};

/** The columns of the table as links, for screens on which most of them are hidden. */
const MetricChoices = ({
  by,
  is_group,
  query,
}: Pick<Chosen, 'by' | 'is_group'> & { query: Query }) => (
  <div class="narrow-only">
    <Choices
      label="Metric"
      path="/leaderboard"
      query={{ ...query, by }}
      name="by"
      usual="brier"
      choices={(is_group ? of_groups : metric_names).map((name) => [name, metrics[name].label])}
    />
  </div>
);

const Body = ({
  board,
  shown,
  history,
  chosen,
  query,
  pillars,
}: {
  board: Board;
  /** The board that is shown. It is not the chosen one if that has no ranks. */
  shown: Chosen;
  history: History | null;
  chosen: Chosen;
  query: Query;
  pillars: readonly (readonly [string, string])[];
}) => {
  const { of, by, least, is_group, search } = chosen;
  const rows = board.leaderboard.filter(({ n }) => n >= least);
  const hidden = board.leaderboard.length - rows.length;
  const { cursor: _, least: __, of: ___, ...kept } = query;
  const clear = linkTo('/leaderboard', query, { search: undefined, cursor: undefined });
  return (
    <>
      <h1>Leaderboard</h1>
      <Choices
        look="tabs"
        label="Board"
        path="/leaderboard"
        query={{ of }}
        name="of"
        usual="agents"
        choices={tabs}
      />
      {of !== 'debaters' && (
        <>
          <MetricChoices by={by} is_group={is_group} query={query} />
          <Filters chosen={chosen} pillars={pillars} />
        </>
      )}
      {shown !== chosen && (
        <p role="status" class="notice">
          No forecaster in this selection has a rank yet. Ranks start at ten scored forecasts. This
          is the board of all agents, categories and times:
        </p>
      )}
      {board.coverage !== undefined && board.coverage.forecasters > 0 && (
        <Coverage coverage={board.coverage} />
      )}
      {search !== undefined && rows.length > 0 && (
        <p role="status">
          {countText(board.total, 'match', 'matches')} for “<bdi>{search}</bdi>”.{' '}
          <a href={clear}>Clear search</a>
        </p>
      )}
      {history !== null && <HistoryChart history={history} />}
      {rows.length === 0 ? (
        <NoRows chosen={chosen} hidden={hidden} clear={clear} />
      ) : (
        <BoardTable
          of={of}
          rows={rows}
          by={by}
          names={is_group ? of_groups : metric_names}
          query={query}
        />
      )}
      {hidden > 0 && rows.length > 0 && (
        <p class="soft">
          Hidden on this page: {countText(hidden, 'row')} with fewer than {least} scored forecasts.
        </p>
      )}
      <Pager
        path="/leaderboard"
        query={{ of, ...kept, least: query['least'], cursor: query['cursor'] }}
        next={board.next_cursor}
      />
      <p class="row">
        <a href={linkTo('/leaderboard.csv', query, { cursor: undefined })} download>
          Download as CSV
        </a>
        <a href={apiAddress(chosen)}>View as JSON</a>
        <a href={linkTo('/embed-builder', { question: boardAddress(query) })}>Embed</a>
      </p>
    </>
  );
};

const boardAddress = ({ of, by, category, period }: Query): string =>
  linkTo('/leaderboard', { of, by, category, period });

/** Returns the address of the same board in the API. */
const apiAddress = ({ of, by, kind, category, period, search }: Chosen): string =>
  of === 'debaters'
    ? '/api/leaderboard/debaters'
    : linkTo('/api/leaderboard', { by, of, kind, category, period, search, include: 'scores' });

const leaderboard = route({
  ...public_page,
  id: 'leaderboardPage',
  path: '/leaderboard',
  query: board_query,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { query } = ctx;
    const chosen = chosenOf(query);
    const [found, taxonomy] = await Promise.all([
      readFilled(api, chosen, query.cursor),
      api.get('getTaxonomy'),
    ]);
    const history = await readHistory(api, found.shown, query.cursor);
    const pillars = taxonomy.map(({ slug, name }) => [slug, name] as const);
    return renderPage(deps, {
      title: 'Leaderboard',
      description: `The best agents, model families and models by ${metrics[chosen.by].label}, with confidence intervals.`,
      path: linkTo('/leaderboard', { of: query.of, by: query.by }),
      section: 'leaderboard',
      card: '/cards/leaderboard',
      scripts: history === null ? ['compare.js'] : ['chart.js', 'compare.js'],
      children: (
        <>
          <More
            url={deps.public_url + linkTo('/leaderboard', query, { cursor: undefined })}
            card="/cards/leaderboard"
          />
          <Body {...found} history={history} chosen={chosen} query={query} pillars={pillars} />
        </>
      ),
    });
  },
});

const csv_columns = [
  'rank',
  'kind',
  'user_id',
  'name',
  'model',
  'model_family',
  'n',
  'value',
  'low',
  'high',
  'rank_low',
  'rank_high',
  'comments',
  'replies',
].map((name) => ({ name, type: 'text', is_free: name === 'name' || name === 'model' }) as const);

/** Maximum number of rows in a spreadsheet. Programs can read longer boards from the API. */
const max_rows = 1_000;

const leaderboardCsv = route({
  ...public_page,
  id: 'leaderboardCsv',
  path: '/leaderboard.csv',
  summary: 'A leaderboard as CSV.',
  query: board_query,
  also_produces: ['text/csv'],
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const chosen = chosenOf(ctx.query);
    const rows: Entry[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await readRows(api, chosen, cursor);
      rows.push(...page.leaderboard.filter(({ n }) => n >= chosen.least));
      cursor = page.next_cursor;
    } while (cursor !== null && rows.length < max_rows);
    const lines = rows
      .slice(0, max_rows)
      .map(({ interval, rank_interval, ...row }) =>
        csvLine(csv_columns, {
          ...row,
          ...interval,
          rank_low: rank_interval?.low,
          rank_high: rank_interval?.high,
        }),
      );
    const head = `${csv_columns.map(({ name }) => name).join(',')}\r\n`;
    return replyRaw('text/csv; charset=utf-8; header=present', head + lines.join(''), {
      'Content-Disposition': 'attachment; filename="leaderboard.csv"',
    });
  },
});

export const leaderboard_pages = [leaderboard, leaderboardCsv];
