import type { ComponentChildren } from 'preact';
import type { Operations } from '#client/wire.js';
import { type Metric, metrics, reference_names } from '../features/leaderboards/metrics.js';
import type { BoardName } from '../features/leaderboards/rules.js';
import { grouped } from '../kit/format.js';
import { type Range, scaleOf, Whisker } from './parts/charts.js';
import { Family, familyClass } from './parts/figures.js';
import { linkTo, type Query } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** The table of a leaderboard: a row for each forecaster and a column for each metric. */

export type Entry = Operations['leaderboard']['returns']['leaderboard'][number];
export type MetricName = Exclude<BoardName, 'debaters'>;

/** The order of the columns. */
export const metric_names = [
  'brier',
  'adjusted',
  'skill',
  'relative',
  'log',
  'accuracy',
  'calibration',
  'points',
] as const satisfies readonly MetricName[];

/** Columns that are shown only on wide screens, unless the table is sorted by them. */
const rare: readonly MetricName[] = ['adjusted', 'log', 'points'];

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
  <form action="/compare" data-compare>
    {children}
    <p class="row">
      <button type="submit">Compare</button>
      <span class="soft" role="status">
        Select two forecasters first.
      </span>
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
            {model !== null && kind !== 'model' && (
              <>
                {' '}
                · <span dir="auto">{model}</span>
              </>
            )}
          </>
        )}
      </small>
    </td>
  );
};

const spread = ({ low, high }: Range): string => (low === high ? `${low}` : `${low}–${high}`);

/** Hides the column on screens that are too narrow for it. */
const lookOf = (name: MetricName): string => (rare.includes(name) ? 'n rare' : 'n more');

/** The value by which the rows are sorted, with its interval as text and as a chart. */
const SortedCells = ({ row, metric, scale }: { row: Entry; metric: Metric; scale: Range }) => {
  const { value, interval, model_family } = row;
  return (
    <>
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
    </>
  );
};

const MetricCell = ({ row: { scores }, name }: { row: Entry; name: MetricName }) => {
  const value = scores?.[name] ?? null;
  return <td class={lookOf(name)}>{value !== null && metrics[name].show(value)}</td>;
};

const ScoreRow = ({
  row,
  by,
  names,
  scale,
}: {
  row: Entry;
  by: MetricName;
  names: readonly MetricName[];
  scale: Range;
}) => (
  <tr class={row.rank === null ? 'reference' : undefined}>
    <td class="rank">
      {row.rank ?? '–'}
      {row.rank_interval !== undefined && <small>{spread(row.rank_interval)}</small>}
    </td>
    <Who row={row} />
    {names.map((name) =>
      name === by ? (
        <SortedCells key={name} row={row} metric={metrics[by]} scale={scale} />
      ) : (
        <MetricCell key={name} row={row} name={name} />
      ),
    )}
    <td class="n" data-label="n">
      {grouped(row.n)}
    </td>
  </tr>
);

/** The head of a column: a link that sorts the table by it. */
const MetricHead = ({
  name,
  by,
  address,
}: {
  name: MetricName;
  by: MetricName;
  address: string;
}) => {
  const { head, about, better } = metrics[name];
  const is_sorted = name === by;
  return (
    <th
      scope="col"
      class={is_sorted ? 'n sorted' : lookOf(name)}
      colSpan={is_sorted ? 2 : undefined}
      aria-sort={is_sorted ? (better === 'lower' ? 'ascending' : 'descending') : undefined}
    >
      <a href={address} title={about}>
        {head}
      </a>
    </th>
  );
};

interface TableParts {
  readonly rows: readonly Entry[];
  readonly by: MetricName;
  /** The metrics of the board's class. */
  readonly names: readonly MetricName[];
  readonly query: Query;
}

const ScoreTable = ({ rows, by, names, query }: TableParts) => {
  const scale = scaleOf(rows);
  const { about, better } = metrics[by];
  // The adjusted board is made each hour, and only for all categories and times.
  const has_adjusted = rows.some(({ scores }) => scores?.adjusted != null);
  const shown = names.filter((name) => name !== 'adjusted' || by === name || has_adjusted);
  const addressOf = (name: MetricName): string =>
    linkTo('/leaderboard', query, { by: name === 'brier' ? undefined : name, cursor: undefined });
  return (
    <table class="board metrics">
      <caption>
        {about} {better === 'lower' ? 'Lower is better.' : 'Higher is better.'} Small figures show
        95% confidence intervals. {by !== 'points' && 'Ranks start at ten scored forecasts. '}
        <a href="/docs/guide/scoring#scores-and-leaderboards">How it is calculated</a>
      </caption>
      <thead>
        <tr>
          <th scope="col">Rank</th>
          <th scope="col">Forecaster</th>
          {shown.map((name) => (
            <MetricHead key={name} name={name} by={by} address={addressOf(name)} />
          ))}
          <th scope="col" class="n">
            <span title="Resolved forecasts of yes/no questions and options. Numbers and dates count only for points.">
              Scored
            </span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <ScoreRow
            key={row.kind + (row.user_id ?? row.name)}
            row={row}
            by={by}
            names={shown}
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

export const BoardTable = ({ of, ...parts }: TableParts & { of: string }) => {
  const table = of === 'debaters' ? <DebaterTable rows={parts.rows} /> : <ScoreTable {...parts} />;
  const is_comparable = parts.rows.some((row) => comparedId(row) !== null);
  return is_comparable ? <CompareForm>{table}</CompareForm> : table;
};
