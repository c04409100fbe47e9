import { scaleLinear } from 'd3-scale';
import { area, curveMonotoneX } from 'd3-shape';
import { el, join } from './svg.js';
import { type Axis, label_face, textLine, title_face } from './svg-chart.js';
import { textWidth } from './svg-text.js';

/** Draws how likely each value of a number or a date is. */

/** Keeps the middle of a text far enough from both ends of the picture. */
const within = (middle: number, half: number, width: number): number =>
  Math.min(Math.max(middle, half), width - half);

export interface DensityChart {
  readonly width: number;
  readonly height: number;
  readonly desc: string;
  readonly x: Axis;
  /** The chance of x or less, from 0 to 1, at evenly spaced x over the whole axis. */
  readonly cdf: readonly number[];
  readonly quartiles: readonly { readonly at: number; readonly label: string }[];
  /** Medians of single forecasts, as ticks below the curve. */
  readonly medians: readonly number[];
  /** Null if the question is not resolved. */
  readonly outcome: number | null;
}

/** Draws how likely each value is: the area between two values is the chance between them. */
export const drawDensity = (parts: DensityChart): string => {
  const { width, height, desc, x, cdf, quartiles, medians, outcome } = parts;
  const [left, right, top, bottom] = [4, width - 4, 24, height - 34];
  const place = scaleLinear([x.from, x.to], [left, right]);
  const steps = cdf.slice(1).map((value, n) => Math.max(0, value - (cdf[n] ?? 0)));
  // The mean of three neighbours, because single steps are as uneven as the stated points.
  const smooth = steps.map((value, n) => {
    const [before = value, after = value] = [steps[n - 1], steps[n + 1]];
    return (before + value + after) / 3;
  });
  const level = scaleLinear([0, Math.max(...smooth, Number.MIN_VALUE)], [bottom, top]);
  const each = (x.to - x.from) / Math.max(1, steps.length);
  const curve = area<number>(
    (_, n) => place(x.from + (n + 0.5) * each),
    bottom,
    (value) => level(value),
  )
    .curve(curveMonotoneX)
    .digits(1);
  return el(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, class: 'density', role: 'img', 'aria-label': desc },
    el('path', { d: curve(smooth) ?? '', class: 'c-f0', 'fill-opacity': 0.25 }),
    ...quartiles.map(({ at, label }, n) => {
      const is_middle = n === 1;
      const at_x = place(at);
      const ends = { x1: at_x, x2: at_x, y1: is_middle ? top - 4 : top + 14, y2: bottom };
      return join([
        el('line', { ...ends, class: 'c-l0', 'stroke-width': is_middle ? 2.5 : 1.25 }),
        is_middle
          ? textLine(label, {
              x: within(at_x, textWidth(label, title_face) / 2, width),
              y: 14,
              anchor: 'middle',
              face: { size: 14, weight: 600 },
              class: 'c-ink',
            })
          : null,
      ]);
    }),
    outcome !== null && outcome >= x.from && outcome <= x.to
      ? join([
          el('line', {
            ...{ x1: place(outcome), x2: place(outcome), y1: top + 24, y2: bottom },
            ...{ class: 'c-total', 'stroke-width': 2, 'stroke-dasharray': '4 3' },
          }),
          textLine('Outcome', {
            x: within(place(outcome), textWidth('Outcome', label_face) / 2, width),
            y: top + 18,
            anchor: 'middle',
          }),
        ])
      : null,
    el('line', { x1: left, x2: right, y1: bottom, y2: bottom, class: 'c-axis' }),
    ...medians.map((at) =>
      el('line', { x1: place(at), x2: place(at), y1: bottom, y2: bottom + 6, class: 'c-axis' }),
    ),
    ...x.ticks.map(({ at, label }) => {
      const at_x = within(place(at), textWidth(label, label_face) / 2, width);
      return textLine(label, { x: at_x, y: bottom + 22, anchor: 'middle' });
    }),
  ).svg;
};
