import { scaleLinear, scaleUtc } from 'd3-scale';
import { area, curveLinear, curveStepAfter, line } from 'd3-shape';
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

/** Makes an axis from 0 to 100 percent, with about `steps` steps. */
export const percentAxis = (steps: number, label?: string): Axis => ({
  from: 0,
  to: 100,
  ticks: scaleLinear([0, 100], [0, 1])
    .ticks(steps)
    .map((at) => ({ at, label: `${at} %` })),
  label,
});

/** Makes an axis for any numbers, with about `steps` steps. */
export const numberAxis = (from: number, to: number, steps: number, label?: string): Axis => {
  const scale = scaleLinear([from, to], [0, 1]);
  const name = scale.tickFormat(steps);
  return { from, to, ticks: scale.ticks(steps).map((at) => ({ at, label: name(at) })), label };
};

/**
 * Makes a time axis from one moment (ms since 1970) to a later one. It labels at most `most` round
 * times, in UTC.
 */
export const timeAxis = (from: number, to: number, most: number): Axis => {
  const scale = scaleUtc([from, to], [0, 1]);
  const all = scale.ticks(most);
  const each = Math.ceil(all.length / most);
  const label = scale.tickFormat(most);
  const times = all.filter((_, n) => n % each === 0);
  return { from, to, ticks: times.map((time) => ({ at: time.getTime(), label: label(time) })) };
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
  readonly kind: 'line' | 'dashed' | 'dotted' | 'band' | 'inner band' | 'dot';
}

interface ChartParts {
  readonly title: string;
  readonly subtitle: string;
  /** Describes the picture in a sentence or two, for people who cannot see it. */
  readonly desc: string;
  readonly legend: readonly LegendItem[];
  /** The source of the figures, and their time. */
  readonly source: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly width: number;
  readonly height: number;
  readonly theme: SvgTheme;
  readonly draw: (plot: Plot) => readonly (Markup | null)[];
}

/** Measures texts in a picture, so that they are wrapped and cut to fit. */

/**
 * Widths of Inter SemiBold, U+0020 to U+007E, in hundredths of an em. Regular is a bit narrower.
 */
const advances = (
  '25 32 52 64 65 100 66 33 37 37 54 67 32 47 32 38 66 42 62 64 67 61 64 58 64 64 32 33 67 67 67 ' +
  '54 100 73 66 74 72 61 59 75 75 28 58 70 57 92 76 77 65 77 65 65 66 74 73 102 72 71 65 37 38 37 ' +
  '48 47 35 57 62 58 62 59 39 63 61 26 26 57 26 90 61 61 62 62 40 55 35 61 59 84 57 59 57 45 36 45 ' +
  '67'
)
  .split(' ')
  .map(Number);

interface Face {
  readonly size: number;
  readonly weight: 400 | 600;
}

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/u;

/** Width in hundredths of an em. For most letters beyond ASCII it is slightly too large. */
const advanceOf = (character: string): number => {
  const code = character.codePointAt(0) as number;
  const known = advances[code - 32];
  if (known !== undefined) return known;
  if (/\p{M}|\u200d/u.test(character)) return 0;
  return code > 0xffff || wide.test(character) ? 104 : 68;
};

/** Leaves room for readers whose fonts are wider than the one measured here. */
const spare = 1.04;

/** Width in units of the picture, estimated generously. */
const textWidth = (text: string, { size }: Face): number => {
  let hundredths = 0;
  for (const character of text) hundredths += advanceOf(character);
  return (hundredths * size * spare) / 100;
};

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Returns the text if it fits into `width`, else its start with an ellipsis. */
const cutText = (text: string, width: number, face: Face): string => {
  if (textWidth(text, face) <= width) return text;
  let kept = '';
  for (const { segment } of graphemes.segment(text)) {
    if (textWidth(`${kept}${segment}…`, face) > width) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
};

/** Breaks a text at spaces into at most `most` lines. Text that does not fit is cut. */
const wrapText = (
  text: string,
  { width, most, face }: { readonly width: number; readonly most: number; readonly face: Face },
): readonly string[] => {
  const words = text.trim().split(/\s+/);
  const lines: string[] = [];
  let line = '';
  for (const [index, word] of words.entries()) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line === '' || textWidth(longer, face) <= width) {
      line = longer;
      continue;
    }
    if (lines.length === most - 1) {
      line = [line, ...words.slice(index)].join(' ');
      break;
    }
    lines.push(cutText(line, width, face));
    line = word;
  }
  return [...lines, cutText(line, width, face)];
};

const title_face: Face = { size: 18, weight: 600 };
const subtitle_face: Face = { size: 13, weight: 400 };
const label_face: Face = { size: 12, weight: 400 };
const source_face: Face = { size: 11, weight: 400 };
const padding = 20;

