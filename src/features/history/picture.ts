import type { Markup, SvgTheme } from '../../kit/svg.js';
import {
  type Axis,
  drawBand,
  drawChart,
  drawDot,
  drawNote,
  drawSteps,
  type LegendItem,
  month_names,
  type Plot,
  type Point,
  percentAxis,
  timeAxis,
} from '../../kit/svg-chart.js';
import type { Chart, ChartPoint } from './chart.js';

/** The chart of a question as a picture. */

export interface PictureOf {
  readonly question: string;
  readonly options: readonly string[];
  readonly status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly resolved_at: Date | null;
  readonly updated_at: Date;
}

export interface PictureParts {
  readonly question: PictureOf;
  readonly chart: Chart;
  readonly family: string | null;
  readonly theme: SvgTheme;
  /** Units; 800 where it is not named. */
  readonly width?: number;
  /** Where the picture comes from, as its readers know the place. */
  readonly site: string;
}

const usual_width = 800;
const minute_ms = 60_000;

// Written here, and not by a locale, so that every machine draws the same.
const number = (value: number): string => String(value).replace(/\B(?=(?:\d{3})+$)/g, ',');
const percent = (value: number | null): string => (value === null ? '–' : `${value} %`);
const dayOf = (time: Date): string =>
  `${time.getUTCDate()} ${month_names[time.getUTCMonth()]} ${time.getUTCFullYear()}`;
const minuteOf = (time: Date): string => `${dayOf(time)}, ${time.toISOString().slice(11, 16)} UTC`;

const standOf = ({
  status,
  outcome,
  correct_options,
  closes_at,
  resolved_at,
}: PictureOf): string => {
  if (status === 'resolved') {
    const right = correct_options?.join(', ') ?? (outcome === true ? 'YES' : 'NO');
    return `resolved ${right}${resolved_at === null ? '' : ` on ${dayOf(resolved_at)}`}`;
  }
  if (status === 'voided') return 'voided';
  return status === 'closed' ? 'closed' : `open until ${dayOf(closes_at)}`;
};

const is_multi = (chart: Chart): boolean => chart.shape.question_type === 'multi';

const subtitleOf = ({ question, chart, family }: PictureParts): string => {
  const last = chart.points.at(-1);
  const stand = standOf(question);
  const whose = family === null ? 'predictions' : `predictions of ${family}`;
  if (last === undefined) return `No ${whose} yet · ${stand}`;
  const head = is_multi(chart)
    ? `${last.leading_option} leads with a mean of ${percent(last.forecast)}`
    : `Mean probability of YES ${percent(last.mean_probability)}`;
  const count =
    last.count === 1 && family === null ? '1 prediction' : `${number(last.count)} ${whose}`;
  return `${head} · ${count} · ${stand}`;
};

/** What ended the question; nothing has while it is open. */
const endOf = ({ status, closes_at, resolved_at, updated_at }: PictureOf): number | null => {
  if (status === 'open' || status === 'draft') return null;
  return Math.min(closes_at.getTime(), (resolved_at ?? updated_at).getTime());
};

/**
 * From the first prediction to a little after the last, or to the end of a question that ended soon
 * after it. A history of a moment stands at the end of ten minutes.
 */
const timesOf = ({ question, chart, width = usual_width }: PictureParts): Axis => {
  const most = Math.max(2, Math.floor(width / 114));
  const first = chart.points[0]?.at;
  const last = chart.points.at(-1)?.at;
  if (first === undefined || last === undefined) {
    return timeAxis(question.opens_at.getTime(), question.closes_at.getTime(), most);
  }
  const is_moment = last - first < minute_ms;
  const from = is_moment ? last - 10 * minute_ms : first;
  const length = last - from;
  // What stood last is seen, too.
  const end = endOf(question) ?? last + length / 30;
  return timeAxis(from, end > last ? Math.min(end, last + length / 4) : last, most);
};

type Line = readonly Point[];

/** The points of a figure, the last of which holds until the end of the axis. */
const lineOf = (
  points: readonly ChartPoint[],
  { to }: Axis,
  read: (point: ChartPoint) => number | null,
): Line => {
  const line = points.flatMap((point) => {
    const y = read(point);
    return y === null ? [] : [{ x: point.at, y }];
  });
  const last = line.at(-1);
  return last === undefined ? line : [...line, { x: to, y: last.y }];
};

