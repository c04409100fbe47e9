import { scaleLinear } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { el, join, type Markup } from './svg.js';
import {
  type Axis,
  colour,
  drawAxes,
  drawFrame,
  drawNote,
  type FrameParts,
  label_face,
  type Plot,
  type Point,
  padding,
  type Span,
  textLine,
} from './svg-chart.js';
import { cutText, type Face, textWidth } from './svg-text.js';

/** Draws lines and bands over time, for pages, pictures, cards and the widget. */

/** Draws the area between two step lines. */
const drawBand = (plot: Plot, spans: readonly Span[], series: number): Markup | null => {
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

export interface TimeLine {
  readonly name: string;
  /** Index of the colour, or `total` for the line of all, which is drawn in the text colour. */
  readonly series: number | 'total';
  /** Tells lines of one colour apart: 0 is solid, and the others have their own dashes. */
  readonly dash?: number | undefined;
  readonly points: readonly Point[];
  /** Text at the end of the line. */
  readonly label: string;
}

export interface TimeChart {
  readonly width: number;
  readonly height: number;
  /** Describes the chart in a sentence. */
  readonly desc: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly TimeLine[];
  readonly bands: readonly (readonly Span[])[];
  /** Times at which somebody forecast, as short ticks below the lines; revisions are longer. */
  readonly rug: readonly { readonly at: number; readonly is_revision: boolean }[];
  /** The moment of the resolution, if the chart shows it, and the level of the outcome. */
  readonly end?:
    | { readonly at: number; readonly label: string; readonly level?: number | undefined }
    | undefined;
}

/** Draws the moment of the resolution and, if it is on the axis, the level of the outcome. */
const drawEnd = (plot: Plot, y: Axis, end: NonNullable<TimeChart['end']>): readonly Markup[] => {
  const { at, label, level } = end;
  const look = { class: 'c-total', 'stroke-dasharray': '4 3' };
  const place = plot.x(at);
  const upright = { x1: place, x2: place, y1: plot.top, y2: plot.bottom };
  const text = { x: place - 5, y: plot.top + 11, anchor: 'end' as const };
  if (level === undefined || level < y.from || level > y.to) {
    return [el('line', { ...upright, ...look }), textLine(label, text)];
  }
  const height = plot.y(level);
  const flat = { x1: plot.left, x2: place, y1: height, y2: height };
  const below_top = Math.max(height - 5, plot.top + 11);
  return [
    el('line', { ...upright, ...look }),
    el('line', { ...flat, ...look }),
    textLine(label, { ...text, y: below_top }),
  ];
};

const dashes = [undefined, '8 3', '2 3', '9 3 2 3', '14 4', '4 2'];

/** Returns the dashes of the nth line of a colour. */
export const dashOf = (n: number): string | undefined => dashes[n % dashes.length];

/** Moves labels apart, so that each has `least` units of its own. Returns them in their order. */
const moveApart = (wanted: readonly number[], least: number, most: number): readonly number[] => {
  const order = wanted.map((_, n) => n).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  const placed = [...wanted];
  let limit = Number.NEGATIVE_INFINITY;
  for (const n of order) limit = placed[n] = Math.max(placed[n] ?? 0, limit + least);
  limit = most + least;
  for (const n of order.reverse()) limit = placed[n] = Math.min(placed[n] ?? 0, limit - least);
  return placed;
};

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Draws axes, lines and bands over time inside a box, which has the labels too. */
export const drawTimePlot = (parts: Omit<TimeChart, 'width' | 'height' | 'desc'>, box: Box) => {
  const { x, y, lines, bands, rug, end } = parts;
  const widest = (labels: readonly string[], face: Face): number =>
    Math.max(0, ...labels.map((label) => textWidth(label, face)));
  const end_face: Face = { size: 13, weight: 600 };
  const most = (box.right - box.left) / 4;
  const labels = lines.map(({ label }) => cutText(label, most, end_face));
  const names = y.ticks.map(({ label }) => label);
  const [left, top] = [box.left + 8 + widest(names, label_face), box.top];
  const [right, bottom] = [box.right - 12 - widest(labels, end_face), box.bottom - 26];
  const plot: Plot = {
    left,
    right,
    top,
    bottom,
    x: scaleLinear([x.from, x.to], [left, right]),
    y: scaleLinear([y.from, y.to], [bottom, top]).clamp(true),
  };
  const hold = <T extends { readonly x: number }>(points: readonly T[]): readonly T[] => {
    const last = points.at(-1);
    return last === undefined || last.x >= x.to ? points : [...points, { ...last, x: x.to }];
  };
  const is_many = lines.length > 1;
  const drawn = lines.map(({ name, series, dash = 0, points }) => {
    const path = line<Point>(
      (point) => plot.x(point.x),
      (point) => plot.y(point.y),
    )
      .curve(curveStepAfter)
      .digits(1)([...hold(points)]);
    return el('path', {
      d: path ?? '',
      fill: 'none',
      class: series === 'total' ? 'c-total' : `c-l${colour(series)}`,
      'data-series': name,
      'stroke-width': is_many && series !== 'total' ? 2 : 2.75,
      'stroke-linejoin': 'round',
      'stroke-dasharray': dashOf(dash),
    });
  });
  const ends = moveApart(
    lines.map(({ points }) => plot.y(points.at(-1)?.y ?? 0) + 4.5),
    15,
    plot.bottom + 4,
  );
  const dots = lines.flatMap(({ series, points }, n) => {
    const last = points.at(-1);
    if (last === undefined) return [];
    const name = series === 'total' ? 'c-ink' : `c-f${colour(series)}`;
    const dot = { cx: plot.right, cy: plot.y(last.y), r: 4, 'stroke-width': 1.5 };
    return [
      el('circle', { ...dot, class: `${name} c-halo` }),
      textLine(labels[n] ?? '', {
        x: plot.right + 9,
        y: ends[n] ?? 0,
        face: end_face,
        class: name,
      }),
    ];
  });
  const ticks = rug
    .filter(({ at }) => at >= x.from && at <= x.to)
    .map(({ at, is_revision }) => {
      const place = plot.x(at);
      const top = plot.bottom - (is_revision ? 9 : 5);
      return el('line', { x1: place, x2: place, y1: top, y2: plot.bottom, class: 'c-axis' });
    });
  const over = end === undefined || end.at < x.from || end.at > x.to ? [] : drawEnd(plot, y, end);
  const drawn_bands = bands.map((band) => drawBand(plot, hold(band), 0));
  const markup = [
    drawAxes(plot, parts),
    ...drawn_bands,
    ...ticks,
    ...over,
    ...drawn.reverse(),
    ...dots,
  ];
  return { plot, markup };
};

/** Draws lines and bands over time, without a title, for pages. The page sets the colours. */
export const drawTimeChart = (parts: TimeChart): string => {
  const { width, height, desc } = parts;
  const box = { left: 0, right: width, top: 12, bottom: height };
  const { plot, markup } = drawTimePlot(parts, box);
  return el(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      class: 'time-chart',
      role: 'img',
      'aria-label': desc,
      'data-left': plot.left,
      'data-right': plot.right,
      'data-bottom': plot.bottom,
    },
    join(markup),
  ).svg;
};

/** Draws the same chart as a whole picture, with its title and its colours. */
export const drawTimePicture = (parts: TimeChart & FrameParts): string =>
  drawFrame(parts, (top) => {
    const { width, height } = parts;
    const bottom = height - 30;
    const box = { left: padding, right: width - padding, top, bottom };
    if (parts.lines.length === 0) return [drawNote(box, 'No forecasts yet')];
    return drawTimePlot(parts, box).markup;
  });
