import type { Deps } from '../../kit/deps.js';
import { type Gate, makeGate } from '../../kit/ws/gate.js';
import type { LiveConsensus } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import { buildBrief } from './build.js';
import { choose, sidesOfConsensus } from './choosing.js';
import type { BriefInput, Consensus } from './input.js';
import { brief_limits, hourOf, type Sum, sidesOf } from './rules.js';
import type { Brief } from './schema.js';
import {
  type DebateRow,
  type DisputeRow,
  type LifeRow,
  type Quoted,
  readDebates,
  readLife,
  readMarks,
  readNewest,
  readOpenDisputes,
  readRecords,
  readSums,
  readTexts,
  readVoted,
  type SampleRow,
  type TextRow,
} from './store.js';

/**
 * Briefs in the memory of an api process. One is made for an offset of the question's predictions,
 * and for what else shows in it: the question's row, the hour, and the votes, hiding and disputes
 * of what it quotes, which one short statement asks for on every call. Which predictions are
 * quoted, and the records of their authors, are looked up again after `fresh_ms` at the latest.
 *
 * On a question that is predicted on all the time a brief is made again at most so often that this
 * takes a twentieth of the time; until then the one before is shown, with its own offset.
 */
export interface Briefs {
  read(question: QuestionRow, sees_reasoning: boolean): Promise<Brief>;
  stats(): { readonly kept: number; readonly sums: number; readonly built: number };
}

const fresh_ms = 5_000;
const idle_share = 20;
/** Of some 20 KB each. */
const most_briefs = 300;
/** Rows of sums, of some 100 bytes each. */
const most_sums = 100_000;
const loads_at_once = 3;

interface Kept {
  readonly brief: Brief;
  readonly state: string;
  readonly offset: number;
  readonly quoted: Quoted;
  readonly marks: string;
  readonly at_ms: number;
  readonly cost_ms: number;
}

/** A map that forgets what was longest not asked for. */
const makeShelf = <V>(most: number, sizeOf: (value: V) => number) => {
  const all = new Map<string, V>();
  let size = 0;
  const drop = (key: string): void => {
    const known = all.get(key);
    if (known === undefined) return;
    all.delete(key);
    size -= sizeOf(known);
  };
  return {
    get(key: string): V | undefined {
      const value = all.get(key);
      if (value === undefined) return undefined;
      all.delete(key);
      all.set(key, value);
      return value;
    },
    set(key: string, value: V): void {
      drop(key);
      all.set(key, value);
      size += sizeOf(value);
      for (const oldest of all.keys()) {
        if (size <= most || all.size === 1) break;
        drop(oldest);
      }
    },
    drop,
    size: () => size,
    count: () => all.size,
  };
};

interface Sums {
  readonly rows: readonly Sum[];
  readonly seq: number;
  readonly total: number;
}

const no_sums: Sums = { rows: [], seq: -1, total: 0 };

/** Sums by hour, read once and then from the last number on. */
const makeSums = (sql: Deps['sql'], gate: Gate) => {
  const shelf = makeShelf<Sums>(most_sums, ({ rows }) => rows.length + 1);

  const readOn = async (question_id: string, before: Sums): Promise<Sums> => {
    const rows = await readSums(sql, question_id, before.seq);
    if (rows.length === 0) return before;
    const by_cell = new Map(before.rows.map((row) => [`${row.hour_ms} ${row.side}`, row]));
    let { seq, total } = before;
    for (const { hour, side, count, confidence, given, seq: last } of rows) {
      const hour_ms = hour.getTime();
      const key = `${hour_ms} ${side}`;
      const known = by_cell.get(key) ?? { count: 0, confidence: 0, given: 0 };
      by_cell.set(key, {
        ...{ hour_ms, side, count: known.count + count, given: known.given + given },
        confidence: known.confidence + confidence,
      });
      seq = Math.max(seq, last);
      total += count;
    }
    return { rows: [...by_cell.values()], seq, total };
  };

  return {
    async read(question_id: string, least: number): Promise<readonly Sum[]> {
      const known = shelf.get(question_id);
      let sums = await gate(() => readOn(question_id, known ?? no_sums));
      // What an older program stored has no number of its own.
      if (known !== undefined && sums.total < least) {
        sums = await gate(() => readOn(question_id, no_sums));
      }
      shelf.set(question_id, sums);
      return sums.rows;
    },
    size: shelf.size,
  };
};

const endOf = ({ status, closes_at }: QuestionRow, life: LifeRow, now: Date): Date | null => {
  const ended = [life.closed_at, life.voided_at, closes_at <= now ? closes_at : null]
    .filter((at): at is Date => at !== null)
    .map((at) => at.getTime());
  if (ended.length > 0) return new Date(Math.min(...ended));
  return status === 'open' || status === 'draft' ? null : closes_at;
};

/** As `readMarks` would say it of what was read for the brief. */
const marksOf = (
  rows: readonly SampleRow[],
  debates: readonly DebateRow[],
  disputes: readonly string[],
): string => {
  const parts = [
    [...rows].sort(byId).map(({ id, upvotes, downvotes }) => `${id}:${upvotes}:${downvotes}`),
    [...debates].sort(byId).map(({ id, upvotes, replies }) => `${id}:${upvotes}:${replies}`),
    disputes,
  ];
  return parts
    .filter((part) => part.length > 0)
    .map((part) => part.join(' '))
    .join(' ');
};

