import { scaleLinear, scaleUtc } from 'd3-scale';
import type { ComponentChildren } from 'preact';
import { dayText, grouped, percentText } from '../../kit/format.js';
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
  table,
  children,
}: {
  summary: ComponentChildren;
  table: ComponentChildren;
  children: ComponentChildren;
}) => (
  <figure class="chart">
    {children}
    <figcaption>{summary}</figcaption>
    <details>
      <summary>Show as table</summary>
      <div class="scroll">{table}</div>
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

const plot = { left: 40, top: 8, size: 300 };
const plotX = (percent: number): number => plot.left + (percent / 100) * plot.size;
const plotY = (percent: number): number => plot.top + (1 - percent / 100) * plot.size;

/**
 * Plots how often outcomes happened against the chance stated for them, in percent. The dots are
 * not connected by a line.
 */
export const CalibrationPlot = ({
  bins,
  label,
  family = '',
}: {
  bins: readonly Bin[];
  label: string;
  family?: string;
}) => {
  const total = bins.reduce((sum, { n }) => sum + n, 0);
  return (
    <svg class={`calibration ${family}`} viewBox="0 0 356 350" role="img" aria-label={label}>
      {[0, 25, 50, 75, 100].map((tick) => (
        <>
          <line class="grid-line" x1={plotX(tick)} x2={plotX(tick)} y1={plotY(0)} y2={plotY(100)} />
          <line class="grid-line" x1={plotX(0)} x2={plotX(100)} y1={plotY(tick)} y2={plotY(tick)} />
          <text x={plotX(tick)} y={plotY(0) + 16} text-anchor="middle">
            {tick}
          </text>
          <text x={plotX(0) - 6} y={plotY(tick) + 4} text-anchor="end">
            {tick}
          </text>
        </>
      ))}
      <line class="axis even" x1={plotX(0)} y1={plotY(0)} x2={plotX(100)} y2={plotY(100)} />
      <text x={plotX(50)} y={plotY(0) + 32} text-anchor="middle">
        Predicted, %
      </text>
      <text x="10" y={plotY(50)} text-anchor="middle" transform={`rotate(-90 10 ${plotY(50)})`}>
        Observed, %
      </text>
      {seenIn(bins).map(({ from, n, mean_forecast, frequency, low, high }) => {
        const [x, y] = [plotX(mean_forecast ?? 0), plotY(frequency ?? 0)];
        return (
          <g key={from} class={n < few ? 'faded' : undefined}>
            <line class="span" x1={x} x2={x} y1={plotY(low ?? 0)} y2={plotY(high ?? 100)} />
            <circle class="dot" cx={x} cy={y} r={(3 + 9 * Math.sqrt(n / total)).toFixed(1)}>
              <title>{`predicted ${percentText(mean_forecast)}, observed ${percentText(frequency)}, n = ${n}`}</title>
            </circle>
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

/**
 * Says in words whether the stated chances were too high or too low, and which bin contributes
 * most. Skips bins with fewer than `few` forecasts.
 */
export const calibrationText = (bins: readonly Bin[], ece: number | null): string => {
  const seen = seenIn(bins).filter(({ n }) => n >= few);
  const gapOf = ({ mean_forecast, frequency }: Bin): number =>
    (mean_forecast ?? 0) - (frequency ?? 0);
  const [worst] = [...seen].sort((a, b) => b.n * Math.abs(gapOf(b)) - a.n * Math.abs(gapOf(a)));
  if (worst === undefined || ece === null)
    return 'Too few resolved forecasts to judge calibration.';
  const n = seen.reduce((sum, bin) => sum + bin.n, 0);
  const gap = seen.reduce((sum, bin) => sum + bin.n * gapOf(bin), 0) / n;
  const lean =
    Math.abs(gap) < 2
      ? 'Well calibrated overall'
      : `${gap > 0 ? 'Overconfident' : 'Underconfident'} by ${Math.abs(Math.round(gap))} points`;
  return (
    `${lean} (ECE ${(100 * ece).toFixed(1)} points). Largest contribution: ` +
    `${percentText(worst.mean_forecast)} predicted, ${percentText(worst.frequency)} observed (n = ${worst.n}).`
  );
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
