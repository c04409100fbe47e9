import { makeCache, makeQueue } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import type { SvgTheme } from '../../kit/svg.js';
import { createPngMaker } from '../../kit/svg-png.js';
import type { QuestionShape } from '../consensus/index.js';
import type { LogEntry } from '../events/index.js';
import type { QuestionRow } from '../questions/index.js';
import { type Chart, type ChartAsk, makeChart } from './chart.js';
import { type Drift, type DriftAsk, driftOf } from './drift.js';
import { type Mover, rankMovers } from './movers.js';
import { readMoved, type Stretch } from './movers-store.js';
import { drawPicture } from './picture.js';
import { makeSeries, type Series } from './series.js';
import { readStated } from './store.js';

/**
 * Histories in an api process: read from the record when somebody asks, and kept for seconds or
 * until the question gets another prediction. What is made of one is kept while there is room.
 */
export interface History {
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
  /** Feed this from the follower. */
  onEvents(batch: readonly LogEntry[]): void;
  close(): Promise<void>;
}

export interface Movers {
  /** Rejects with a `BusyError` when too many wait for other stretches. */
  read(stretch: Stretch): Promise<readonly Mover[]>;
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

/** Of all series together: some 50 MB. */
const most_predictions = 300_000;
const fresh_ms = 5_000;
/** So long a history is not read again for each prediction. */
const long_history = 10_000;
const loads_at_once = 2;
const most_bytes = 20_000_000;
const most_movers = 10_000;
const most_waiting = 16;
const site = 'Prediction Forum';

const load = async (sql: Deps['sql'], question: QuestionShape): Promise<Series> => {
  const { question_type, options } = question;
  const series = makeSeries({ question_type, options });
  await sql.begin('read only', async (tx) => {
    for await (const { stated, offset } of readStated(tx, question)) {
      for (const one of stated) series.add(one, offset);
      // Answers to others come between two pieces.
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  return series.read();
};

const createMovers = ({ sql }: Pick<Deps, 'sql'>): Movers => {
  const made = makeCache<readonly Mover[]>({ most: most_movers, sizeOf: (all) => 1 + all.length });
  const queue = makeQueue(1, most_waiting);
  return {
    read: async (stretch) =>
      made.get(`${stretch.from.getTime()} ${stretch.to.getTime()}`, () =>
        queue(async () => rankMovers(await readMoved(sql, stretch))),
      ),
  };
};

type Made = Chart | Drift | string | Uint8Array;

const bytesOf = (made: Made): number => {
  if (typeof made === 'string' || made instanceof Uint8Array) return 400 + made.length;
  return (
    400 + ('points' in made && typeof made.points !== 'number' ? 160 * made.points.length : 6_000)
  );
};

export const createHistory = (deps: Pick<Deps, 'sql'>): History => {
  const queue = makeQueue(loads_at_once, Number.POSITIVE_INFINITY);
  const all_series = makeCache<Series>({
    ...{ most: most_predictions, ttl_ms: fresh_ms },
    sizeOf: ({ length }) => length + 100,
  });
  const all_made = makeCache<Made>({ most: most_bytes, sizeOf: bytesOf });
  const maker = createPngMaker();

  const readSeries = async (question: QuestionRow): Promise<Series> =>
    all_series.get(question.id, () => queue(() => load(deps.sql, question)));
  /** The same of the same state of the question is made once. */
  const make = async <M extends Made>(
    what: string,
    about: readonly [question: QuestionRow, offset: number, ...asked: unknown[]],
    work: () => M | Promise<M>,
  ): Promise<M> => {
    const [question, ...rest] = about;
    const key = JSON.stringify([what, question.id, question.updated_at.getTime(), ...rest]);
    return all_made.get(key, async () => work()) as M | Promise<M>;
  };
  const chart = async (question: QuestionRow, ask: ChartAsk): Promise<Chart> => {
    const series = await readSeries(question);
    return make('chart', [question, series.offset, ask], () => makeChart(series, ask));
  };
  const svg = async (question: QuestionRow, ask: ChartAsk, { theme, width }: Look) => {
    const drawn = await chart(question, ask);
    const { family } = ask;
    const { offset } = drawn;
    const body = await make('svg', [question, offset, ask, theme, width], () =>
      drawPicture({ question, chart: drawn, family, theme, width, site }),
    );
    return { body, offset };
  };

  return {
    chart,
    svg,
    async png(question, ask, { scale, ...look }) {
      const { body, offset } = await svg(question, ask, look);
      const work = () => maker.render(body, look.width * scale);
      return { body: await make('png', [question, offset, ask, look, scale], work), offset };
    },
    async drift(question, ask) {
      const series = await readSeries(question);
      return make('drift', [question, series.offset, ask], () => driftOf(question, series, ask));
    },
    movers: createMovers(deps),
    onEvents(batch) {
      for (const { question_id, event } of batch) {
        if (event !== 'prediction.placed' || question_id === null) continue;
        const is_long = (all_series.peek(question_id)?.length ?? 0) > long_history;
        if (!is_long) all_series.forget(question_id);
      }
    },
    close: maker.close,
  };
};
