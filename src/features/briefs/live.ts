import pLimit from 'p-limit';
import type { Deps } from '../../http/deps.js';
import { makeCache, makeQueue } from '../../kit/cache.js';
import type { LiveConsensus } from '../consensus/index.js';
import { isNumber } from '../consensus/numbers.js';
import type { Consensus } from '../consensus/rules.js';
import type { QuestionRow } from '../questions/index.js';
import { buildBrief } from './build.js';
import { contestedOf, type Day, moversOf, resolvedOf } from './daily-rules.js';
import * as daily from './daily-store.js';
import { brief_limits, chooseArguments, hourOf, rankSides, sidesOf } from './rules.js';
import type { Brief } from './schema.js';
import * as store from './store.js';

const fresh_ms = 1_000;
/** One brief takes about 20 KB. */
const max_briefs = 300;
const loads_at_once = 3;
/** The consensus at an earlier time changes only if earlier forecasts are imported. */
const past_ms = 60_000;
const max_past = 3_000;

const endOf = ({ status, closes_at }: QuestionRow, life: store.LifeRow, now: Date): Date | null => {
  const ended = [life.closed_at, life.voided_at, closes_at <= now ? closes_at : null]
    .filter((at): at is Date => at !== null)
    .map((at) => at.getTime());
  if (ended.length > 0) return new Date(Math.min(...ended));
  return status === 'open' || status === 'draft' ? null : closes_at;
};

/** Returns the consensus of the forecasts made before a time, by question. */
const consensusBefore = async (
  live: LiveConsensus,
  ids: readonly string[],
  end: Date,
): Promise<ReadonlyMap<string, Consensus>> => {
  const at = new Date(end.getTime() - 1);
  const found = await live.findAll(ids, at);
  return new Map(found.map((one) => [one.question_id, one]));
};

interface Sources {
  readonly sql: Deps['sql'];
  readonly now: Date;
  readBefore(question_id: string, end: Date): Promise<Consensus | undefined>;
}

const readInput = async (
  { sql, now, readBefore }: Sources,
  subject: Pick<store.BriefInput, 'question' | 'consensus' | 'sees_reasoning'>,
): Promise<store.BriefInput> => {
  const { question, consensus, sees_reasoning } = subject;
  const { id, status } = question;
  const sides = rankSides(question, consensus);
  const life = await store.readLife(sql, id);
  const ended_at = endOf(question, life, now);
  const as_of = hourOf(now, ended_at);
  const [counted, newest, voted, disputes] = await Promise.all([
    // Windows compare chances. Numbers and dates have no chances.
    isNumber(question) ? [] : store.readWindows(sql, id, { side: sides.first, as_of }),
    store.readNewest(sql, id, brief_limits.newest),
    store.readVoted(sql, id, sidesOf(question), brief_limits.voted_a_side),
    status === 'resolved' ? store.readOpenDisputes(sql, id, brief_limits.disputes) : [],
  ]);
  const windows = await Promise.all(
    counted.map(async (window) => ({ ...window, before: await readBefore(id, window.since) })),
  );
  const sample = [...new Map([...newest, ...voted].map((row) => [row.id, row])).values()];
  const chosen = chooseArguments(question, sides, sees_reasoning ? sample : []);
  const ids = [...chosen.for, ...chosen.against].map((row) => row.id);
  const texts = new Map((await store.readQuoted(sql, ids)).map((row) => [row.id, row]));
  // A prediction that was hidden after it was chosen has no text and is not quoted.
  const quoted = (rows: typeof sample): store.Quoted[] =>
    rows.flatMap((row) => {
      const text = texts.get(row.id);
      return text === undefined ? [] : [{ ...row, ...text }];
    });
  return {
    question,
    consensus,
    sees_reasoning,
    as_of,
    ended_at,
    life,
    windows,
    sample,
    disputes,
    chosen: { for: quoted([...chosen.for]), against: quoted([...chosen.against]) },
  };
};

/** Caches each brief for one second, or until its question changes in this process. */
export const createBriefs = ({ sql, clock }: Pick<Deps, 'sql' | 'clock'>, live: LiveConsensus) => {
  const briefs = makeCache<Brief>({ most: max_briefs, ttl_ms: fresh_ms });
  const past = makeCache<Consensus | undefined>({ most: max_past, ttl_ms: past_ms });
  const readBefore = async (id: string, end: Date): Promise<Consensus | undefined> =>
    past.get(`${id} ${end.getTime()}`, async () =>
      (await consensusBefore(live, [id], end)).get(id),
    );
  const limit = pLimit(loads_at_once);
  return {
    read: async (question: QuestionRow, sees_reasoning: boolean): Promise<Brief> =>
      briefs.get(`${question.id} ${sees_reasoning}`, () =>
        limit(async () => {
          const consensus = await live.read(question);
          const subject = { question, consensus, sees_reasoning };
          return buildBrief(await readInput({ sql, readBefore, now: clock() }, subject));
        }),
      ),
    forget(question_id: string): void {
      for (const sees of [true, false]) briefs.forget(`${question_id} ${sees}`);
    },
  };
};
export type Briefs = ReturnType<typeof createBriefs>;

const readWhole = async (sql: Deps['sql'], live: LiveConsensus, day: Day) => {
  const [moved, sides, published, closing, resolved] = await Promise.all([
    daily.readMoved(sql, day),
    daily.readSides(sql, day),
    daily.readPublished(sql, day),
    daily.readClosing(sql, day),
    daily.readResolved(sql, day),
  ]);
  const ids = resolved.map(({ question_id }) => question_id);
  const [crowds, top_agents, families] = await Promise.all([
    Promise.all(ids.map((id) => live.find(id))),
    daily.readTopAgents(sql, ids),
    daily.readFamilies(sql, day, ids),
  ]);
  const moved_ids = moved.map(({ question_id }) => question_id);
  const [before, after] = await Promise.all(
    [day.from, day.to].map((end) => consensusBefore(live, moved_ids, end)),
  );
  const movers = moversOf(moved, (id) => {
    const ends = { before: before?.get(id), after: after?.get(id) };
    return ends.before && ends.after && { before: ends.before, after: ends.after };
  });
  return {
    date: day.date,
    from: day.from,
    to: day.to,
    partial: day.is_partial,
    movers,
    contested: contestedOf(sides),
    new: published,
    closing_soon: closing,
    resolved: resolvedOf(
      resolved.flatMap((row, n) => (crowds[n] === undefined ? [] : [[row, crowds[n]] as const])),
    ),
    top_agents,
    families,
  };
};

const max_days = 60;
const max_waiting = 16;
const day_fresh_ms = 5_000;

/** Caches days only for seconds, because names and resolutions of past days can change. */
export const createDays = ({ sql }: Pick<Deps, 'sql'>, live: LiveConsensus) => {
  const days = makeCache<object>({ most: max_days, ttl_ms: day_fresh_ms });
  const queue = makeQueue(1, max_waiting);
  return {
    /** Returns the insights of a day. Rejects with `BusyError` if too many calls are waiting. */
    read: async (day: Day): Promise<object> =>
      days.get(`${day.date} ${day.is_partial}`, () => queue(() => readWhole(sql, live, day))),
  };
};
export type Days = ReturnType<typeof createDays>;
