import { escapeHtml } from '../../web/page.js';
import type { Chart, ChartPoint } from '../history/index.js';
import { dayText, percentText, plainLine } from './rules.js';

/**
 * The course of the consensus, as wide as the frame: lines in a box of 100 by 100 that is
 * stretched, with strokes that are not, and words around it that are text of the page. A figure
 * holds until the next forecast, so lines go in steps.
 */

const most_lines = 5;

interface Line {
  readonly name: string;
  readonly now: number | null;
  readonly values: readonly (number | null)[];
}

const linesOf = ({ shape, points }: Chart): readonly Line[] => {
  const last = points.at(-1);
  if (shape.question_type === 'binary') {
    const values = points.map(({ mean_probability }) => mean_probability);
    return [{ name: 'Chance of Yes', now: last?.mean_probability ?? null, values }];
  }
  return shape.options
    .map((name, n) => ({
      name,
      now: last?.option_probabilities[n] ?? null,
      values: points.map(({ option_probabilities }) => option_probabilities[n] ?? null),
    }))
    .sort((a, b) => (b.now ?? 0) - (a.now ?? 0))
    .slice(0, most_lines);
};

/** To a hundredth of a percent, without zeros that say nothing. */
const short = (value: number): string => String(Math.round(value * 100) / 100);

/** Places of the points from left to right; one alone is a line through the middle of its time. */
const placesOf = (points: readonly ChartPoint[]): readonly number[] => {
  const first = points[0]?.at ?? 0;
  const length = (points.at(-1)?.at ?? 0) - first;
  return points.map(({ at }) => (length === 0 ? 0 : (100 * (at - first)) / length));
};

const stepsOf = (places: readonly number[], values: Line['values']): string => {
  let path = '';
  for (const [n, value] of values.entries()) {
    if (value === null) continue;
    const x = short(places[n] ?? 0);
    const y = short(100 - value);
    path += path === '' ? `M${x} ${y}` : `H${x}V${y}`;
  }
  return path === '' ? '' : `${path}H100`;
};

/** The middle half of the forecasts. */
const bandOf = ({ points, shape }: Chart, places: readonly number[]): string => {
  if (shape.question_type !== 'binary') return '';
  const upper = stepsOf(
    places,
    points.map(({ p75 }) => p75),
  );
  const steps = points.map(({ p25 }, n) => ({ x: places[n + 1] ?? 100, y: 100 - (p25 ?? 0) }));
  const back = steps.reverse().map(({ x, y }, n) => {
    const from = short(places[points.length - 1 - n] ?? 0);
    return `L${short(x)} ${short(y)}H${from}`;
  });
  return upper === '' ? '' : `<path class="band" d="${upper}${back.join('')}Z"/>`;
};

const legendOf = (lines: readonly Line[]): string => {
  const items = lines.map(
    ({ name, now }, n) =>
      `<li><svg class="key" width="14" height="8" aria-hidden="true">` +
      `<path class="line l${n}" d="M0 4H14"/></svg>` +
      `<bdi>${escapeHtml(name)}</bdi> <b>${escapeHtml(percentText(now))}</b></li>`,
  );
  return `<ul class="keys">${items.join('')}</ul>`;
};

export const drawCourse = (chart: Chart): string | null => {
  const { points } = chart;
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return null;
  const lines = linesOf(chart);
  const places = placesOf(points);
  const grid = [0, 25, 50, 75, 100].map((y) => `<path class="grid" d="M0 ${y}H100"/>`).join('');
  const paths = lines.map(
    ({ values }, n) => `<path class="line l${n}" d="${stepsOf(places, values)}"/>`,
  );
  const told = lines.map(({ name, now }) => `${plainLine(name)} ${percentText(now)}`).join('; ');
  const days = [first, last].map(({ at }) => dayText(new Date(at)));
  const label = `From ${days.join(' to ')}. At the end: ${told}`;
  const is_one = chart.shape.question_type === 'binary';
  return (
    '<p class="ends" aria-hidden="true"><span>100%</span><span>50%</span><span>0%</span></p>' +
    `<svg class="course" role="img" aria-label="${escapeHtml(label)}" viewBox="0 0 100 100" ` +
    `preserveAspectRatio="none" width="100%" height="170">${grid}${bandOf(chart, places)}` +
    `${paths.reverse().join('')}</svg>` +
    `<p class="axis" aria-hidden="true"><span>${days[0]}</span><span>${days[1]}</span></p>` +
    (is_one
      ? '<p class="note">The band holds the middle half of the forecasts.</p>'
      : legendOf(lines))
  );
};
