import { scaleLinear, scaleUtc } from 'd3-scale';
import type { ComponentChildren } from 'preact';
import { min_resolved } from '../../features/points/score-rules.js';
import { dayText, grouped, percentText } from '../../kit/format.js';
import { Scroll } from './lists.js';
import { Heads } from './table.js';

/**
 * Small charts within a page. Positions are percentages of the width, so text keeps its size at
 * every width. Drawings that need their own units are nested SVGs.
 */

export interface Range {
  readonly low: number;
  readonly high: number;
}

const share = (value: number, { low, high }: Range): number =>
  Math.min(100, Math.max(0, (100 * (value - low)) / (high - low || 1)));
const at = (value: number, range: Range): string => `${share(value, range).toFixed(2)}%`;

/** Draws a value and its interval on the scale that all rows of a table share. */
export const Whisker = ({
  value,
  interval,
  scale,
  family,
}: {
  value: number;
  interval: Range | null;
  scale: Range;
  family?: string | undefined;
}) => (
  <svg class={`whisker ${family ?? ''}`} width="100%" height="20" aria-hidden="true">
    {scale.low < 0 && scale.high > 0 && (
      <line class="axis" x1={at(0, scale)} x2={at(0, scale)} y1="0" y2="20" />
    )}
    {interval !== null && (
      <>
        <line
          class="span"
          x1={at(interval.low, scale)}
          x2={at(interval.high, scale)}
          y1="10"
          y2="10"
        />
        {[interval.low, interval.high].map((end) => (
          <line key={end} class="span" x1={at(end, scale)} x2={at(end, scale)} y1="5" y2="15" />
        ))}
      </>
    )}
    <circle class="dot" cx={at(value, scale)} cy="10" r="4.5" />
  </svg>
);

