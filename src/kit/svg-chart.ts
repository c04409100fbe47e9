import { scaleLinear, scaleUtc } from 'd3-scale';
import { line } from 'd3-shape';
import { dayText, timeText } from './format.js';
import {
  type Child,
  el,
  join,
  type Markup,
  round2,
  type SvgTheme,
  series_colours,
  styleOf,
} from './svg.js';
import { cutText, type Face, textWidth, wrapText } from './svg-text.js';

/**
 * Draws a chart: title, legend, axes, gridlines, marks and source. d3 places values and chooses
 * ticks. The markup is our own, so that a picture is safe for any text, the same every time, and
 * coloured by class. Features decide the meaning of a chart.
 */

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
  readonly label?: string | undefined;
}

/** Makes an axis in percent, from 0 to 100 if no range is given, with about `steps` steps. */
export const percentAxis = (
  steps: number,
  { from = 0, to = 100, label }: { from?: number; to?: number; label?: string } = {},
): Axis => ({
  from,
  to,
  ticks: scaleLinear([from, to], [0, 1])
    .ticks(steps)
    .map((at) => ({ at, label: `${at}%` })),
  label,
});

/** Smallest range of a fitted percent axis, so that small moves look small. */
const min_range = 20;

/** Widens a range of percentages to full tens within 0 and 100. */
export const fitPercent = (low: number, high: number) => {
  const room = Math.max(0, min_range - (high - low)) / 2;
  const [least, most] = [Math.floor((low - room) / 10) * 10, Math.ceil((high + room) / 10) * 10];
  return { low: Math.max(0, least), high: Math.min(100, most) };
};

/** Makes an axis for any numbers, with about `steps` steps. */
export const numberAxis = (from: number, to: number, steps: number, label?: string): Axis => {
  const scale = scaleLinear([from, to], [0, 1]);
  const name = scale.tickFormat(steps);
  return { from, to, ticks: scale.ticks(steps).map((at) => ({ at, label: name(at) })), label };
};

const day_ms = 86_400_000;

/** Labels a time as finely as the length of its axis needs: `19:23`, `15 Feb` or `Feb 2027`. */
const tickText = (at: Date, length: number): string => {
  if (length < 2 * day_ms) return timeText(at).slice(-9, -4);
  const day = dayText(at);
  return length < 300 * day_ms ? day.replace(/ \d+$/, '') : day.replace(/^\d+ /, '');
};

/**
 * Makes a time axis from one moment (ms since 1970) to a later one. It labels at most `most` round
 * times, in UTC.
 */
export const timeAxis = (from: number, to: number, most: number): Axis => {
  const all = scaleUtc([from, to], [0, 1]).ticks(most);
  const each = Math.ceil(all.length / most);
  const ticks = all
    .filter((_, n) => n % each === 0)
    .map((at) => ({ at: at.getTime(), label: tickText(at, to - from) }));
  // Ticks within one minute have the same label.
  return { from, to, ticks: ticks.filter(({ label }, n) => label !== ticks[n - 1]?.label) };
};

