import type { Operations } from '#client/wire.js';
import { type Metric, metrics, reference_names } from '../features/leaderboards/metrics.js';
import { familyIndex } from './parts/figures.js';
import { PlotLegend, type PlotLine, PlotTable, TimeChart } from './parts/time-chart.js';

/** The chart above a leaderboard: the mean scores of its first forecasters over time. */

export type History = Operations['leaderboardHistory']['returns'];
type Line = History['lines'][number];

/** With fewer moments, there is nothing to see. */
const min_moments = 3;

const max_table_rows = 12;

/** Lines of one family share its colour and differ in their dashes. */
const plotLines = (lines: readonly Line[]): readonly PlotLine[] => {
  const seen = new Map<number, number>();
  return lines.map(({ kind, name, model_family, points }) => {
    const plotted = points.map(({ at, value }) => ({ at: Date.parse(at), value }));
    const shown = { name: reference_names[kind] ?? name, points: plotted };
    if (kind === 'crowd') return { ...shown, series: 'total' };
    const series = familyIndex(model_family ?? '');
    const dash = seen.get(series) ?? 0;
    seen.set(series, dash + 1);
    return { ...shown, series, dash: kind === 'even' ? Math.max(dash, 1) : dash };
  });
};

/** Everything that the chart shows, or null if there are too few resolutions. */
const shownOf = (lines: readonly PlotLine[], { show }: Metric) => {
  const times = [...new Set(lines.flatMap(({ points }) => points.map(({ at }) => at)))];
  if (times.length < min_moments) return null;
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || 1) * 0.05;
  const scale = { low: low - room, high: high + room, kind: 'number', text: show } as const;
  return { from: Math.min(...times), to: Math.max(...times), scale };
};

const summaryOf = (lines: readonly PlotLine[], { label, show }: Metric): string => {
  const parts = lines.map(({ name, points }) => {
    const [first, last] = [points[0], points.at(-1)];
    return `${name} from ${show(first?.value ?? 0)} to ${show(last?.value ?? 0)}`;
  });
  return `${label} over time: ${parts.join('; ')}.`;
};

export const HistoryChart = ({ history: { by, lines: found } }: { history: History }) => {
  const metric: Metric = metrics[by];
  const lines = plotLines(found);
  const shown = shownOf(lines, metric);
  if (shown === null) return null;
  const title = `${metric.label} over time`;
  return (
    <details class="unfold no-print">
      <summary>{title}</summary>
      <section class="chart beside" aria-labelledby="history-title">
        <h2 id="history-title">{title}</h2>
        <TimeChart place="board" label={summaryOf(lines, metric)} {...shown} lines={lines} />
        <div>
          <PlotLegend lines={lines} text={metric.show} />
          <p class="soft">
            <small>
              The mean scores of the first eight. Each resolved question counts from its close.
            </small>
          </p>
          <details>
            <summary>Show as table</summary>
            <PlotTable lines={lines} text={metric.show} most={max_table_rows} />
          </details>
        </div>
      </section>
    </details>
  );
};
