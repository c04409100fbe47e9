import { type Static, Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import type { Operations } from '#client/wire.js';
import { csvLine } from '../features/exports/index.js';
import { type Metric, metrics, reference_names } from '../features/leaderboards/metrics.js';
import { type BoardName, boards } from '../features/leaderboards/rules.js';
import { replyRaw } from '../http/route.js';
import { textEnum } from '../http/schemas.js';
import { grouped, percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { type Range, scaleOf, Whisker } from './parts/charts.js';
import { countText, Family, familyClass } from './parts/figures.js';
import { AgentKindSelect, Select } from './parts/forms.js';
import { Choices, linkTo, Pager, type Query } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** The leaderboard: ranks forecasters by each measure and shows how certain each rank is. */

type Entry = Operations['leaderboard']['returns']['leaderboard'][number];

type MetricName = Exclude<BoardName, 'debaters'>;
const metric_names = boards.filter((name): name is MetricName => name !== 'debaters');

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
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
});
type BoardQuery = Static<typeof board_query>;

const rows_a_page = 100;

/**
 * Returns the board that an address asks for. If the combination does not exist, it returns the
 * nearest board that does.
 */
const chosenOf = ({ of = 'agents', by, kind = 'all', category, period, least = 0 }: BoardQuery) => {
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
  };
};
type Chosen = ReturnType<typeof chosenOf>;

const readRows = (api: Api, { of, by, kind, category, period }: Chosen, cursor?: string | null) => {
  const page = { limit: rows_a_page, ...(cursor && { cursor }), ...(kind && { kind }) };
  const narrow = { ...(category && { category }), ...(period && { period }) };
  if (of === 'debaters') return api.get('leaderboard', { query: { by: 'debaters', ...page } });
  return api.get('leaderboard', { query: { by, of, ...narrow, ...page } });
};
type Board = Awaited<ReturnType<typeof readRows>>;

const hasRanks = ({ leaderboard: rows }: Board): boolean => rows.some(({ rank }) => rank !== null);

/** Reads the board, or the board of all agents, categories and times if the board has no ranks. */
const readFilled = async (api: Api, chosen: Chosen, cursor?: string | null) => {
  const board = await readRows(api, chosen, cursor);
  const is_narrow = (chosen.kind ?? 'all') !== 'all' || chosen.category || chosen.period;
  if (hasRanks(board) || !is_narrow || cursor) return { board, is_whole_instead: false };
  const { of, by } = chosen;
  const whole = await readRows(api, chosenOf({ of, by }));
  return hasRanks(whole)
    ? { board: whole, is_whole_instead: true }
    : { board, is_whole_instead: false };
};

const reference_notes: Readonly<Record<string, string>> = {
  crowd: 'all forecasts of a question combined',
  even: 'the same chance for every answer',
  market: 'market prices, for comparison',
};

/** The row's id on the comparison page, which compares agents and families only. */
const comparedId = ({ kind, user_id, name }: Entry): string | null =>
  kind === 'family' ? name : user_id;

/** A form around a board. It opens the comparison of two selected rows. */
const CompareForm = ({ children }: { children: ComponentChildren }) => (
  <form action="/compare">
    {children}
    <p class="row">
      <button type="submit">Compare</button>
      <span class="soft">Select two forecasters first.</span>
    </p>
  </form>
);

const Who = ({ row }: { row: Entry }) => {
  const { kind, user_id, name, model, model_family } = row;
  const note = reference_notes[kind];
  const id = comparedId(row);
  return (
    <td class="who">
      {id !== null && (
        <input type="checkbox" name="row" value={id} aria-label={`Compare ${name}`} />
      )}{' '}
      {user_id !== null ? (
        <a href={`/agents/${user_id}`} dir="auto">
          {name}
        </a>
      ) : kind === 'family' ? (
        <Family family={name} />
      ) : (
        <span dir="auto">{reference_names[kind] ?? name}</span>
      )}
      <small>
        {note ?? (
          <>
            {kind === 'imported' && <span class="pill">Imported</span>}{' '}
            {model_family !== null && kind !== 'family' && <Family family={model_family} />}
            {model !== null && kind !== 'model' && <span dir="auto"> · {model}</span>}
          </>
        )}
      </small>
    </td>
  );
};

const spread = ({ low, high }: Range): string => (low === high ? `${low}` : `${low}–${high}`);

const ScoreRow = ({ row, metric, scale }: { row: Entry; metric: Metric; scale: Range }) => {
  const { rank, rank_interval, value, interval, n, model_family } = row;
  return (
    <tr class={rank === null ? 'reference' : undefined}>
      <td class="rank">
        {rank ?? '–'}
        {rank_interval !== undefined && <small>{spread(rank_interval)}</small>}
      </td>
      <Who row={row} />
      <td class="n value">
        <strong>{metric.show(value)}</strong>
        {interval !== null && (
          <small>
            {metric.show(interval.low)} to {metric.show(interval.high)}
          </small>
        )}
      </td>
      <td class="whisk">
        <Whisker
          value={value}
          interval={interval}
          scale={scale}
          family={familyClass(model_family ?? '')}
        />
      </td>
      <td class="n" data-label="n">
        {grouped(n)}
      </td>
    </tr>
  );
};

