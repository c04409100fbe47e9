import type { Markup, SvgTheme } from '../../kit/svg.js';
import {
  type ChartParts,
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
export const most_drawn = 4;

interface Seen {
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
  readonly n: number;
}

const percent = (share: number | null): number => Math.round((share ?? 0) * 1e4) / 100;

const seenBins = ({ bins }: Calibration): readonly Seen[] =>
  bins
    .filter(({ n }) => n > 0)
    .map(({ n, mean_forecast, frequency, low, high }) => ({
      ...{ n, x: percent(mean_forecast), y: percent(frequency) },
      ...{ low: percent(low), high: percent(high) },
    }));

/** The area of a dot follows the share of the forecasts in its bin. */
const radiusOf = (n: number, total: number): number => 3 + 9 * Math.sqrt(n / total);

const drawGroup = (plot: Plot, { calibration }: DrawnGroup, series: number): (Markup | null)[] => {
  const seen = seenBins(calibration);
  return [
    drawLine(plot, seen, { series, width: 1.5 }),
    ...seen.map((bin) => drawErrorBar(plot, bin, series)),
    ...seen.map((bin) => {
      const label = `stated ${bin.x} %, came about ${bin.y} %, n = ${bin.n}`;
      return drawDot(plot, bin, { series, radius: radiusOf(bin.n, calibration.n), label });
    }),
  ];
};

export interface DiagramParts {
  readonly groups: readonly DrawnGroup[];
  readonly event: 'taken' | 'yes';
  readonly as_of: string;
  readonly theme: SvgTheme;
}

const descOf = (groups: readonly DrawnGroup[]): string =>
  groups.length === 0
    ? 'No prediction has been resolved.'
    : groups
        .map(
          ({ label, calibration: { n, brier, ece } }) =>
            `${label}: ${n} forecasts, Brier score ${brier.toFixed(3)}, ECE ${ece.toFixed(3)}.`,
        )
        .join(' ');

export const drawDiagram = ({ groups, event, as_of, theme }: DiagramParts): string => {
  const shown = groups.slice(0, most_drawn);
  const desc = descOf(shown);
  const what = event === 'yes' ? 'chance of YES' : 'confidence in what was taken';
  const chart: ChartParts = {
    title: 'Calibration',
    subtitle: shown.length === 1 ? desc.replace(/^all: /, '') : `Stated ${what}, and frequency`,
    desc,
    legend: [
      { label: 'perfect', series: groups.length === 0 ? 0 : shown.length, kind: 'dashed' },
      ...shown.map(({ label, calibration }, series) => ({
        ...{ label: `${label} (ECE ${calibration.ece.toFixed(3)})`, series },
        kind: 'dot' as const,
      })),
    ],
    source: `Bars: Wilson 95 %. Dots: by share of forecasts. As of ${as_of}`,
    x: percentAxis(5, `Mean ${what}`),
    y: percentAxis(5, 'Came about'),
    width: 640,
    height: 620,
    theme,
    draw: (plot) => [
      drawLine(
        plot,
        [
          { x: 0, y: 0 },
          { x: 100, y: 100 },
        ],
        {
          ...{ series: shown.length, kind: 'dashed', width: 1.5 },
        },
      ),
      ...(shown.length === 0 ? [drawNote(plot, 'No prediction has been resolved.')] : []),
      ...shown.flatMap((group, series) => drawGroup(plot, group, series)),
    ],
  };
  return drawChart(chart);
};
