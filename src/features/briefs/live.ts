import pLimit from 'p-limit';
import { makeCache } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import type { LiveConsensus } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import { buildBrief } from './build.js';
import { choose, sidesOfConsensus } from './choosing.js';
import type { BriefInput, Consensus } from './input.js';
import { brief_limits, hourOf, sidesOf } from './rules.js';
import type { Brief } from './schema.js';
import {
  type DisputeRow,
  type LifeRow,
  readDebates,
  readLife,
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
 * Briefs in the memory of an api process. One is made of a state of the question and kept for a
 * second: then votes, hiding and disputes of what it quotes show everywhere, and hiding at once in
 * the process that did it.
 */
export interface Briefs {
  read(question: QuestionRow, sees_reasoning: boolean): Promise<Brief>;
  forget(question_id: string): void;
}

const fresh_ms = 1_000;
/** Of some 20 KB each. */
const most_briefs = 300;
/** Of a question with more predictions, one more makes no other brief. */
const most_followed = 1_000;
const loads_at_once = 3;

const endOf = ({ status, closes_at }: QuestionRow, life: LifeRow, now: Date): Date | null => {
  const ended = [life.closed_at, life.voided_at, closes_at <= now ? closes_at : null]
    .filter((at): at is Date => at !== null)
    .map((at) => at.getTime());
  if (ended.length > 0) return new Date(Math.min(...ended));
  return status === 'open' || status === 'draft' ? null : closes_at;
};

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

const readInput = async (sql: Deps['sql'], ask: Ask): Promise<BriefInput> => {
  const { question, consensus, sees_reasoning, now } = ask;
  const { id } = question;
  const [life, sums, sample, disputes, debates] = await Promise.all([
    readLife(sql, id),
    readSums(sql, id),
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

const keyOf = ({ question, consensus, sees_reasoning, now }: Ask): string =>
  JSON.stringify([
    question.id,
    sees_reasoning,
    consensus.total_predictions > most_followed ? null : consensus.offset,
    question.updated_at.getTime(),
    question.status,
    question.revision,
    question.comment_count,
    question.closes_at <= now,
    hourOf(now, null),
  ]);

export const createBriefs = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  live: LiveConsensus,
): Briefs => {
  const briefs = makeCache<Brief>({ most: most_briefs, ttl_ms: fresh_ms });
  const limit = pLimit(loads_at_once);
  return {
    async read(question, sees_reasoning) {
      const consensus = await live.read(question);
      const ask = { question, consensus, sees_reasoning, now: clock() };
      const build = async (): Promise<Brief> => buildBrief(await readInput(sql, ask));
      return briefs.get(keyOf(ask), () => limit(build));
    },
    forget: (question_id) => briefs.forgetWhere((key) => key.includes(question_id)),
  };
};
