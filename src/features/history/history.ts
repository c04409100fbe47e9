import type { Deps } from '../../kit/deps.js';
import { createMadeCache } from '../../kit/made-cache.js';
import type { SvgTheme } from '../../kit/svg.js';
import { createPngMaker } from '../../kit/svg-png.js';
import type { QuestionRow } from '../questions/index.js';
import { type Chart, type ChartAsk, makeChart } from './chart.js';
import { type Drift, type DriftAsk, driftOf } from './drift-answer.js';
import { createLiveHistory, type LiveHistory } from './live.js';
import { createMovers, type Movers } from './movers-live.js';
import { drawPicture } from './picture.js';

/**
 * Charts of the consensus in an api process: their points, and pictures of them, each made once for
 * a state of the question and kept while there is room.
 */
export interface History extends LiveHistory {
  /** The points of a chart of a question that the caller may see. */
  chart(question: QuestionRow, ask: ChartAsk): Promise<Chart>;
  /** The same as an SVG document. */
  svg(question: QuestionRow, ask: ChartAsk, look: Look): Promise<Picture<string>>;
  /**
   * And as PNG, `scale` pixels for each of its units. Rejects with a `PngBusyError` when too
   * many wait for theirs.
   */
  png(question: QuestionRow, ask: ChartAsk, look: PngLook): Promise<Picture<Uint8Array>>;
  /** Where the consensus of one question moved. */
  drift(question: QuestionRow, ask: DriftAsk): Promise<Drift>;
  /** How far all questions moved. */
  readonly movers: Movers;
  close(): Promise<void>;
}

export interface Look {
  readonly theme: SvgTheme;
  /** Units; letters are as large in every picture. */
  readonly width: number;
}

export interface PngLook extends Look {
  readonly scale: number;
}

export interface Picture<B> {
  readonly body: B;
  /** Of the newest prediction that is counted in. */
  readonly offset: number;
}

/** Every whole chart that fits into the usual number of points is some 30 KB. */
const most_chart_bytes = 8_000_000;
const most_drift_bytes = 4_000_000;
const most_svg_bytes = 8_000_000;
const most_png_bytes = 8_000_000;
const site = 'Prediction Forum';

const keyOf = (question: QuestionRow, offset: number, asked: readonly unknown[]): string =>
  JSON.stringify([question.id, question.updated_at.getTime(), offset, ...asked]);

export const createHistory = (deps: Pick<Deps, 'sql'>): History => {
  const live = createLiveHistory(deps);
  const charts = createMadeCache<Chart>(
    ({ points }) => 400 + 160 * points.length,
    most_chart_bytes,
  );
  const svgs = createMadeCache<string>((text) => text.length, most_svg_bytes);
  const pngs = createMadeCache<Uint8Array>((bytes) => bytes.byteLength, most_png_bytes);
  const drifts = createMadeCache<Drift>(
    ({ drift_events }) => 400 + 600 * drift_events.length,
    most_drift_bytes,
  );
  const maker = createPngMaker();

  const chart = async (question: QuestionRow, ask: ChartAsk): Promise<Chart> => {
    const series = await live.read(question);
    const { points, family, since, until } = ask;
    const key = keyOf(question, series.offset, [points, family, since, until]);
    return charts.get(key, () => makeChart(series, ask));
  };
  /** What a picture is known by, and how to draw it. */
  const prepare = async (question: QuestionRow, ask: ChartAsk, { theme, width }: Look) => {
    const drawn = await chart(question, ask);
    const { points, family, since, until } = ask;
    return {
      offset: drawn.offset,
      asked: [points, family, since, until, theme, width],
      draw: (): string => drawPicture({ question, chart: drawn, family, theme, width, site }),
    };
  };

  return {
    ...live,
    movers: createMovers(deps),
    chart,
    async svg(question, ask, look) {
      const { offset, asked, draw } = await prepare(question, ask, look);
      return { body: await svgs.get(keyOf(question, offset, asked), draw), offset };
    },
    async drift(question, ask) {
      const series = await live.read(question);
      const { window, points, least_count, figure } = ask;
      const key = keyOf(question, series.offset, [window, points, least_count, figure]);
      return drifts.get(key, () => driftOf(question, series, ask));
    },
    async png(question, ask, { scale, ...look }) {
      const { offset, asked, draw } = await prepare(question, ask, look);
      const make = (): Promise<Uint8Array> => maker.render(draw(), look.width * scale);
      return { body: await pngs.get(keyOf(question, offset, [...asked, scale]), make), offset };
    },
    close: maker.close,
  };
};