const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0;

/** The newest and the most voted, each once. */
const readSample = async (sql: Deps['sql'], question: QuestionRow): Promise<SampleRow[]> => {
  const [newest, voted] = await Promise.all([
    readNewest(sql, question.id, brief_limits.newest),
    readVoted(sql, question.id, sidesOf(question), brief_limits.voted_a_side),
  ]);
  const by_id = new Map([...newest, ...voted].map((row) => [row.id, row]));
  return [...by_id.values()];
};

interface Ask {
  readonly question: QuestionRow;
  readonly consensus: Consensus;
  readonly sees_reasoning: boolean;
  readonly now: Date;
}

type ReadSums = ReturnType<typeof makeSums>['read'];

const readInput = async (sql: Deps['sql'], ask: Ask, sumsOf: ReadSums): Promise<BriefInput> => {
  const { question, consensus, sees_reasoning, now } = ask;
  const { id } = question;
  const [life, sums, sample, disputes, debates] = await Promise.all([
    readLife(sql, id),
    sumsOf(id, consensus.total_predictions),
    readSample(sql, question),
    question.status === 'resolved'
      ? readOpenDisputes(sql, id, brief_limits.disputes)
      : ([] as DisputeRow[]),
    readDebates(sql, id, brief_limits.debates),
  ]);
  const none = { for: [], against: [] };
  const chosen = sees_reasoning
    ? choose(question, sidesOfConsensus(question, consensus), sample)
    : none;
  const rows = [...chosen.for, ...chosen.against];
  const [texts, records] = await Promise.all([
    readTexts(
      sql,
      rows.map((row) => row.id),
    ),
    readRecords(
      sql,
      rows.map((row) => row.agent_id),
      id,
    ),
  ]);
  const by_id = new Map<string, TextRow>(texts.map((row) => [row.id, row]));
  const known = { closed_at: null, voided_at: null, hidden: 0, ...life };
  const ended_at = endOf(question, known, now);
  // One that was hidden since it was chosen has no text, and is not quoted.
  const there = ({ id: one }: SampleRow): boolean => by_id.has(one);
  return {
    ...{ question, consensus, sees_reasoning, ended_at, sums, sample, disputes, debates },
    life: known,
    as_of: hourOf(now, ended_at),
    chosen: { for: chosen.for.filter(there), against: chosen.against.filter(there) },
    texts: by_id,
    records: new Map(records.map((row) => [row.agent_id, row])),
  };
};

const stateOf = (question: QuestionRow, now: Date): string =>
  [
    question.updated_at.toISOString(),
    question.status,
    question.revision,
    question.comment_count,
    question.closes_at <= now,
    hourOf(now, null).toISOString(),
  ].join(' ');

export const createBriefs = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  live: LiveConsensus,
): Briefs => {
  const shelf = makeShelf<Kept>(most_briefs, () => 1);
  const building = new Map<string, Promise<Kept>>();
  const gate = makeGate(loads_at_once);
  const sums = makeSums(sql, gate);
  let built = 0;

  const build = async (ask: Ask): Promise<Kept> => {
    const started_ms = performance.now();
    const input = await readInput(sql, ask, sums.read);
    const quoted_rows = [...input.chosen.for, ...input.chosen.against];
    const brief = buildBrief(input);
    built += 1;
    const now_ms = performance.now();
    return {
      brief,
      state: stateOf(ask.question, ask.now),
      offset: ask.consensus.offset,
      quoted: {
        predictions: quoted_rows.map(({ id }) => id),
        comments: input.debates.map(({ id }) => id),
      },
      marks: marksOf(
        quoted_rows,
        input.debates,
        input.disputes.map(({ id }) => id),
      ),
      at_ms: now_ms,
      cost_ms: now_ms - started_ms,
    };
  };

  const isGood = async (kept: Kept, { question, consensus, now }: Ask): Promise<boolean> => {
    const age_ms = performance.now() - kept.at_ms;
    if (age_ms > fresh_ms || kept.state !== stateOf(question, now)) return false;
    if (kept.offset !== consensus.offset && age_ms > idle_share * kept.cost_ms) return false;
    return (await readMarks(sql, question.id, kept.quoted)) === kept.marks;
  };

  return {
    async read(question, sees_reasoning) {
      const consensus = await live.read(question);
      const ask = { question, consensus, sees_reasoning, now: clock() };
      const key = `${question.id} ${sees_reasoning}`;
      const known = shelf.get(key);
      if (known !== undefined && (await isGood(known, ask))) return known.brief;
      const under_way = building.get(key);
      if (under_way !== undefined) return (await under_way).brief;
      const work = build(ask);
      building.set(key, work);
      try {
        const kept = await work;
        shelf.set(key, kept);
        return kept.brief;
      } finally {
        building.delete(key);
      }
    },
    stats: () => ({ kept: shelf.count(), sums: sums.size(), built }),
  };
};
