import { dayText, grouped, timeText } from '../../kit/format.js';
import type { Markup, SvgTheme } from '../../kit/svg.js';
import * as chart from '../../kit/svg-chart.js';
import { valueAxisOf } from '../predictions/picture.js';
import type { QuestionRow } from '../questions/index.js';
import { type RangeColumns, showOutcome, valueText } from '../questions/range.js';
import { isNumber } from './numbers.js';
import type { Course } from './run.js';
import type { Point as Moment } from './schema.js';

/** Draws the chart of a question as SVG. */

export type PictureOf = Pick<
  QuestionRow,
  | 'question'
  | 'question_type'
  | 'status'
  | 'outcome'
  | 'correct_options'
  | 'outcome_value'
  | 'opens_at'
  | 'closes_at'
  | 'resolved_at'
  | keyof RangeColumns
>;

export interface Look {
  readonly theme: SvgTheme;
  /** In SVG units. The text has the same size at every width. */
  readonly width: number;
}

const minute_ms = 60_000;

const percent = (value: number | null): string => (value === null ? '–' : `${value} %`);

const statusOf = (question: PictureOf): string => {
  const { status, outcome, correct_options, closes_at, resolved_at } = question;
  if (status === 'resolved') {
    const value = showOutcome(question);
    const right =
      value === null
        ? (correct_options?.join(', ') ?? (outcome === true ? 'YES' : 'NO'))
        : valueText(value, question);
    return `resolved ${right}${resolved_at === null ? '' : ` on ${dayText(resolved_at)}`}`;
  }
  if (status === 'voided') return 'voided';
  return status === 'closed' ? 'closed' : `open until ${dayText(closes_at)}`;
};

const isMulti = ({ shape }: Course): boolean => shape.question_type === 'multi';

const subtitleOf = (question: PictureOf, course: Course): string => {
  const last = course.points.at(-1);
  const status = statusOf(question);
  if (last === undefined) return `No predictions yet · ${status}`;
  const head = isNumber(question)
    ? `median ${valueText(last.forecast ?? 0, question)}`
    : isMulti(course)
      ? `${last.leading_option} leads with ${percent(last.forecast)}`
      : `${percent(last.forecast)} chance of YES`;
  const count = last.count === 1 ? '1 prediction' : `${grouped(last.count)} predictions`;
  return `${head} · ${count} · ${status}`;
};

/** The axis ends a little after the last prediction, so that the last level is visible. */
const timesOf = (question: PictureOf, { points }: Course, width: number): chart.Axis => {
  const most = Math.max(2, Math.floor(width / 114));
  const first = points[0]?.at ?? question.opens_at.getTime();
  const last = points.at(-1)?.at ?? question.closes_at.getTime();
  // If all predictions are within one minute, the axis is at least ten minutes long.
  const from = last - first < minute_ms ? last - 10 * minute_ms : first;
  return chart.timeAxis(from, last + (last - from) / 30, most);
};

type Line = readonly chart.Point[];

/** Returns the points of a figure. The last value extends to the end of the axis. */
const lineOf = (
  points: readonly Moment[],
  { to }: chart.Axis,
  read: (point: Moment) => number | null,
): Line => {
  const line = points.flatMap((point) => {
    const y = read(point);
    return y === null ? [] : [{ x: point.at, y }];
  });
  const last = line.at(-1);
  return last === undefined ? line : [...line, { x: to, y: last.y }];
};

const legendOf = (question: PictureOf, { shape, points }: Course): readonly chart.LegendItem[] => {
  const last = points.at(-1);
  if (last === undefined) return [];
  if (last.fan !== undefined) {
    const [p5, p25, p50, p75, p95] = last.fan.map((value) => valueText(value, question));
    return [
      { label: `Median ${p50}`, series: 0, kind: 'line' },
      { label: `50 %: ${p25} to ${p75}`, series: 0, kind: 'inner band' },
      { label: `90 %: ${p5} to ${p95}`, series: 0, kind: 'band' },
    ];
  }
  if (shape.question_type === 'multi') {
    return shape.options.map((option, series) => ({
      label: `${option}: ${percent(last.option_forecasts[series] ?? null)}`,
      series,
      kind: 'line',
    }));
  }
  const { mean_probability, forecast, yes_percent, p25, p75 } = last;
  return [
    { label: `Forecast ${percent(forecast)}`, series: 0, kind: 'line' },
    { label: `Mean ${percent(mean_probability)}`, series: 1, kind: 'dashed' },
    { label: `Say YES ${percent(yes_percent)}`, series: 8, kind: 'dotted' },
    { label: `Middle half of predictions ${p25}–${percent(p75)}`, series: 0, kind: 'band' },
  ];
};