interface TextParts {
  readonly x: number;
  readonly y: number;
  readonly face?: Face;
  readonly anchor?: 'middle' | 'end';
  readonly class?: string;
  readonly transform?: string;
}

/** Draws one line of text. `y` is its baseline. */
const textLine = (text: string, parts: TextParts): Markup => {
  const { face = label_face, anchor, class: name = 'c-soft', ...place } = parts;
  const weight = face.weight === 400 ? undefined : face.weight;
  const font = { 'font-size': face.size, 'font-weight': weight, 'text-anchor': anchor };
  return el('text', { class: name, ...font, ...place }, text);
};

const dashes: Readonly<Record<string, string>> = { dashed: '6 4', dotted: '1.5 4' };

/** Index of a series' colour. After the last colour, the first one comes again. */
const colour = (series: number): number => series % series_colours;

const legendMark = ({ series, kind }: LegendItem, x: number, y: number): Markup => {
  const n = colour(series);
  if (kind === 'dot') return el('circle', { cx: x + 9, cy: y - 4, r: 4, class: `c-f${n}` });
  if (kind === 'band' || kind === 'inner band') {
    const opacity = kind === 'band' ? 0.18 : 0.42;
    const box = { x, y: y - 9, width: 18, height: 10, 'fill-opacity': opacity };
    return el('rect', { ...box, class: `c-f${n}` });
  }
  const ends = { x1: x, x2: x + 18, y1: y - 4, y2: y - 4, 'stroke-width': 2.5 };
  const caps = kind === 'dotted' ? { 'stroke-linecap': 'round' } : {};
  return el('line', { ...ends, ...caps, 'stroke-dasharray': dashes[kind], class: `c-l${n}` });
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

const drawHead = ({ title, subtitle, legend, width }: ChartParts) => {
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

const drawAxes = (plot: Plot, { x, y }: ChartParts): Markup => {
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
    parts.push(textLine(tick.label, { x: place, y: bottom + 18, anchor: 'middle' }));
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

export const drawChart = (parts: ChartParts): string => {
  const { width, height, theme, title, desc } = parts;
  const head = drawHead(parts);
  const plot = plotOf(parts, head.bottom + 18);
  const source = cutText(parts.source, width - 2 * padding, source_face);
  const document = el(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': `${title}. ${desc}`,
      class: 'c-root',
    },
    el('title', {}, title),
    el('desc', {}, desc),
    styleOf(theme),
    el('rect', { width, height, rx: 8, class: 'c-paper' }),
    ...head.parts,
    drawAxes(plot, parts),
    ...parts.draw(plot),
    textLine(source, { x: padding, y: height - 14, face: source_face }),
  );
  return `${document.svg}\n`;
};

export interface Point {
  readonly x: number;
  readonly y: number;
}

interface LineStyle {
  readonly series: number;
  readonly kind?: 'line' | 'dashed' | 'dotted';
  readonly width?: number;
}

const stroke = ({ series, kind = 'line', width = 2 }: LineStyle) => ({
  class: `c-l${colour(series)}`,
  fill: 'none',
  'stroke-width': width,
  'stroke-linejoin': 'round',
  'stroke-linecap': kind === 'dotted' ? 'round' : undefined,
  'stroke-dasharray': dashes[kind],
});

const makeLine =
  (curve: typeof curveLinear) => (plot: Plot, points: readonly Point[], style: LineStyle) => {
    if (points.length < 2) return null;
    const path = line<Point>(
      ({ x }) => plot.x(x),
      ({ y }) => plot.y(y),
    )
      .curve(curve)
      .digits(2);
    return el('path', { d: path([...points]) ?? '', ...stroke(style) });
  };

/** Draws straight lines from point to point. */
export const drawLine = makeLine(curveLinear);

/** Draws steps: each value holds until the next point. */
export const drawSteps = makeLine(curveStepAfter);

interface Span {
  readonly x: number;
  readonly low: number;
  readonly high: number;
}

/** Draws the area between two step lines. */
export const drawBand = (plot: Plot, spans: readonly Span[], series: number): Markup | null => {
  if (spans.length < 2) return null;
  const path = area<Span>(
    ({ x }) => plot.x(x),
    ({ low }) => plot.y(low),
    ({ high }) => plot.y(high),
  )
    .curve(curveStepAfter)
    .digits(2);
  return el('path', {
    d: path([...spans]) ?? '',
    class: `c-f${colour(series)}`,
    'fill-opacity': 0.14,
  });
};

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
export const drawNote = (plot: Plot, text: string): Markup =>
  textLine(text, {
    x: (plot.left + plot.right) / 2,
    y: (plot.top + plot.bottom) / 2,
    face: { size: 15, weight: 400 },
    anchor: 'middle',
  });
