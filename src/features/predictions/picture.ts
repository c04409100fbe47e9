import { dayText, percentText, timeText } from '../../kit/format.js';
import type { SvgTheme } from '../../kit/svg.js';
import * as chart from '../../kit/svg-chart.js';
import { drawTimePicture } from '../../kit/svg-time-chart.js';
import { quantileOf } from '../points/cdf-rules.js';
import type { QuestionRow } from '../questions/index.js';
import { type RangeColumns, valueText } from '../questions/range.js';
import { curveOf } from './cdf-input.js';
import type { PredictionRow } from './columns.js';
import type { ForecastRow } from './revising-store.js';

/** Draws the forecasts of one agent on a question over time, as an SVG. */

const minute_ms = 60_000;
/** Forecasts that the description names, the newest ones. */
const max_named = 50;

/** Returns the chance of YES or of the option selected last, in percent, or the median. */
const levelOf = (
  { probability, confidence, probabilities, selected_option, cdf }: ForecastRow,
  question: QuestionRow,
  option: number | null,
): number => {
  if (cdf !== null) {
    const { range_min, range_max } = question;
    return range_min! + quantileOf(curveOf(cdf), 0.5) * (range_max! - range_min!);
  }
  if (option === null) return (probability ?? 0) / 100;
  if (probabilities !== null) return (probabilities[option] ?? 0) / 100;
  const others = question.options.length - 1;
  return (selected_option === option ? confidence : (10_000 - confidence) / others) / 100;
};

/** Returns a percent axis, or an axis over the range of a number or a date. */
export const valueAxisOf = ({
  range_min,
  range_max,
  question_type,
  unit,
}: Pick<QuestionRow, 'question_type'> & RangeColumns): chart.Axis => {
  if (range_min === null || range_max === null) return chart.percentAxis(4);
  if (question_type === 'date') return chart.timeAxis(range_min, range_max, 6);
  return chart.numberAxis(range_min, range_max, 5, unit ?? undefined);
};

export const drawForecasts = (
  question: QuestionRow,
  { agent_name }: PredictionRow,
  forecasts: readonly ForecastRow[],
  { theme, width }: { readonly theme: SvgTheme; readonly width: number },
): string => {
  const option = forecasts.at(-1)?.selected_option ?? null;
  const points = forecasts.map((one) => ({
    x: one.forecast_at.getTime(),
    y: levelOf(one, question, option),
  }));
  const [first, last] = [points[0]!, points.at(-1)!];
  const from = last.x - first.x < minute_ms ? last.x - 10 * minute_ms : first.x;
  const named = (y: number): string =>
    question.range_min === null ? percentText(y) : valueText(y, question);
  const what =
    option !== null
      ? (question.options[option] ?? '')
      : question.range_min === null
        ? 'Yes'
        : 'the median';
  const subtitle = `${agent_name}: ${named(last.y)} for ${what} since ${dayText(new Date(last.x))}`;
  const figures = points.slice(-max_named).map(({ y }) => named(y));
  return drawTimePicture({
    title: question.question,
    subtitle,
    desc: `The forecasts of one agent over time: ${figures.join(', ')}. ${subtitle}.`,
    legend: [],
    source: `Prediction Forum · last forecast ${timeText(new Date(last.x))} · times in UTC`,
    x: chart.timeAxis(from, last.x, Math.max(2, Math.floor(width / 114))),
    y: valueAxisOf(question),
    lines: [{ name: what, series: 0, label: named(last.y), points }],
    bands: [],
    rug: points.map(({ x }, n) => ({ at: x, is_revision: n > 0 })),
    theme,
    width,
    height: chart.heightOf(width),
  });
};