/** Each line with what it says now. */
const binaryLegend = ({ points }: Chart): readonly LegendItem[] => {
  const last = points.at(-1) as ChartPoint;
  const { mean_probability, extremized, yes_percent, p25, p75 } = last;
  return [
    { label: `Mean probability ${percent(mean_probability)}`, series: 0, kind: 'line' },
    ...(extremized === null
      ? []
      : [
          {
            label: `Pooled ${percent(extremized)}`,
            ...{ series: 1, kind: 'dashed' as const },
          },
        ]),
    { label: `Say YES ${percent(yes_percent)}`, series: 8, kind: 'dotted' },
    { label: `Middle half of predictions ${p25}–${percent(p75)}`, series: 0, kind: 'band' },
  ];
};

const drawBinary = (plot: Plot, points: readonly ChartPoint[], x: Axis): (Markup | null)[] => {
  const mean = lineOf(points, x, (point) => point.mean_probability);
  const last = points.at(-1) as ChartPoint;
  const spans = points.map(({ at, p25, p75 }) => ({ x: at, low: p25 ?? 0, high: p75 ?? 0 }));
  const band = [...spans, { x: x.to, low: last.p25 ?? 0, high: last.p75 ?? 0 }];
  const share = lineOf(points, x, ({ yes_percent }) => yes_percent);
  const pool = lineOf(points, x, ({ extremized }) => extremized);
  const label = `${percent(last.mean_probability)} after ${number(last.count)}`;
  return [
    drawBand(plot, band, 0),
    drawSteps(plot, share, { series: 8, kind: 'dotted', width: 1.5 }),
    drawSteps(plot, pool, { series: 1, kind: 'dashed', width: 1.75 }),
    drawSteps(plot, mean, { series: 0, width: 2.75 }),
    drawDot(plot, { x: last.at, y: last.mean_probability ?? 0 }, { series: 0, label }),
  ];
};

const drawMulti = (plot: Plot, { points, shape }: Chart, x: Axis): (Markup | null)[] => {
  const last = points.at(-1) as ChartPoint;
  return shape.options.flatMap((option, n) => {
    const mean = (point: ChartPoint): number => point.option_probabilities[n] ?? 0;
    const label = `${option}: ${percent(mean(last))}`;
    return [
      drawSteps(plot, lineOf(points, x, mean), { series: n, width: 2.25 }),
      drawDot(plot, { x: last.at, y: mean(last) }, { series: n, label }),
    ];
  });
};

const multiLegend = ({ shape, points }: Chart): readonly LegendItem[] =>
  shape.options.map((option, series) => {
    const mean = points.at(-1)?.option_probabilities[series];
    return {
      label: mean === undefined ? option : `${option}: ${percent(mean)}`,
      series,
      kind: 'line',
    };
  });

const legendOf = (chart: Chart): readonly LegendItem[] => {
  if (chart.points.length === 0) return [];
  return is_multi(chart) ? multiLegend(chart) : binaryLegend(chart);
};

/** Wide ones are as 16 to 9, narrow ones higher, so that the plot has room. */
export const heightOf = (width: number): number =>
  Math.round(Math.max(width * 0.5625, 530 - width / 10));

export const drawPicture = (parts: PictureParts): string => {
  const { question, chart, theme, site, width = usual_width } = parts;
  const x = timesOf(parts);
  const subtitle = subtitleOf(parts);
  const last = chart.points.at(-1);
  const as_of = last === undefined ? '' : ` · last prediction ${minuteOf(new Date(last.at))}`;
  return drawChart({
    title: question.question,
    subtitle,
    desc: `The consensus over time. ${subtitle}.`,
    legend: legendOf(chart),
    source: `${site}${as_of} · log offset ${chart.offset} · times in UTC`,
    x,
    y: percentAxis(4),
    theme,
    width,
    height: heightOf(width),
    draw: (plot) => {
      if (last === undefined) return [drawNote(plot, 'No predictions yet')];
      return is_multi(chart) ? drawMulti(plot, chart, x) : drawBinary(plot, chart.points, x);
    },
  });
};
