import { scaleLinear, scaleUtc } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { dayText, timeText } from '../../kit/format.js';
import { Scroll } from './lists.js';

/**
 * Plots values over time as an inline SVG that fills the width of its container. Only the lines
 * are stretched, so text keeps its size. `chart.js` shows the values under the pointer and lets
 * the reader hide lines.
 */

export interface PlotPoint {
  readonly at: number;
  readonly value: number;
}

export interface PlotLine {
  readonly name: string;
  /**
   * Selects the dash pattern, and also the colour if `class` is missing. Not set for the headline.
   */
  readonly series?: number;
  /** CSS class that sets the colour. */
  readonly class?: string;
  readonly points: readonly PlotPoint[];
}

export interface PlotBand {
  readonly spans: readonly { readonly at: number; readonly low: number; readonly high: number }[];
}

/** The vertical axis: percent, or the numbers or dates of a question. */
export interface PlotScale {
  readonly low: number;
  readonly high: number;
  readonly kind: 'percent' | 'number' | 'date';
  readonly unit?: string;
  readonly text: (value: number) => string;
}

const height = 260;
const top = 22;
const bottom = height - 24;
const wide = 1_000;
const day_ms = 86_400_000;

/** Dash patterns, so that lines differ not only by colour. */
const dashes = [undefined, '7 3', '2 3', '9 3 2 3', '4 2'];
const dashOf = (series: number | undefined): string | undefined =>
  series === undefined ? undefined : dashes[series % dashes.length];
const classOf = ({ series, class: own }: PlotLine): string =>
  `curve ${own ?? (series === undefined ? 'lead' : `f${series % 10}`)}`;

const tickText = (at: Date, span: number): string =>
  span < 2 * day_ms
    ? timeText(at).slice(-9, -4)
    : span < 300 * day_ms
      ? dayText(at).replace(/ \d+$/, '')
      : dayText(at).replace(/^\d+ /, '');

/** Returns round times that are not too close to each other or to the ends. */
const timeTicks = (from: number, to: number): readonly Date[] => {
  const all = scaleUtc([from, to], [0, 1]).ticks(4);
  const each = Math.ceil(all.length / 5);
  return all.filter((at, n) => {
    const place = (at.getTime() - from) / (to - from);
    return n % each === 0 && place > 0.04 && place < 0.96;
  });
};

export const TimePlot = ({
  label,
  from,
  to,
  scale,
  lines,
  bands = [],
}: {
  /** Describes the chart in one sentence. */
  label: string;
  from: number;
  to: number;
  scale: PlotScale;
  lines: readonly PlotLine[];
  bands?: readonly PlotBand[];
}) => {
  const { low, high, kind, unit, text } = scale;
  const x = scaleLinear([from, to], [0, wide]);
  const y = scaleLinear([low, high], [bottom, top]).clamp(true);
  const levels =
    kind === 'percent'
      ? [0, 25, 50, 75, 100]
      : kind === 'date'
        ? scaleUtc([low, high], [0, 1]).ticks(4).map(Number)
        : scaleLinear([low, high], [0, 1]).ticks(4);
  const pathOf = line<PlotPoint>(
    ({ at }) => x(at),
    ({ value }) => y(value),
  )
    .curve(curveStepAfter)
    .digits(1);
  const areaOf = area<PlotBand['spans'][number]>(
    ({ at }) => x(at),
    (span) => y(span.low),
    (span) => y(span.high),
  )
    .curve(curveStepAfter)
    .digits(1);
  const held = <T extends { readonly at: number }>(points: readonly T[]): T[] => {
    const last = points.at(-1);
    return last === undefined || last.at >= to ? [...points] : [...points, { ...last, at: to }];
  };
  return (
    <svg
      class="plot"
      role="img"
      aria-label={label}
      width="100%"
      height={height}
      data-from={from}
      data-to={to}
      data-low={low}
      data-high={high}
      data-top={top}
      data-bottom={bottom}
      data-kind={kind}
      data-unit={unit}
    >
      {levels.map((level) => (
        <line key={level} class="grid" x1="0" x2="100%" y1={y(level)} y2={y(level)} />
      ))}
      <svg
        aria-hidden="true"
        width="100%"
        height={height}
        viewBox={`0 0 ${wide} ${height}`}
        preserveAspectRatio="none"
      >
        {bands.map(({ spans }, n) => (
          <path key={n} class="band" d={areaOf(held(spans)) ?? ''} />
        ))}
        {lines.map((one) => (
          <path
            key={one.name}
            class={classOf(one)}
            data-series={one.name}
            d={pathOf(held(one.points)) ?? ''}
            stroke-dasharray={dashOf(one.series)}
          />
        ))}
      </svg>
      {levels.map((level) => (
        <text key={level} class="tick" x="0" y={y(level) - 4}>
          {text(level)}
        </text>
      ))}
      {timeTicks(from, to).map((at) => (
        <text
          key={at.getTime()}
          class="tick"
          x={`${(((at.getTime() - from) / (to - from)) * 100).toFixed(1)}%`}
          y={height - 6}
          text-anchor="middle"
          data-at={at.getTime()}
        >
          {tickText(at, to - from)}
        </text>
      ))}
    </svg>
  );
};

/** Lists the lines with their last values. `chart.js` turns the names into buttons. */
export const PlotLegend = ({
  lines,
  text,
}: {
  lines: readonly PlotLine[];
  text: (value: number) => string;
}) => (
  <ul class="legend">
    {lines.map((one) => {
      const { name, series, points } = one;
      const last = points.at(-1);
      return (
        <li key={name} data-legend={name}>
          <svg width="24" height="8" aria-hidden="true">
            <line
              class={classOf(one)}
              x1="0"
              x2="24"
              y1="4"
              y2="4"
              stroke-dasharray={dashOf(series)}
            />
          </svg>{' '}
          <span dir="auto">{name}</span>{' '}
          <strong>{last === undefined ? '–' : text(last.value)}</strong>
        </li>
      );
    })}
  </ul>
);

/** Shows the values of the plot as a table of at most `most` rows. */
export const PlotTable = ({
  lines,
  text,
  most = 24,
}: {
  lines: readonly PlotLine[];
  text: (value: number) => string;
  most?: number;
}) => {
  const times = [...new Set(lines.flatMap(({ points }) => points.map(({ at }) => at)))].sort(
    (a, b) => a - b,
  );
  const each = Math.max(1, Math.ceil(times.length / most));
  const shown = times.filter((_, n) => (times.length - 1 - n) % each === 0).reverse();
  const valueAt = ({ points }: PlotLine, at: number): string => {
    const last = points.findLast((point) => point.at <= at);
    return last === undefined ? '–' : text(last.value);
  };
  return (
    <Scroll label="Figures of the chart">
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC)</th>
            {lines.map(({ name }) => (
              <th key={name} scope="col" class="n" dir="auto">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((at) => (
            <tr key={at}>
              <td>{timeText(new Date(at)).replace(' UTC', '')}</td>
              {lines.map((one) => (
                <td key={one.name} class="n">
                  {valueAt(one, at)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
};
