import type { Operations } from '#client/wire.js';
import { percentText } from '../kit/format.js';
import { fitPercent, numberAxis, timeAxis } from '../kit/svg-chart.js';
import { drawDensity } from '../kit/svg-density.js';
import type { Api } from './page-route.js';
import { familyIndex } from './parts/figures.js';
import type { Forecast } from './parts/forecast.js';
import { Choices, type Query } from './parts/lists.js';
import { outcomeText, valueText } from './parts/question-row.js';
import {
  type PlotBand,
  PlotLegend,
  type PlotLine,
  type PlotPoint,
  type PlotScale,
  PlotTable,
  TimeChart,
} from './parts/time-chart.js';

/** The charts of a question: its forecast over time, and the current forecasts of its agents. */

type Answer = Operations['getQuestion']['returns'];
export type Question = Answer['question'];
export type Consensus = Answer['consensus'];
export const status_words = {
  draft: 'Draft',
  open: 'Open',
  closed: 'Closed',
  resolved: 'Resolved',
  voided: 'Voided',
} as const;

type Chart = Operations['getChart']['returns'];
type Moment = Chart['points'][number];

const day_ms = 86_400_000;
const ranges = { '1d': day_ms, '1w': 7 * day_ms, '1m': 30 * day_ms } as const;
export const range_choices = [
  ['1d', 'Day'],
  ['1w', 'Week'],
  ['1m', 'Month'],
  ['all', 'All'],
] as const;
const series_choices = (is_multi: boolean) =>
  [
    ['', is_multi ? 'By option' : 'All agents'],
    ['families', 'By family'],
  ] as const;

const max_series = 5;
const max_points = 120;

/** Converts a value from the API to a number. Dates become milliseconds. */
export const levelOf = (value: number | string | null | undefined): number | null =>
  value === null || value === undefined
    ? null
    : typeof value === 'string'
      ? new Date(value).getTime()
      : value;

type Ranged = Pick<Question, 'question_type' | 'range'>;

/** Returns the position from 0 to 100 of a chance, or of a value within the question's range. */
export const placeInRange = (
  question: Ranged,
  value: string | number | null | undefined,
): number | null => {
  if (!isNumber(question)) return levelOf(value);
  const [min, max, at] = [question.range?.min, question.range?.max, value].map(levelOf);
  if (min == null || max == null || at == null) return null;
  return Math.min(100, Math.max(0, ((at - min) / (max - min)) * 100));
};

export const readChart = async (
  api: Api,
  { id }: Question,
  { model_breakdown }: Consensus,
  { range, by_family }: { range: string; by_family: boolean },
) => {
  const points = range === 'all' ? max_points : 500;
  const families = by_family
    ? [...model_breakdown].sort((a, b) => b.count - a.count).slice(0, max_series)
    : [];
  const [all, ...each] = await Promise.all([
    api.get('getChart', { params: { id }, query: { points } }),
    ...families.map(({ model_family }) =>
      api.get('getChart', { params: { id }, query: { points, family: model_family as 'gpt' } }),
    ),
  ]);
  return {
    all,
    families: each.map((chart, n) => [families[n]?.model_family ?? '', chart] as const),
  };
};
export type Charts = Awaited<ReturnType<typeof readChart>>;

/**
 * Returns the points from a moment on, thinned to at most `max_points`. The last earlier point
 * is moved to the start, because its value was still valid then.
 */
const cut = <T extends { readonly at: number }>(points: readonly T[], from: number): T[] => {
  const before = points.findLast(({ at }) => at < from);
  const rest = points.filter(({ at }) => at >= from);
  const kept = before === undefined ? rest : [{ ...before, at: from }, ...rest];
  const each = Math.ceil(kept.length / max_points);
  return kept.filter((_, n) => (kept.length - 1 - n) % each === 0);
};

const pointsOf = (
  moments: readonly Moment[],
  from: number,
  read: (moment: Moment) => number | string | null | undefined,
): PlotPoint[] =>
  cut(
    moments.flatMap((moment) => {
      const value = levelOf(read(moment));
      return value === null ? [] : [{ at: new Date(moment.at).getTime(), value }];
    }),
    from,
  );

export const isNumber = ({ question_type }: Pick<Question, 'question_type'>): boolean =>
  question_type === 'numeric' || question_type === 'date';

/** Returns the options with the highest chances at the end, the highest first. */
const leadersOf = ({ options, points }: Chart): readonly number[] => {
  const last = points.at(-1)?.option_forecasts ?? [];
  return options
    .map((_, n) => n)
    .sort((a, b) => (last[b] ?? 0) - (last[a] ?? 0))
    .slice(0, max_series);
};

