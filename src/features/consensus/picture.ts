import { dayText, grouped, percentText, timeText } from '../../kit/format.js';
import type { SvgTheme } from '../../kit/svg.js';
import * as chart from '../../kit/svg-chart.js';
import { drawTimePicture, type TimeChart, type TimeLine } from '../../kit/svg-time-chart.js';
import { valueAxisOf } from '../predictions/picture.js';
import type { QuestionRow } from '../questions/index.js';
import { type RangeColumns, showOutcome, valueText } from '../questions/range.js';
import { isNumber } from './numbers.js';
import type { Course } from './run.js';
import type { Point as Moment } from './schema.js';

/** Draws the consensus of a question over time, for pictures and for the widget. */

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
const max_lines = 5;

/** The outcome in words. Null if the question is not resolved. */
const outcomeOf = (question: PictureOf): string | null => {
  const { status, outcome, correct_options } = question;
  if (status !== 'resolved') return null;
  const value = showOutcome(question);
  if (value !== null) return valueText(value, question);
  return correct_options?.join(', ') ?? (outcome === true ? 'Yes' : 'No');
};

const statusOf = (question: PictureOf): string => {
  const { status, closes_at, resolved_at } = question;
  const outcome = outcomeOf(question);
  if (outcome !== null) {
    return `resolved ${outcome}${resolved_at === null ? '' : ` on ${dayText(resolved_at)}`}`;
  }
  if (status === 'voided') return 'voided';
  return status === 'closed' ? 'closed' : `open until ${dayText(closes_at)}`;
};

const subtitleOf = (question: PictureOf, { points }: Course): string => {
  const last = points.at(-1);
  const status = statusOf(question);
  if (last === undefined) return `No forecasts yet · ${status}`;
  const figure = isNumber(question)
    ? `median ${valueText(last.forecast ?? 0, question)}`
    : `${percentText(last.forecast)} chance of ${last.leading_option ?? 'Yes'}`;
  const count = last.count === 1 ? '1 forecast' : `${grouped(last.count)} forecasts`;
  return `${figure} · ${count} · ${status}`;
};

const timesOf = ({ opens_at, closes_at }: PictureOf, points: readonly Moment[], most: number) => {
  const first = points[0]?.at ?? opens_at.getTime();
  const last = points.at(-1)?.at ?? closes_at.getTime();
  // If all forecasts are within one minute, the axis is at least ten minutes long.
  return chart.timeAxis(last - first < minute_ms ? last - 10 * minute_ms : first, last, most);
};

const lineOf = (
  points: readonly Moment[],
  read: (point: Moment) => number | null | undefined,
): readonly chart.Point[] =>
  points.flatMap((point) => {
    const y = read(point);
    return y === null || y === undefined ? [] : [{ x: point.at, y }];
  });

/** One line, or a line for each of the leading options, the highest first. */
const linesOf = (question: PictureOf, { shape, points }: Course): readonly TimeLine[] => {
  const last = points.at(-1);
  if (last === undefined) return [];
  if (shape.options.length === 0) {
    const is_number = isNumber(question);
    const figure = last.forecast ?? 0;
    const label = is_number ? valueText(figure, question) : percentText(figure);
    const line = lineOf(points, ({ forecast }) => forecast);
    return [{ name: is_number ? 'Median' : 'Chance of Yes', series: 0, label, points: line }];
  }
  return shape.options
    .map((name, n) => ({ name, n, now: last.option_forecasts[n] ?? 0 }))
    .sort((a, b) => b.now - a.now)
    .slice(0, max_lines)
    .map(({ name, n, now }, series) => ({
      name,
      series,
      label: `${percentText(now)} ${name}`,
      points: lineOf(points, ({ option_forecasts }) => option_forecasts[n]),
    }));
};

type Band = TimeChart['bands'][number];

/** The middle half of the forecasts; for a number or a date the 90 % and the 50 % range. */
const bandsOf = (question: PictureOf, { shape, points }: Course): readonly Band[] => {
  if (shape.options.length > 0) return [];
  if (!isNumber(question)) {
    return [points.map(({ at, p25, p75 }) => ({ x: at, low: p25 ?? 0, high: p75 ?? 0 }))];
  }
  const levels = [
    [0, 4],
    [1, 3],
  ] as const;
  return levels.map(([low, high]) =>
    points.map(({ at, fan }) => ({ x: at, low: fan?.[low] ?? 0, high: fan?.[high] ?? 0 })),
  );
};

/** The axis of percentages shows the part that lines and bands cover. */
const valuesOf = (
  question: PictureOf,
  lines: readonly TimeLine[],
  bands: readonly Band[],
): chart.Axis => {
  if (isNumber(question) || lines.length === 0) return valueAxisOf(question);
  const values = [
    ...lines.flatMap(({ points }) => points.map(({ y }) => y)),
    ...bands.flatMap((band) => band.flatMap(({ low, high }) => [low, high])),
  ];
  const { low, high } = chart.fitPercent(Math.min(...values), Math.max(...values));
  return chart.percentAxis(5, { from: low, to: high });
};

/** Returns what a chart of the consensus shows; `most` limits the labels of its time axis. */
export const timeChartOf = (question: PictureOf, course: Course, most: number) => {
  const { points } = course;
  const lines = linesOf(question, course);
  const bands = bandsOf(question, course);
  return {
    desc: `The consensus over time. ${subtitleOf(question, course)}.`,
    x: timesOf(question, points, most),
    y: valuesOf(question, lines, bands),
    lines,
    bands,
    rug: [],
  };
};

const bandNames = (question: PictureOf): readonly chart.LegendItem[] =>
  isNumber(question)
    ? [
        { label: '50% range', series: 0, kind: 'inner band' },
        { label: '90% range', series: 0, kind: 'band' },
      ]
    : [{ label: 'Middle half of the forecasts', series: 0, kind: 'band' }];

export const drawPicture = (
  question: PictureOf,
  course: Course,
  { theme, width }: Look,
): string => {
  const shown = timeChartOf(question, course, Math.max(2, Math.floor(width / 114)));
  const { points, last_forecast_ms: last_ms, offset } = course;
  const as_of = last_ms === null ? '' : ` · last forecast ${timeText(new Date(last_ms))}`;
  return drawTimePicture({
    ...shown,
    title: question.question,
    subtitle: subtitleOf(question, course),
    legend: shown.bands.length > 0 && points.length > 0 ? bandNames(question) : [],
    source: `Prediction Forum${as_of} · log offset ${offset} · times in UTC`,
    theme,
    width,
    height: chart.heightOf(width),
  });
};
