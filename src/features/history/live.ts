import type { Deps } from '../../kit/deps.js';
import { makeGate } from '../../kit/ws/gate.js';
import { type QuestionShape, statedIn as readEvent, timeOf } from '../consensus/index.js';
import type { LogEntry } from '../events/index.js';
import type { Stated } from './run.js';
import { type GrowingSeries, makeSeries, type Series } from './series.js';
import { readStated } from './store.js';

/**
 * The histories that somebody asks for, in the memory of an api process, moved on by the log as the
 * live consensus is:
 *
 *   absent ──asked for──▶ loading ──▶ kept: every prediction of the log is added
 *     ▲                     │           │
 *     └──── it failed ──────┘           └─▶ absent: no room, a hole in the log, or a prediction
 *                                           that belongs far back (an import)
 *
 * What is loaded stands at an offset; predictions that the log brings meanwhile wait beside it and
 * are added when they are newer. Nothing is lost with what is dropped.
 */
export interface LiveHistory {
  /**
   * Of a question that the caller may see; a draft has none. To be used in the same turn of the
   * event loop: the series goes on.
   */
  read(question: QuestionShape): Promise<Series>;
  /** Of the newest prediction of a history that is kept; undefined where none is. */
  peekOffset(question_id: string): number | undefined;
  /** Feed this from the follower. */
  onEvents(batch: readonly LogEntry[]): void;
  stats(): { readonly kept: number; readonly predictions: number };
}

interface Loading {
  readonly since: LogEntry[];
  readonly series: Promise<GrowingSeries>;
}

/** Of all series together: some 50 MB. One question alone may have more. */
const most_predictions = 300_000;
const loads_at_once = 2;

/** What the event of a prediction states, as the history needs it. */
const statedIn = (entry: LogEntry, options: readonly string[]): Stated => {
  const { family, yes, option, value, given } = readEvent(entry, options);
  const owner = entry.owner_id ?? entry.agent_id ?? entry.id;
  const side = option ?? (yes ? 1 : 0);
  return { at: Date.parse(timeOf(entry)), family, owner, side, value, given: given ?? [] };
};

/** False when the series has to be made anew. */
const addTo = (series: GrowingSeries, entry: LogEntry): boolean =>
  entry.offset <= series.offset || series.add(statedIn(entry, series.shape.options), entry.offset);

const load = async (sql: Deps['sql'], question: QuestionShape): Promise<GrowingSeries> => {
  const { question_type, options } = question;
  const series = makeSeries({ question_type, options });
  await sql.begin('read only', async (tx) => {
    for await (const { stated, offset } of readStated(tx, question)) {
      for (const one of stated) series.add(one, offset);
      // Answers to others come between two pieces.
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  return series;
};

export const createLiveHistory = (
  { sql }: Pick<Deps, 'sql'>,
  most = most_predictions,
): LiveHistory => {
  /** The longest unused first. */
  const shelf = new Map<string, GrowingSeries>();
  const loading = new Map<string, Loading>();
  const gate = makeGate(loads_at_once);
  let head = -1;

  const count = (): number => {
    let sum = 0;
    for (const { length } of shelf.values()) sum += length;
    return sum;
  };
  const keep = (id: string, series: GrowingSeries): void => {
    shelf.delete(id);
    shelf.set(id, series);
    for (const oldest of shelf.keys()) {
      if (shelf.size === 1 || count() <= most) return;
      shelf.delete(oldest);
    }
  };

  const start = async (question: QuestionShape, since: LogEntry[]): Promise<GrowingSeries> => {
    const { id } = question;
    const isCurrent = (): boolean => loading.get(id)?.since === since;
    try {
      const series = await gate(() => load(sql, question));
      const is_whole = since.every((entry) => addTo(series, entry));
      if (isCurrent() && is_whole) keep(id, series);
      return series;
    } finally {
      if (isCurrent()) loading.delete(id);
    }
  };

  return {
    async read(question) {
      const { id } = question;
      const known = shelf.get(id);
      if (known !== undefined) {
        keep(id, known);
        return known.read();
      }
      const under_way = loading.get(id);
      if (under_way !== undefined) return (await under_way.series).read();
      const since: LogEntry[] = [];
      const series = start(question, since);
      loading.set(id, { since, series });
      return (await series).read();
    },
    peekOffset: (question_id) => shelf.get(question_id)?.offset,
    onEvents(batch) {
      if (batch[0] !== undefined && batch[0].offset !== head + 1) {
        // Something of the log was not seen here: what is kept or under way may lack it.
        shelf.clear();
        loading.clear();
      }
      head = batch.at(-1)?.offset ?? head;
      if (shelf.size === 0 && loading.size === 0) return;
      for (const entry of batch) {
        const { question_id, event } = entry;
        if (event !== 'prediction.placed' || question_id === null) continue;
        loading.get(question_id)?.since.push(entry);
        const series = shelf.get(question_id);
        if (series !== undefined && !addTo(series, entry)) shelf.delete(question_id);
      }
    },
    stats: () => ({ kept: shelf.size, predictions: count() }),
  };
};