const linesOf = (question: Question, { all, families }: Charts, from: number): PlotLine[] => {
  const at = all.options.indexOf(all.points.at(-1)?.leading_option ?? '');
  const headline = (moment: Moment) => moment.forecast;
  const ofOption = (n: number) => (moment: Moment) => moment.option_forecasts[n];
  // The leading option may have changed, so all points use the option that leads now.
  const ofFamily = (moment: Moment) =>
    at >= 0 ? moment.option_probabilities[at] : (moment.mean_probability ?? moment.forecast);
  if (families.length > 0) {
    const name = at >= 0 ? `All agents: ${all.options[at]}` : 'All agents';
    const total = at >= 0 ? ofOption(at) : headline;
    return [
      { name, series: 'total' as const, points: pointsOf(all.points, from, total) },
      ...families.map(([family, { points }]) => ({
        name: family,
        series: familyIndex(family),
        points: pointsOf(points, from, ofFamily),
      })),
    ];
  }
  if (question.question_type !== 'multi') {
    const name = isNumber(question) ? 'Median' : 'Chance of Yes';
    return [{ name, series: 0, points: pointsOf(all.points, from, headline) }];
  }
  return leadersOf(all).map((option, series) => ({
    name: all.options[option] ?? '',
    series,
    points: pointsOf(all.points, from, ofOption(option)),
  }));
};

const bandsOf = (question: Question, { all, families }: Charts, from: number): PlotBand[] => {
  if (families.length > 0 || question.question_type === 'multi') return [];
  const band = (
    low: (moment: Moment) => number | string | null | undefined,
    high: (moment: Moment) => number | string | null | undefined,
  ): PlotBand => {
    const spans = all.points.flatMap((moment) => {
      const [from_value, to_value] = [levelOf(low(moment)), levelOf(high(moment))];
      if (from_value === null || to_value === null) return [];
      return [{ at: new Date(moment.at).getTime(), low: from_value, high: to_value }];
    });
    return { spans: cut(spans, from) };
  };
  return isNumber(question)
    ? [
        band(
          ({ quantiles }) => quantiles?.p5,
          ({ quantiles }) => quantiles?.p95,
        ),
        band(
          ({ quantiles }) => quantiles?.p25,
          ({ quantiles }) => quantiles?.p75,
        ),
      ]
    : [
        band(
          ({ p25 }) => p25,
          ({ p75 }) => p75,
        ),
      ];
};

/** The axis shows the part of the range that the lines and bands cover, with a margin. */
const scaleOf = (
  question: Question,
  lines: readonly PlotLine[],
  bands: readonly PlotBand[],
): PlotScale => {
  const values = [
    ...lines.flatMap(({ points }) => points.map(({ value }) => value)),
    ...bands.flatMap(({ spans }) => spans.flatMap(({ low, high }) => [low, high])),
  ];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (!isNumber(question)) {
    return { ...fitPercent(least, most), kind: 'percent', text: (value) => percentText(value) };
  }
  const [min = 0, max = 1] = [levelOf(question.range?.min), levelOf(question.range?.max)];
  const room = Math.max((most - least) * 0.15, ((max as number) - (min as number)) / 50);
  const is_date = question.question_type === 'date';
  return {
    low: Math.max(min as number, least - room),
    high: Math.min(max as number, most + room),
    kind: is_date ? 'date' : 'number',
    ...(question.range?.unit ? { unit: question.range.unit } : {}),
    text: (value) => {
      if (is_date) return valueText(new Date(value).toISOString(), question);
      return valueText(value, question);
    },
  };
};

const spanOf = (question: Question, points: readonly Moment[], range: string, now: Date) => {
  const { status, resolved_at, closes_at } = question;
  const ended = status === 'open' ? now.toISOString() : (resolved_at ?? closes_at);
  const first = new Date(points[0]?.at ?? question.opens_at).getTime();
  const last = new Date(points.at(-1)?.at ?? first).getTime();
  const to = Math.max(last, Math.min(new Date(ended).getTime(), now.getTime()));
  const window = ranges[range as keyof typeof ranges];
  const from = Math.max(first, window === undefined ? first : to - window);
  return to - from < 600_000 ? { from: to - 600_000, to } : { from, to };
};

const summaryOf = (lines: readonly PlotLine[], { text }: PlotScale): string => {
  const parts = lines.map(({ name, points }) => {
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined) return `${name}: no forecasts yet`;
    const [was, is] = [text(first.value), text(last.value)];
    if (was === is) return `${name} at ${is}`;
    return `${name} from ${was} to ${is}`;
  });
  return `${parts.join('; ')}.`;
};

/** The times of forecasts and of their latest revisions. */
const rugOf = (forecasts: readonly Forecast[]) =>
  forecasts.flatMap(({ created_at, revised_at }) => [
    { at: Date.parse(created_at), is_revision: false },
    ...(revised_at === null ? [] : [{ at: Date.parse(revised_at), is_revision: true }]),
  ]);

interface ChartProps {
  readonly question: Question;
  readonly charts: Charts;
  readonly forecasts: readonly Forecast[];
  readonly query: Query;
  readonly path: string;
  readonly now: Date;
}