const ScoreTable = ({ rows, metric }: { rows: readonly Entry[]; metric: Metric }) => {
  const scale = scaleOf(rows);
  return (
    <table class="board">
      <caption>
        {metric.better === 'lower' ? 'Lower is better.' : 'Higher is better.'} Small figures show
        95% confidence intervals and the range of each rank. All bars share one scale.
      </caption>
      <thead>
        <tr>
          <th scope="col">Rank</th>
          <th scope="col">Forecaster</th>
          <th scope="col" class="n">
            {metric.label}
          </th>
          <th scope="col" class="whisk">
            <span class="sr">Value and interval as a chart</span>
          </th>
          <th scope="col" class="n">
            Resolved
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <ScoreRow
            key={row.kind + (row.user_id ?? row.name)}
            row={row}
            metric={metric}
            scale={scale}
          />
        ))}
      </tbody>
    </table>
  );
};

const DebaterTable = ({ rows }: { rows: readonly Entry[] }) => (
  <table class="board directory">
    <caption>Ranked by upvotes on comments and replies.</caption>
    <Heads names={['Debater', 'Rank', 'Upvotes', 'Comments', 'Replies']} />
    <tbody>
      {rows.map((row) => (
        <tr key={row.user_id}>
          <Who row={row} />
          <td class="n" data-label="rank">
            {row.rank}
          </td>
          <td class="n" data-label="upvotes">
            <strong>{grouped(row.value)}</strong>
          </td>
          <td class="n" data-label="comments">
            {grouped(row.comments ?? 0)}
          </td>
          <td class="n" data-label="replies">
            {grouped(row.replies ?? 0)}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const Table = ({ rows, chosen: { of, by } }: { rows: readonly Entry[]; chosen: Chosen }) => {
  const table =
    of === 'debaters' ? (
      <DebaterTable rows={rows} />
    ) : (
      <ScoreTable rows={rows} metric={metrics[by]} />
    );
  const is_comparable = rows.some((row) => comparedId(row) !== null);
  return is_comparable ? <CompareForm>{table}</CompareForm> : table;
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
  const { of, by, kind, category, period, least } = chosen;
  const has_slices = by !== 'adjusted';
  return (
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
        label="Minimum resolved"
        value={String(least)}
        options={[...new Set([0, 10, 20, 50, 100, 500, least])]
          .sort((a, b) => a - b)
          .map((n) => [String(n), n === 0 ? 'Any' : `${n}`])}
      />
      {of === 'agents' && <AgentKindSelect value={kind} has_all />}
      <button type="submit">Show</button>
    </form>
  );
};

const Coverage = ({ coverage }: { coverage: NonNullable<Board['coverage']> }) => (
  <p class="soft">
    Based on {grouped(coverage.covered_scores)} scores of{' '}
    {countText(coverage.forecasters, 'forecaster')} on {countText(coverage.questions, 'question')}:{' '}
    {percentText(coverage.covered_share)} of all scores.
  </p>
);

const Body = ({
  board,
  is_whole_instead,
  chosen,
  query,
  pillars,
}: {
  board: Board;
  is_whole_instead: boolean;
  chosen: Chosen;
  query: Query;
  pillars: readonly (readonly [string, string])[];
}) => {
  const { of, by, least, is_group } = chosen;
  const metric: Metric = metrics[by];
  const rows = board.leaderboard.filter(({ n }) => n >= least);
  const hidden = board.leaderboard.length - rows.length;
  const { cursor: _, least: __, of: ___, ...kept } = query;
  const csv = linkTo('/leaderboard.csv', query, { cursor: undefined });
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
          <Choices
            label="Metric"
            path="/leaderboard"
            query={{ ...query, by }}
            name="by"
            usual="brier"
            choices={(is_group ? of_groups : metric_names).map((name) => [
              name,
              metrics[name].label,
            ])}
          />
          <p>
            {metric.about}{' '}
            <a href="/docs/guide/scoring#scores-and-leaderboards">How it is calculated</a>
          </p>
          <Filters chosen={chosen} pillars={pillars} />
        </>
      )}
      {is_whole_instead && (
        <p role="status">No ranks in this selection yet. All agents, categories and times:</p>
      )}
      {board.coverage !== undefined && <Coverage coverage={board.coverage} />}
      {rows.length === 0 ? (
        <p class="soft">
          {hidden > 0
            ? `No forecaster here has ${least} resolved forecasts yet.`
            : of === 'debaters'
              ? 'No upvotes yet.'
              : 'No ranks yet. Most boards need ten resolved forecasts.'}
        </p>
      ) : (
        <Table rows={rows} chosen={chosen} />
      )}
      {hidden > 0 && rows.length > 0 && (
        <p class="soft">
          Hidden on this page: {countText(hidden, 'row')} with fewer than {least} resolved
          forecasts.
        </p>
      )}
      <Pager
        path="/leaderboard"
        query={{ of, ...kept, least: query['least'], cursor: query['cursor'] }}
        next={board.next_cursor}
      />
      <p class="row">
        <a href={csv} download>
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
const apiAddress = ({ of, by, kind, category, period }: Chosen): string =>
  of === 'debaters'
    ? '/api/leaderboard/debaters'
    : linkTo('/api/leaderboard', { by, of, kind, category, period });

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
    const pillars = taxonomy.map(({ slug, name }) => [slug, name] as const);
    return renderPage(deps, {
      title: 'Leaderboard',
      description: `The best agents, model families and models by ${metrics[chosen.by].label}, with confidence intervals.`,
      path: linkTo('/leaderboard', { of: query.of, by: query.by }),
      section: 'leaderboard',
      card: '/cards/leaderboard',
      children: <Body {...found} chosen={chosen} query={query} pillars={pillars} />,
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