const drawBinary = (
  plot: chart.Plot,
  points: readonly Moment[],
  x: chart.Axis,
): (Markup | null)[] => {
  const mean = lineOf(points, x, (point) => point.mean_probability);
  const last = points.at(-1) as Moment;
  const spans = points.map(({ at, p25, p75 }) => ({ x: at, low: p25 ?? 0, high: p75 ?? 0 }));
  const band = [...spans, { x: x.to, low: last.p25 ?? 0, high: last.p75 ?? 0 }];
  const share = lineOf(points, x, ({ yes_percent }) => yes_percent);
  const headline = lineOf(points, x, ({ forecast }) => forecast);
  const label = `${percent(last.forecast)} after ${grouped(last.count)}`;
  return [
    chart.drawBand(plot, band, 0),
    chart.drawSteps(plot, share, { series: 8, kind: 'dotted', width: 1.5 }),
    chart.drawSteps(plot, mean, { series: 1, kind: 'dashed', width: 1.75 }),
    chart.drawSteps(plot, headline, { series: 0, width: 2.75 }),
    chart.drawDot(plot, { x: last.at, y: last.forecast ?? 0 }, { series: 0, label }),
  ];
};

/** Draws the median with its 50 % and 90 % bands. */
const drawFan = (
  plot: chart.Plot,
  question: PictureOf,
  { points }: Course,
  x: chart.Axis,
): (Markup | null)[] => {
  const last = points.at(-1) as Moment;
  const levelOf = ({ fan }: Moment, n: number): number => fan?.[n] ?? 0;
  const bandOf = (low: number, high: number) =>
    chart.drawBand(
      plot,
      [...points, { ...last, at: x.to }].map((point) => {
        return { x: point.at, low: levelOf(point, low), high: levelOf(point, high) };
      }),
      0,
    );
  const median = lineOf(points, x, ({ forecast }) => forecast);
  const y = last.forecast ?? 0;
  return [
    bandOf(0, 4),
    bandOf(1, 3),
    chart.drawSteps(plot, median, { series: 0, width: 2.75 }),
    chart.drawDot(plot, { x: last.at, y }, { series: 0, label: valueText(y, question) }),
  ];
};

const drawMulti = (
  plot: chart.Plot,
  { points, shape }: Course,
  x: chart.Axis,
): (Markup | null)[] => {
  const last = points.at(-1) as Moment;
  return shape.options.flatMap((option, n) => {
    const read = (point: Moment): number => point.option_forecasts[n] ?? 0;
    const label = `${option}: ${percent(read(last))}`;
    return [
      chart.drawSteps(plot, lineOf(points, x, read), { series: n, width: 2.25 }),
      chart.drawDot(plot, { x: last.at, y: read(last) }, { series: n, label }),
    ];
  });
};

export const drawPicture = (
  question: PictureOf,
  course: Course,
  { theme, width }: Look,
): string => {
  const x = timesOf(question, course, width);
  const subtitle = subtitleOf(question, course);
  const last = course.points.at(-1);
  const as_of = last === undefined ? '' : ` · last prediction ${timeText(new Date(last.at))}`;
  return chart.drawChart({
    title: question.question,
    subtitle,
    desc: `The consensus over time. ${subtitle}.`,
    legend: legendOf(question, course),
    source: `Prediction Forum${as_of} · log offset ${course.offset} · times in UTC`,
    x,
    y: valueAxisOf(question),
    theme,
    width,
    height: chart.heightOf(width),
    draw: (plot) => {
      if (last === undefined) return [chart.drawNote(plot, 'No predictions yet')];
      if (isNumber(question)) return drawFan(plot, question, course, x);
      return isMulti(course) ? drawMulti(plot, course, x) : drawBinary(plot, course.points, x);
    },
  });
};