/** Returns the smallest scale that fits all rows, with a small margin at both ends. */
export const scaleOf = (
  rows: readonly { readonly value: number; readonly interval: Range | null }[],
): Range => {
  const ends = rows.flatMap(({ value, interval }) => [
    value,
    interval?.low ?? value,
    interval?.high ?? value,
  ]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = (high - low || 1) * 0.03;
  return { low: low - room, high: high + room };
};

/** A summary in words, the chart, and its values as a table that can be opened. */
export const Figure = ({
  summary,
  label,
  table,
  children,
}: {
  summary?: ComponentChildren;
  /** Names the table. It is unique on the page. */
  label: string;
  table: ComponentChildren;
  children: ComponentChildren;
}) => (
  <figure class="chart">
    {children}
    {summary !== undefined && <figcaption>{summary}</figcaption>}
    <details>
      <summary>Show as table</summary>
      <Scroll label={label}>{table}</Scroll>
    </details>
  </figure>
);

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly n: number;
  readonly mean_forecast: number | null;
  readonly frequency: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

/** Bins with fewer forecasts than this say little, so their dots are faded. */
const few = 5;
const seenIn = (bins: readonly Bin[]): readonly Bin[] => bins.filter(({ n }) => n > 0);

/** The bins of one forecaster. `family` is the class that gives the colour. */
export interface CalibrationSeries {
  readonly bins: readonly Bin[];
  readonly family: string;
}

/** Below this size a plot has fewer ticks and no names of its axes. */
const whole_size = 300;

/**
 * Plots how often outcomes happened against the chance stated for them, in percent. With one series
 * the dots are not connected. With more, a line shows which dots belong together. `behind` is a
 * curve in grey.
 */
export const CalibrationPlot = ({
  series,
  label,
  size = whole_size,
  behind = [],
}: {
  series: readonly CalibrationSeries[];
  label: string;
  /** Width and height of the square, in units of about a pixel. */
  size?: number;
  behind?: readonly Bin[];
}) => {
  const is_whole = size >= whole_size;
  /** Intervals and dots of few forecasts would cover the others. */
  const is_crowded = series.length > 2;
  const [left, top, right] = [is_whole ? 40 : 30, 8, 16];
  const x = (percent: number): number => left + (percent / 100) * size;
  const y = (percent: number): number => top + (1 - percent / 100) * size;
  const pointsOf = (bins: readonly Bin[]): string =>
    bins
      .map(({ mean_forecast, frequency }) => `${x(mean_forecast ?? 0)},${y(frequency ?? 0)}`)
      .join(' ');
  return (
    <svg
      class={`calibration ${is_whole ? '' : 'small'}`}
      viewBox={`0 0 ${left + size + right} ${top + size + (is_whole ? 42 : 20)}`}
      role="img"
      aria-label={label}
    >
      {(is_whole ? [0, 25, 50, 75, 100] : [0, 50, 100]).map((tick) => (
        <>
          <line class="grid-line" x1={x(tick)} x2={x(tick)} y1={y(0)} y2={y(100)} />
          <line class="grid-line" x1={x(0)} x2={x(100)} y1={y(tick)} y2={y(tick)} />
          <text x={x(tick)} y={y(0) + 16} text-anchor="middle">
            {tick}
          </text>
          <text x={x(0) - 6} y={y(tick) + 4} text-anchor="end">
            {tick}
          </text>
        </>
      ))}
      <line class="axis even" x1={x(0)} y1={y(0)} x2={x(100)} y2={y(100)} />
      {is_whole && (
        <>
          <text x={x(50)} y={y(0) + 32} text-anchor="middle">
            Predicted, %
          </text>
          <text x="10" y={y(50)} text-anchor="middle" transform={`rotate(-90 10 ${y(50)})`}>
            Observed, %
          </text>
        </>
      )}
      {behind.length > 0 && <polyline class="behind" points={pointsOf(seenIn(behind))} />}
      {series.map(({ bins, family }) => {
        const total = bins.reduce((sum, { n }) => sum + n, 0);
        const shown = is_crowded ? judged(bins) : seenIn(bins);
        return (
          <g key={family} class={family}>
            {series.length > 1 && <polyline class="curve" points={pointsOf(shown)} />}
            {shown.map(({ from, n, mean_forecast, frequency, low, high }) => {
              const [cx, cy] = [x(mean_forecast ?? 0), y(frequency ?? 0)];
              const radius = (3 + 9 * Math.sqrt(n / total)) * (size / whole_size);
              return (
                <g key={from} class={n < few ? 'faded' : undefined}>
                  {!is_crowded && (
                    <line class="span" x1={cx} x2={cx} y1={y(low ?? 0)} y2={y(high ?? 100)} />
                  )}
                  <circle class="dot" cx={cx} cy={cy} r={radius.toFixed(1)}>
                    <title>{`predicted ${percentText(mean_forecast)}, observed ${percentText(frequency)}, n = ${n}`}</title>
                  </circle>
                </g>
              );
            })}
          </g>
        );
      })}
    </svg>
  );
};

export const CalibrationTable = ({ bins }: { bins: readonly Bin[] }) => (
  <table>
    <Heads names={['Predicted', 'Forecasts', 'Mean predicted', 'Observed', '95% interval']} />
    <tbody>
      {seenIn(bins).map(({ from, to, n, mean_forecast, frequency, low, high }) => (
        <tr key={from}>
          <th scope="row">
            {Math.round(from)} to {Math.round(to)}%
          </th>
          <td class="n">{grouped(n)}</td>
          <td class="n">{percentText(mean_forecast)}</td>
          <td class="n">{percentText(frequency)}</td>
          <td class="n">
            {percentText(low)} to {percentText(high)}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** Bins with enough forecasts to be judged. */
const judged = (bins: readonly Bin[]): readonly Bin[] => bins.filter(({ n }) => n >= few);
const gapOf = ({ mean_forecast, frequency }: Bin): number =>
  (mean_forecast ?? 0) - (frequency ?? 0);

/**
 * Says by how much the mean of all stated chances was above or below the share of outcomes that
 * happened. Null if there are fewer than `min_resolved` forecasts.
 */
export const leanText = (bins: readonly Bin[]): string | null => {
  const n = bins.reduce((sum, bin) => sum + bin.n, 0);
  if (n < min_resolved) return null;
  const gap = bins.reduce((sum, bin) => sum + bin.n * gapOf(bin), 0) / n;
  if (Math.abs(gap) < 2) return 'Well calibrated overall';
  const points = Math.abs(Math.round(gap));
  return `${gap > 0 ? 'Overconfident' : 'Underconfident'} by ${points} points`;
};

/**
 * Says in words whether the stated chances were too high or too low, and which bin with at least
 * `few` forecasts contributes most.
 */
export const calibrationText = (bins: readonly Bin[], ece: number | null): string => {
  const lean = leanText(bins);
  const [worst] = [...judged(bins)].sort(
    (a, b) => b.n * Math.abs(gapOf(b)) - a.n * Math.abs(gapOf(a)),
  );
  if (lean === null || ece === null) return 'Too few resolved forecasts to judge calibration.';
  const overall = `${lean} (ECE ${ece.toFixed(3)}).`;
  if (worst === undefined) return overall;
  return `${overall} Largest contribution: ${percentText(worst.mean_forecast)} predicted, ${percentText(worst.frequency)} observed (n = ${worst.n}).`;
};

export interface DayValue {
  readonly date: string;
  readonly value: number;
}

/** A step chart: each value holds until the day of the next value. */
export const DayLine = ({ days, label }: { days: readonly DayValue[]; label: string }) => {
  const times = days.map(({ date }) => Date.parse(date));
  const [from = 0, to = from] = [times[0], times.at(-1)];
  const values = days.map(({ value }) => value);
  const y = scaleLinear([Math.min(0, ...values), Math.max(1, ...values)], [94, 6]).nice(4);
  const x = scaleUtc([from - 86_400_000, Math.max(to, from + 1)], [0, 100]);
  const path = days.map(({ value }, n) => `H${x(times[n]!).toFixed(2)}V${y(value).toFixed(2)}`);
  const ends = from === to ? [from] : [from, to];
  return (
    <svg class="day-line" width="100%" height="220" role="img" aria-label={label}>
      {y.ticks(4).map((tick) => (
        <>
          <text x="13%" y={`${(y(tick) * 0.88 + 2).toFixed(2)}%`} text-anchor="end">
            {tick < 0 ? `−${grouped(-tick)}` : grouped(tick)}
          </text>
          <line
            class={tick === 0 ? 'axis' : 'grid-line'}
            x1="15%"
            x2="100%"
            y1={`${(y(tick) * 0.88).toFixed(2)}%`}
            y2={`${(y(tick) * 0.88).toFixed(2)}%`}
          />
        </>
      ))}
      <svg
        aria-hidden="true"
        x="15%"
        width="85%"
        height="88%"
        viewBox="0 0 100 100"
        preserveAspectRatio="none"
      >
        <path class="line" d={`M0 ${y(0).toFixed(2)}${path.join('')}`} />
      </svg>
      {ends.map((end, n) => (
        <text
          key={end}
          x={n === 0 ? '15%' : '100%'}
          y="98%"
          text-anchor={n === 0 ? 'start' : 'end'}
        >
          {dayText(new Date(end))}
        </text>
      ))}
    </svg>
  );
};
