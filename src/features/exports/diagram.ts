import type { SvgTheme } from '../../kit/svg.js';
import {
  drawChart,
  drawDot,
  drawErrorBar,
  drawLine,
  drawNote,
  type Plot,
  percentAxis,
} from '../../kit/svg-chart.js';
import type { Calibration } from './calibration-rules.js';

/** The reliability diagram: how often came about what was stated with each probability. */

export interface DrawnGroup {
  readonly label: string;
  readonly calibration: Calibration;
}

/** Curves that can be told apart. */
const most_drawn = 4;

const percent = (share: number | null): number => Math.round((share ?? 0) * 1e4) / 100;

/** The area of a dot follows the share of the forecasts in its bin. */
const radiusOf = (n: number, total: number): number => 3 + 9 * Math.sqrt(n / total);

const drawGroup = (plot: Plot, { bins, n: total }: Calibration, series: number) => {
  const seen = bins
    .filter(({ n }) => n > 0)
    .map(({ n, mean_forecast, frequency, low, high }) => ({
      ...{ n, x: percent(mean_forecast), y: percent(frequency) },
      ...{ low: percent(low), high: percent(high) },
    }));
  return [
    drawLine(plot, seen, { series, width: 1.5 }),
    ...seen.map((bin) => drawErrorBar(plot, bin, series)),
    ...seen.map((bin) => {
      const label = `stated ${bin.x} %, came about ${bin.y} %, n = ${bin.n}`;
      return drawDot(plot, bin, { series, radius: radiusOf(bin.n, total), label });
    }),
  ];
};

const none = 'No prediction has been resolved.';

interface DiagramParts {
  readonly groups: readonly DrawnGroup[];
  readonly event: 'taken' | 'yes';
  readonly as_of: string;
  readonly theme: SvgTheme;
}

export const drawDiagram = ({ groups, event, as_of, theme }: DiagramParts): string => {
  const shown = groups.slice(0, most_drawn);
  const desc = shown.map(
    ({ label, calibration: { n, brier, ece } }) =>
      `${label}: ${n} forecasts, Brier score ${brier.toFixed(3)}, ECE ${ece.toFixed(3)}.`,
  );
  const what = event === 'yes' ? 'chance of YES' : 'confidence in what was taken';
  const ends = [0, 100].map((at) => ({ x: at, y: at }));
  return drawChart({
    title: 'Calibration',
    subtitle: shown.length === 0 ? none : `Stated ${what}, and frequency`,
    desc: shown.length === 0 ? none : desc.join(' '),
    legend: [
      { label: 'perfect', series: shown.length, kind: 'dashed' },
      ...shown.map(({ label, calibration: { ece } }, series) => ({
        ...{ label: `${label} (ECE ${ece.toFixed(3)})`, series, kind: 'dot' as const },
      })),
    ],
    source: `Bars: Wilson 95 %. Dots: by share of forecasts. As of ${as_of}`,
    x: percentAxis(5, `Mean ${what}`),
    y: percentAxis(5, 'Came about'),
    width: 640,
    height: 620,
    theme,
    draw: (plot) => [
      drawLine(plot, ends, { series: shown.length, kind: 'dashed', width: 1.5 }),
      ...(shown.length === 0 ? [drawNote(plot, none)] : []),
      ...shown.flatMap(({ calibration }, series) => drawGroup(plot, calibration, series)),
    ],
  });
};