/** Maps values of the two axes to positions in the picture, inside this rectangle. */
export interface Plot {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface LegendItem {
  readonly label: string;
  /** Index of the item's colour, from 0. */
  readonly series: number;
  /** `inner band`: a band on top of another band of its colour, so that it looks darker. */
  readonly kind: 'line' | 'dashed' | 'band' | 'inner band' | 'dot';
}

export interface FrameParts {
  readonly title: string;
  readonly subtitle: string;
  /** Describes the picture in a sentence or two, for people who cannot see it. */
  readonly desc: string;
  readonly legend: readonly LegendItem[];
  /** The source of the figures, and their time. */
  readonly source: string;
  readonly width: number;
  readonly height: number;
  readonly theme: SvgTheme;
}

interface ChartParts extends FrameParts {
  readonly x: Axis;
  readonly y: Axis;
  readonly draw: (plot: Plot) => readonly (Markup | null)[];
}

export const title_face: Face = { size: 18, weight: 600 };
const subtitle_face: Face = { size: 13, weight: 400 };
export const label_face: Face = { size: 12, weight: 400 };
const source_face: Face = { size: 11, weight: 400 };
export const padding = 20;

interface TextParts {
  readonly x: number;
  readonly y: number;
  readonly face?: Face;
  readonly anchor?: 'middle' | 'end';
  readonly class?: string;
  readonly transform?: string;
  readonly 'data-at'?: number | undefined;
}

/** Draws one line of text. `y` is its baseline. */
export const textLine = (text: string, parts: TextParts): Markup => {
  const { face = label_face, anchor, class: name = 'c-soft', ...place } = parts;
  const weight = face.weight === 400 ? undefined : face.weight;
  const font = { 'font-size': face.size, 'font-weight': weight, 'text-anchor': anchor };
  return el('text', { class: name, ...font, ...place }, text);
};

const dashes: Readonly<Record<string, string>> = { dashed: '6 4' };

/** Index of a series' colour. After the last colour, the first one comes again. */
export const colour = (series: number): number => series % series_colours;

const legendMark = ({ series, kind }: LegendItem, x: number, y: number): Markup => {
  const n = colour(series);
  if (kind === 'dot') return el('circle', { cx: x + 9, cy: y - 4, r: 4, class: `c-f${n}` });
  if (kind === 'band' || kind === 'inner band') {
    const opacity = kind === 'band' ? 0.18 : 0.42;
    const box = { x, y: y - 9, width: 18, height: 10, 'fill-opacity': opacity };
    return el('rect', { ...box, class: `c-f${n}` });
  }
  const ends = { x1: x, x2: x + 18, y1: y - 4, y2: y - 4, 'stroke-width': 2.5 };
  return el('line', { ...ends, 'stroke-dasharray': dashes[kind], class: `c-l${n}` });
};

/** Draws the legend: rows of marks with labels. `bottom` is the baseline of the last row. */
const drawLegend = (items: readonly LegendItem[], top: number, width: number) => {
  const parts: Markup[] = [];
  let x = padding;
  let y = top;
  for (const item of items) {
    const label = cutText(item.label, Math.min(320, width - 2 * padding - 24), label_face);
    const needed = 24 + textWidth(label, label_face);
    if (x > padding && x + needed > width - padding) {
      x = padding;
      y += 20;
    }
    parts.push(legendMark(item, x, y), textLine(label, { x: x + 24, y, class: 'c-ink' }));
    x += needed + 18;
  }
  return { parts, bottom: items.length === 0 ? top - 20 : y };
};

const drawHead = ({ title, subtitle, legend, width }: FrameParts) => {
  const room = width - 2 * padding;
  const lines = wrapText(title, { width: room, most: 3, face: title_face }).map((line, n) =>
    textLine(line, { x: padding, y: 37 + 23 * n, face: title_face, class: 'c-ink' }),
  );
  const y = 35 + 23 * lines.length;
  const text = cutText(subtitle, room, subtitle_face);
  const below = drawLegend(legend, y + 24, width);
  const parts = [...lines, textLine(text, { x: padding, y, face: subtitle_face }), ...below.parts];
  return { parts, bottom: below.bottom };
};

export const drawAxes = (plot: Plot, { x, y }: Pick<ChartParts, 'x' | 'y'>): Markup => {
  const { left, right, top, bottom } = plot;
  const parts: Markup[] = [];
  for (const tick of y.ticks) {
    const at = plot.y(tick.at);
    const ends = { x1: left, x2: right, y1: at, y2: at };
    parts.push(el('line', { ...ends, class: tick.at === y.from ? 'c-axis' : 'c-grid' }));
    parts.push(textLine(tick.label, { x: left - 8, y: at + 4, anchor: 'end' }));
  }
  for (const tick of x.ticks) {
    const at = plot.x(tick.at);
    parts.push(el('line', { x1: at, x2: at, y1: top, y2: bottom, class: 'c-grid' }));
    const half = textWidth(tick.label, label_face) / 2;
    // The last label must not leave the picture, and the first must not cover the other axis.
    const place = Math.min(Math.max(at, left + half - 24), right + padding - half);
    const at_time = tick.label.includes(':') ? tick.at : undefined;
    const words = { x: place, y: bottom + 18, anchor: 'middle', 'data-at': at_time } as const;
    parts.push(textLine(tick.label, words));
  }
  if (x.label !== undefined) {
    const middle = (left + right) / 2;
    parts.push(textLine(x.label, { x: middle, y: bottom + 38, anchor: 'middle' }));
  }
  if (y.label !== undefined) {
    const at = { x: padding - 4, y: (top + bottom) / 2 };
    const turned = `rotate(-90 ${round2(at.x)} ${round2(at.y)})`;
    parts.push(textLine(y.label, { ...at, anchor: 'middle', transform: turned }));
  }
  return join(parts);
};

const plotOf = ({ x, y, width, height }: ChartParts, top: number): Plot => {
  const names = Math.max(0, ...y.ticks.map(({ label }) => textWidth(label, label_face)));
  const left = padding + names + 8 + (y.label === undefined ? 0 : 14);
  const right = width - padding;
  const bottom = height - 56 - (x.label === undefined ? 0 : 20);
  return {
    left,
    right,
    top,
    bottom,
    x: scaleLinear([x.from, x.to], [left, right]),
    y: scaleLinear([y.from, y.to], [bottom, top]),
  };
};

/** Wide pictures are 16:9. Narrow ones are taller, so that the plot has room. */
export const heightOf = (width: number): number =>
  Math.round(Math.max(width * 0.5625, 530 - width / 10));

/** Draws a whole picture around a plot, which begins at `top`. */
export const drawFrame = (
  parts: FrameParts,
  drawPlot: (top: number) => readonly (Markup | null)[],
): string => {
  const { width, height, theme, title, desc } = parts;
  const head = drawHead(parts);
  const source = cutText(parts.source, width - 2 * padding, source_face);
  const document = el(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': /[.?!]$/.test(title) ? `${title} ${desc}` : `${title}. ${desc}`,
      class: 'c-root',
    },
    el('title', {}, title),
    el('desc', {}, desc),
    styleOf(theme),
    el('rect', { width, height, rx: 8, class: 'c-paper' }),
    ...head.parts,
    ...drawPlot(head.bottom + 18),
    textLine(source, { x: padding, y: height - 14, face: source_face }),
  );
  return `${document.svg}\n`;
};

