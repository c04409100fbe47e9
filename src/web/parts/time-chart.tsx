import { timeText } from '../../kit/format.js';
import { numberAxis, percentAxis, timeAxis } from '../../kit/svg-chart.js';
import { dashOf, drawTimeChart } from '../../kit/svg-time-chart.js';
import { Scroll } from './lists.js';

/**
 * A chart of values over time, drawn twice: once for wide and once for narrow screens, because
 * text in an SVG shrinks with it. `chart.js` shows the values under the pointer and lets the reader
 * hide lines.
 */

export interface PlotPoint {
  readonly at: number;
  readonly value: number;
}

export interface PlotLine {
  readonly name: string;
  /** Index of the colour. `total` is the line of all forecasts, shown beside the families. */
  readonly series: number | 'total';
  /** Tells lines of one colour apart; 0 is a solid line. */
  readonly dash?: number;
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

interface ChartProps {
  /** Describes the chart in a sentence. */
  readonly label: string;
  readonly from: number;
  readonly to: number;
  readonly scale: PlotScale;
  readonly lines: readonly PlotLine[];
  readonly bands?: readonly PlotBand[];
  /** Times of forecasts, as a rug plot below the lines. */
  readonly rug?: readonly { readonly at: number; readonly is_revision: boolean }[];
  /** The number of forecasts at each moment. */
  readonly counts?: readonly PlotPoint[];
  readonly end?:
    | { readonly at: number; readonly label: string; readonly level?: number | undefined }
    | undefined;
  /** The place: the column of a page (the default), above a leaderboard, or a card. */
  readonly place?: keyof typeof wide | undefined;
}

/** Sizes in units of the picture, which are about as large as pixels. */
const wide = {
  page: { look: 'wide-plot', width: 740, height: 310, times: 6 },
  board: { look: 'wide-plot', width: 740, height: 240, times: 6 },
  card: { look: 'wide-plot', width: 540, height: 230, times: 4 },
} as const;
const narrow = { look: 'narrow-plot', width: 350, height: 250, times: 3 } as const;

const axisOf = ({ low, high, kind }: PlotScale) =>
  kind === 'percent'
    ? percentAxis(5, { from: low, to: high })
    : kind === 'date'
      ? timeAxis(low, high, 5)
      : numberAxis(low, high, 5);

/** Numbers with at most four digits after the point, so that the page stays small. */
const short = (value: number): number => Math.round(value * 10_000) / 10_000;

/** Everything that `chart.js` needs to show the values at a time. */
const dataOf = ({ from, to, scale, lines, bands = [], counts = [] }: ChartProps) =>
  JSON.stringify({
    from,
    to,
    kind: scale.kind,
    unit: scale.unit ?? '',
    lines: lines.map(({ name, points }) => [
      name,
      points.map(({ at, value }) => [at, short(value)]),
    ]),
    band: bands.at(-1)?.spans.map(({ at, low, high }) => [at, short(low), short(high)]) ?? [],
    counts: counts.map(({ at, value }) => [at, value]),
  });

export const TimeChart = (props: ChartProps) => {
  const { label, from, to, scale, lines, bands = [], rug = [], end, place = 'page' } = props;
  const is_many = lines.length > 1;
  const drawn = {
    desc: label,
    y: axisOf(scale),
    lines: lines.map(({ name, series, dash, points }) => {
      const figure = points.length === 0 ? '' : scale.text(points.at(-1)?.value ?? 0);
      return {
        name,
        series,
        dash,
        label: is_many ? `${figure} ${name}` : figure,
        points: points.map(({ at, value }) => ({ x: at, y: value })),
      };
    }),
    bands: bands.map(({ spans }) => spans.map(({ at, low, high }) => ({ x: at, low, high }))),
    rug,
    end,
  };
  return (
    <div class="plot" data-plot={dataOf(props)}>
      {[wide[place], narrow].map(({ look, times, ...size }) => (
        <div
          key={look}
          class={look}
          dangerouslySetInnerHTML={{
            __html: drawTimeChart({ ...drawn, ...size, x: timeAxis(from, to, times) }),
          }}
        />
      ))}
    </div>
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
    {lines.map(({ name, series, dash = 0, points }) => {
      const last = points.at(-1);
      return (
        <li key={name} data-legend={name}>
          <svg width="24" height="8" aria-hidden="true">
            <line
              class={series === 'total' ? 'c-total' : `c-l${series}`}
              stroke-width="3"
              stroke-dasharray={dashOf(dash)}
              x1="0"
              x2="24"
              y1="4"
              y2="4"
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
        {shown.length < times.length && (
          <caption>
            {shown.length} of {times.length} times of the chart.
          </caption>
        )}
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
