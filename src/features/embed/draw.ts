import { percentText } from '../../kit/format.js';
import { escapeHtml } from '../../kit/html.js';
import { drawTimeChart, type TimeLine } from '../../kit/svg-time-chart.js';
import { type PictureOf, timeChartOf } from '../consensus/picture.js';
import type { Consensus } from '../consensus/rules.js';
import type { Course } from '../consensus/run.js';

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

/** Sizes in units of the picture, for a wide and a narrow frame. */
const sizes = [
  { look: 'wide-plot', width: 560, height: 230, times: 4 },
  { look: 'narrow-plot', width: 320, height: 220, times: 2 },
] as const;

/** Draws the consensus over time, in the two sizes. Null without forecasts. */
export const drawCourse = (question: PictureOf, course: Course): string | null => {
  if (course.points.length === 0) return null;
  const charts = sizes.map(({ look, times, ...size }) => {
    const shown = timeChartOf(question, course, times);
    return `<div class="${look}">${drawTimeChart({ ...shown, ...size })}</div>`;
  });
  const { lines } = timeChartOf(question, course, 2);
  return (
    charts.join('') +
    (course.shape.options.length > 0
      ? legendOf(lines)
      : `<p class="note">The band shows the middle 50% of the forecasts.</p>`)
  );
};

/** Names the lines in full. The labels in the chart may be cut. */
const legendOf = (lines: readonly TimeLine[]): string => {
  const items = lines.map(
    ({ name, points }, n) =>
      `<li><svg class="key" width="14" height="8" aria-hidden="true">` +
      `<path class="c-l${n}" d="M0 4H14"/></svg>` +
      `<bdi>${escapeHtml(name)}</bdi> <b>${percentText(points.at(-1)?.y ?? null)}</b></li>`,
  );
  return `<ul class="keys">${items.join('')}</ul>`;
};
