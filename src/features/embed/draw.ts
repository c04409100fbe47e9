import { area, curveStepAfter, line } from 'd3-shape';
import { escapeHtml } from '../../web/page.js';
import type { Consensus } from '../consensus/index.js';
import type { Chart, ChartPoint } from '../history/index.js';
import { dayText, percentText, plainLine } from './rules.js';

/**
 * The small pictures of the widget, as SVG inside its page. Their colours are classes of the page's
 * style; widths and heights are attributes, because the page allows no style of an element. What
 * follows the consensus names the member it shows: `data-w` a width in percent, `data-h` a column.
 */

/** A bar that is full at 100; `width` and `x` are in percent of it. */
export const drawBar = (value: number | null, source: string, label: string): string =>
  `<svg class="bar" role="img" aria-label="${escapeHtml(label)}" width="100%" height="8">` +
  '<rect class="rest" width="100%" height="8" rx="4"/>' +
  `<rect class="part" data-w="${source}" width="${value ?? 0}%" height="8" rx="4"/></svg>`;

const column_width = 9;
const column_height = 36;

/** The ten bins of what is stated, as columns above an axis from 0 to 100. */
export const drawHistogram = ({ histogram }: Consensus): string => {
  const most = Math.max(1, ...histogram);
  const columns = histogram.map((count, bin) => {
    const height = Math.round((column_height * count * 10) / most) / 10;
    const place = `x="${bin * 10 + 0.5}" y="${column_height - height}"`;
    const size = `width="${column_width}" height="${height}"`;
    return `<rect class="${bin < 5 ? 'no' : 'yes'}" data-h="${bin}" ${place} ${size}/>`;
  });
  const told = histogram
    .map((count, bin) => (count === 0 ? '' : `${bin * 10} to ${bin * 10 + 10}%: ${count}`))
    .filter((text) => text !== '')
    .join('; ');
  return (
    `<svg class="spread" role="img" aria-label="Stated chances. ${told}" ` +
    `viewBox="0 0 100 ${column_height}" preserveAspectRatio="none" width="100%" height="44">` +
    `${columns.join('')}</svg>` +
    '<p class="axis" aria-hidden="true"><span>0%</span><span>50%</span><span>100%</span></p>'
  );
};

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

/** Of points from left to right in a box of 100 by 100; a figure holds until the next. */
const makePaths = ({ points, shape }: Chart) => {
  const first = points[0]?.at ?? 0;
  const length = (points.at(-1)?.at ?? 0) - first;
  const places = points.map(({ at }) => (length === 0 ? 0 : (100 * (at - first)) / length));
  /** The last figure holds until the end. */
  const xOf = (n: number): number => places[n] ?? 100;
  const numbers = [...points.keys(), points.length];
  const pointOf = (n: number): ChartPoint | undefined => points[n] ?? points.at(-1);
  const y = (value: number | null | undefined): number => 100 - (value ?? 0);
  return {
    line: (values: Line['values']): string => {
      const valueAt = (n: number) => values[Math.min(n, values.length - 1)];
      const path = line<number>(xOf, (n) => y(valueAt(n))).defined((n) => valueAt(n) !== null);
      return path.curve(curveStepAfter).digits(2)(numbers) ?? '';
    },
    /** The middle half of the forecasts. */
    band: (): string => {
      if (shape.question_type !== 'binary') return '';
      const path = area<number>(
        xOf,
        (n) => y(pointOf(n)?.p25),
        (n) => y(pointOf(n)?.p75),
      );
      return `<path class="band" d="${path.curve(curveStepAfter).digits(2)(numbers) ?? ''}"/>`;
    },
  };
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
  const draw = makePaths(chart);
  const grid = [0, 25, 50, 75, 100].map((y) => `<path class="grid" d="M0 ${y}H100"/>`).join('');
  const paths = lines.map(({ values }, n) => `<path class="line l${n}" d="${draw.line(values)}"/>`);
  const told = lines.map(({ name, now }) => `${plainLine(name)} ${percentText(now)}`).join('; ');
  const days = [first, last].map(({ at }) => dayText(new Date(at)));
  const label = `From ${days.join(' to ')}. At the end: ${told}`;
  const is_one = chart.shape.question_type === 'binary';
  return (
    '<p class="ends" aria-hidden="true"><span>100%</span><span>50%</span><span>0%</span></p>' +
    `<svg class="course" role="img" aria-label="${escapeHtml(label)}" viewBox="0 0 100 100" ` +
    `preserveAspectRatio="none" width="100%" height="170">${grid}${draw.band()}` +
    `${paths.reverse().join('')}</svg>` +
    `<p class="axis" aria-hidden="true"><span>${days[0]}</span><span>${days[1]}</span></p>` +
    (is_one
      ? '<p class="note">The band holds the middle half of the forecasts.</p>'
      : legendOf(lines))
  );
};
