import { area, curveStepAfter, line } from 'd3-shape';
import { dayText, percentText, timeText } from '../../kit/format.js';
import { escapeHtml } from '../../kit/html.js';
import type { Consensus } from '../consensus/rules.js';
import type { Course } from '../consensus/run.js';
import { plainLine } from './rules.js';

/**
 * Draws the small charts of the widget as inline SVG. Colours are CSS classes, and widths and
 * heights are attributes, because the Content-Security-Policy forbids `style` attributes.
 */

export const drawBar = (value: number | null, label: string): string =>
  `<svg class="bar" role="img" aria-label="${escapeHtml(label)}" width="100%" height="8">` +
  '<rect class="rest" width="100%" height="8" rx="4"/>' +
  `<rect class="part" width="${value ?? 0}%" height="8" rx="4"/></svg>`;

const column_width = 9;
const column_height = 36;

/** Draws the stated chances in ten bins, as columns above an axis from 0 to 100. */
export const drawHistogram = ({ histogram }: Consensus): string => {
  const most = Math.max(1, ...histogram);
  const columns = histogram.map((count, bin) => {
    const height = Math.round((column_height * count * 10) / most) / 10;
    const place = `x="${bin * 10 + 0.5}" y="${column_height - height}"`;
    const size = `width="${column_width}" height="${height}"`;
    return `<rect class="${bin < 5 ? 'no' : 'yes'}" ${place} ${size}/>`;
  });
  const label = histogram
    .map((count, bin) => (count === 0 ? '' : `${bin * 10} to ${bin * 10 + 10}%: ${count}`))
    .filter((text) => text !== '')
    .join('; ');
  return (
    `<svg class="spread" role="img" aria-label="Number of forecasts by chance of Yes. ${label}" ` +
    `viewBox="0 0 100 ${column_height}" preserveAspectRatio="none" width="100%" height="44">` +
    `${columns.join('')}</svg>` +
    '<p class="axis" aria-hidden="true"><span>0%</span><span>50%</span><span>100%</span></p>'
  );
};

const max_lines = 5;

interface Line {
  readonly name: string;
  readonly values: readonly number[];
}

const nowOf = ({ values }: Line): string => percentText(values.at(-1) ?? null);

const linesOf = ({ shape, points }: Course): readonly Line[] =>
  shape.question_type === 'binary'
    ? [{ name: 'Chance of Yes', values: points.map(({ forecast }) => forecast ?? 0) }]
    : shape.options
        .map((name, n) => ({
          name,
          values: points.map(({ option_forecasts }) => option_forecasts[n] ?? 0),
        }))
        .sort((a, b) => (b.values.at(-1) ?? 0) - (a.values.at(-1) ?? 0))
        .slice(0, max_lines);

const legendOf = (lines: readonly Line[]): string => {
  const items = lines.map(
    (one, n) =>
      `<li><svg class="key" width="14" height="8" aria-hidden="true">` +
      `<path class="line l${n}" d="M0 4H14"/></svg>` +
      `<bdi>${escapeHtml(one.name)}</bdi> <b>${escapeHtml(nowOf(one))}</b></li>`,
  );
  return `<ul class="keys">${items.join('')}</ul>`;
};

/** Labels both ends of a time axis. If both ends share the day or minute, it is shown only once. */
export const endsOf = (from: number, to: number): readonly string[] => {
  const [first, last] = [new Date(from), new Date(to)];
  if (dayText(first) !== dayText(last)) return [dayText(first), dayText(last)];
  const [began, ended] = [timeText(first), timeText(last)];
  return began === ended ? [began] : [began, ended.replace(`${dayText(last)}, `, '')];
};

/**
 * Draws the consensus over time, as wide as the frame. A box of 100 by 100 is stretched to this
 * width, but its strokes keep their width and its labels are normal text of the page. Lines are
 * steps, because each value holds until the next forecast. The last value extends to the end.
 */
export const drawCourse = (course: Course): string | null => {
  const { points, shape } = course;
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return null;
  const lines = linesOf(course);
  const held = [...points, last];
  const length = last.at - first.at || 1;
  const x = (n: number): number =>
    n === points.length ? 100 : (100 * ((points[n]?.at ?? 0) - first.at)) / length;
  const pathOf = ({ values }: Line): string =>
    line<number>(
      (n) => x(n),
      (n) => 100 - (values[n] ?? values.at(-1) ?? 0),
    )
      .curve(curveStepAfter)
      .digits(2)([...held.keys()]) ?? '';
  const band = area<number>(
    (n) => x(n),
    (n) => 100 - (held[n]?.p25 ?? 0),
    (n) => 100 - (held[n]?.p75 ?? 0),
  )
    .curve(curveStepAfter)
    .digits(2);
  const is_binary = shape.question_type === 'binary';
  const middle_half = is_binary ? `<path class="band" d="${band([...held.keys()]) ?? ''}"/>` : '';
  const grid = [0, 25, 50, 75, 100].map((y) => `<path class="grid" d="M0 ${y}H100"/>`).join('');
  const paths = lines.map((one, n) => `<path class="line l${n}" d="${pathOf(one)}"/>`);
  const ends = lines.map((one) => `${plainLine(one.name)} ${nowOf(one)}`).join('; ');
  const times = endsOf(first.at, last.at);
  const label = `From ${times.join(' to ')}. At the end: ${ends}`;
  return (
    '<p class="ends" aria-hidden="true"><span>100%</span><span>75%</span><span>50%</span><span>25%</span><span>0%</span></p>' +
    `<svg class="course" role="img" aria-label="${escapeHtml(label)}" viewBox="0 0 100 100" ` +
    `preserveAspectRatio="none" width="100%" height="170">${grid}${middle_half}` +
    `${paths.reverse().join('')}</svg>` +
    `<p class="axis" aria-hidden="true">${times.map((time) => `<span>${time}</span>`).join('')}</p>` +
    (is_binary
      ? '<p class="note">The band shows the middle 50% of the forecasts.</p>'
      : legendOf(lines))
  );
};