/** Everything that the chart and its table show in the chosen range. */
const shownOf = ({ question, charts, query, now }: Omit<ChartProps, 'forecasts' | 'path'>) => {
  const { points } = charts.all;
  const span = spanOf(question, points, String(query['range'] ?? 'all'), now);
  const lines = linesOf(question, charts, span.from);
  const bands = bandsOf(question, charts, span.from);
  return { ...span, lines, bands, scale: scaleOf(question, lines, bands) };
};

/** The chart without its legend and choices. */
const Plot = ({
  place,
  shown: { from, to, lines, bands, scale },
  question,
  charts,
  forecasts,
}: Pick<ChartProps, 'question' | 'charts' | 'forecasts'> & {
  place: 'page' | 'card';
  shown: ReturnType<typeof shownOf>;
}) => {
  const outcome = outcomeText(question);
  const resolved_at = outcome === null ? null : question.resolved_at;
  return (
    <TimeChart
      place={place}
      label={summaryOf(lines, scale)}
      from={from}
      to={to}
      scale={scale}
      lines={lines}
      bands={bands}
      rug={rugOf(forecasts)}
      counts={charts.all.points.map(({ at, count }) => ({ at: Date.parse(at), value: count }))}
      end={
        resolved_at === null
          ? undefined
          : {
              at: Date.parse(resolved_at),
              label: `Outcome: ${outcome}`,
              level: levelOf(question.outcome_value) ?? undefined,
            }
      }
    />
  );
};

/** The chart of all times, for a card. */
export const CardPlot = (props: Pick<ChartProps, 'question' | 'charts' | 'now'>) => (
  <Plot {...props} place="card" forecasts={[]} shown={shownOf({ ...props, query: {} })} />
);

export const ChartSection = ({ path, ...props }: ChartProps) => {
  const { question, query } = props;
  const shown = shownOf(props);
  const { lines, bands, scale } = shown;
  const is_by_family = query['series'] === 'families';
  const is_folded = question.question_type === 'multi' && question.options.length > lines.length;
  return (
    <section class="chart" aria-label="Forecast over time" data-live="chart">
      <Plot {...props} place="page" shown={shown} />
      {lines.length > 1 && <PlotLegend lines={lines} text={scale.text} />}
      <div class="row chart-choices">
        <Choices
          label="Time shown"
          path={path}
          query={query}
          name="range"
          usual="all"
          choices={range_choices}
        />
        <Choices
          label="Lines shown"
          path={path}
          query={query}
          name="series"
          choices={series_choices(question.question_type === 'multi')}
        />
      </div>
      <p class="soft">
        <small>
          {bands.length === 1 &&
            'The band shows the middle 50% of the forecasts; the headline may lie outside it. '}
          {bands.length === 2 && 'The bands show the 50% and 90% ranges. '}
          {is_folded && !is_by_family && 'Only the leading options are shown. '}
          Ticks at the bottom are forecasts; longer ones are revisions.
        </small>
      </p>
    </section>
  );
};

/** The figures of the chart as a table. */
export const ChartTable = (props: Omit<ChartProps, 'forecasts' | 'path'>) => {
  const { lines, scale } = shownOf(props);
  return <PlotTable lines={lines} text={scale.text} />;
};

const density_sizes = [
  { look: 'wide-plot', width: 740, height: 190, ticks: 6 },
  { look: 'narrow-plot', width: 350, height: 150, ticks: 3 },
] as const;

/** Draws how likely the crowd thinks each number or date is. */
export const Density = ({
  question,
  consensus: { linear_pool, headline },
  forecasts,
}: {
  question: Question;
  consensus: Consensus;
  forecasts: readonly Forecast[];
}) => {
  if (linear_pool === undefined || headline === undefined) return null;
  const [min, max] = [levelOf(linear_pool.min), levelOf(linear_pool.max)];
  if (min === null || max === null) return null;
  const { p25, p50, p75 } = headline;
  const [low, middle, high] = [p25, p50, p75].map((value) => valueText(value, question));
  const drawn = {
    desc: `How likely each value is: median ${middle}, 50% between ${low} and ${high}`,
    cdf: linear_pool.cdf.map((percent) => percent / 100),
    quartiles: [p25, p50, p75].map((value) => ({
      at: levelOf(value) ?? min,
      label: `${valueText(value, question)}`,
    })),
    outcome: levelOf(question.outcome_value),
    medians: forecasts.flatMap(({ quartiles }) => {
      const at = levelOf(quartiles?.[1]);
      return at === null ? [] : [at];
    }),
  };
  const axisOf = question.question_type === 'date' ? timeAxis : numberAxis;
  return (
    <section class="chart" aria-label="Distribution of the forecast" data-live="density">
      {density_sizes.map(({ look, ticks, ...size }) => (
        <div
          key={look}
          class={look}
          dangerouslySetInnerHTML={{
            __html: drawDensity({ ...drawn, ...size, x: axisOf(min, max, ticks) }),
          }}
        />
      ))}
      <p class="soft">
        <small>
          The chances stated by all agents together: the area over a range is its chance. Lines: the
          median and the middle 50% of the headline. Ticks below: the medians of agents.
        </small>
      </p>
    </section>
  );
};