export const drawChart = (parts: ChartParts): string =>
  drawFrame(parts, (top) => {
    const plot = plotOf(parts, top);
    return [drawAxes(plot, parts), ...parts.draw(plot)];
  });

export interface Point {
  readonly x: number;
  readonly y: number;
}

interface LineStyle {
  readonly series: number;
  readonly kind?: 'line' | 'dashed';
  readonly width?: number;
}

const stroke = ({ series, kind = 'line', width = 2 }: LineStyle) => ({
  class: `c-l${colour(series)}`,
  fill: 'none',
  'stroke-width': width,
  'stroke-linejoin': 'round',
  'stroke-dasharray': dashes[kind],
});

/** Draws straight lines from point to point. */
export const drawLine = (plot: Plot, points: readonly Point[], style: LineStyle) => {
  if (points.length < 2) return null;
  const path = line<Point>(
    ({ x }) => plot.x(x),
    ({ y }) => plot.y(y),
  ).digits(2);
  return el('path', { d: path([...points]) ?? '', ...stroke(style) });
};

export interface Span {
  readonly x: number;
  readonly low: number;
  readonly high: number;
}

/** Draws a dot with a ring of the paper's colour. Viewers that show titles show `label`. */
export const drawDot = (
  plot: Plot,
  { x, y }: Point,
  { series, radius = 4, label }: { series: number; radius?: number; label?: string },
): Markup => {
  const title: Child = label === undefined ? null : el('title', {}, label);
  const at = { cx: plot.x(x), cy: plot.y(y), r: radius, 'stroke-width': 1.5 };
  return el('circle', { ...at, class: `c-f${colour(series)} c-halo` }, title);
};

/** Draws a vertical bar from `low` to `high` with caps. */
export const drawErrorBar = (plot: Plot, { x, low, high }: Span, series: number): Markup => {
  const at = plot.x(x);
  const [y1, y2] = [plot.y(low), plot.y(high)];
  const cap = (y: number): string => `M${round2(at - 4)} ${round2(y)}H${round2(at + 4)}`;
  const d = `M${round2(at)} ${round2(y1)}V${round2(y2)}${cap(y1)}${cap(y2)}`;
  return el('path', { d, ...stroke({ series, width: 1.5 }) });
};

/** Draws a sentence in the middle of a plot that has nothing to show. */
export const drawNote = (plot: Omit<Plot, 'x' | 'y'>, text: string): Markup =>
  textLine(text, {
    x: (plot.left + plot.right) / 2,
    y: (plot.top + plot.bottom) / 2,
    face: { size: 15, weight: 400 },
    anchor: 'middle',
  });
