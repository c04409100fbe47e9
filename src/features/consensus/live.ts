import pLimit from 'p-limit';
import type { Deps } from '../../kit/deps.js';
import type { LogEntry } from '../events/index.js';
import { type QuestionRow, readQuestion } from '../questions/index.js';
import { type LiveTally, makeLiveTally } from './live-tally.js';
import { type Consensus, computeConsensus, type QuestionShape } from './rules.js';
import { statedIn, timeOf } from './said.js';
import { readStart } from './store.js';

/**
 * The consensus of the questions that somebody asks for, in the memory of an api process:
 *
 *   absent ──asked for──▶ loading ──▶ kept: every prediction of the log moves it
 *     ▲                     │           │
 *     └──── it failed ──────┘           └─▶ absent: no room, or the log has a hole
 *
 * What is loaded stands at an offset of the log, and predictions that come meanwhile wait beside
 * it: those behind that offset are added, so each is counted once. Nothing is lost with what is
 * dropped, because it is loaded again from Postgres when somebody asks.
 */
export interface LiveConsensus {
  /** Without a wait where it is kept; undefined where it is not. Of published questions only. */
  peek(question_id: string): Consensus | undefined;
  /** Of a question that the caller may see. */
  read(question: QuestionShape & Pick<QuestionRow, 'status'>): Promise<Consensus>;
  /** Of a published question; undefined where there is none. */
  find(question_id: string): Promise<Consensus | undefined>;
  /** Feed this from the follower; the questions whose consensus is another now. */
  onEvents(batch: readonly LogEntry[]): readonly string[];
  stats(): { readonly kept: number; readonly entries: number };
}

interface Kept {
  readonly question: QuestionShape;
  readonly tally: LiveTally;
  /** Null since the tally has moved. */
  consensus: Consensus | null;
  /** Asked for since it was last considered for being dropped. */
  is_used: boolean;
}

interface Loading {
  readonly since: LogEntry[];
  readonly kept: Promise<Kept>;
}

/** Of the tallies together: some 40 MB. One question alone may have more. */
const most_entries = 400_000;
const loads_at_once = 3;

const addTo = (tally: LiveTally, { options }: QuestionShape, entry: LogEntry): void => {
  if (entry.offset <= tally.offset) return;
  const owner = entry.owner_id ?? entry.agent_id ?? entry.id;
  tally.add(statedIn(entry, options), { owner, offset: entry.offset, at: timeOf(entry) });
};

const consensusOf = (kept: Kept): Consensus => {
  kept.is_used = true;
  kept.consensus ??= computeConsensus(kept.question, kept.tally.read());
  return kept.consensus;
};

/** Kept questions, the longest unused dropped first (second chance) when there is too much. */
const makeShelf = (most: number) => {
  const all = new Map<string, Kept>();
  let entries = 0;

  const dropSome = (): void => {
    while (entries > most && all.size > 1) {
      const [id, oldest] = all.entries().next().value as [string, Kept];
      all.delete(id);
      if (oldest.is_used) {
        oldest.is_used = false;
        all.set(id, oldest);
      } else entries -= oldest.tally.entries;
    }
  };

  return {
    all,
    keep(kept: Kept): void {
      entries += kept.tally.entries - (all.get(kept.question.id)?.tally.entries ?? 0);
      all.set(kept.question.id, kept);
      dropSome();
    },
    add(kept: Kept, entry: LogEntry): void {
      const before = kept.tally.entries;
      addTo(kept.tally, kept.question, entry);
      kept.consensus = null;
      entries += kept.tally.entries - before;
      if (entries > most) dropSome();
    },
    clear(): void {
      all.clear();
      entries = 0;
    },
    entries: () => entries,
  };
};

/** Loads what is not kept; who asks for the same meanwhile waits for the same. */
const makeLoader = (sql: Deps['sql'], shelf: ReturnType<typeof makeShelf>) => {
  const loading = new Map<string, Loading>();
  const gate = pLimit(loads_at_once);

  const load = async (question: QuestionShape, since: LogEntry[]): Promise<Kept> => {
    const { id, question_type, options } = question;
    const is_current = (): boolean => loading.get(id)?.since === since;
    try {
      const shape = { id, question_type, options };
      const tally = makeLiveTally(await gate(() => readStart(sql, shape)));
      for (const entry of since) addTo(tally, shape, entry);
      const kept: Kept = { question: shape, tally, consensus: null, is_used: true };
      if (is_current()) shelf.keep(kept);
      return kept;
    } finally {
      if (is_current()) loading.delete(id);
    }
  };

  return {
    open(question: QuestionShape): Kept | Promise<Kept> {
      const { id } = question;
      const known = shelf.all.get(id) ?? loading.get(id)?.kept;
      if (known !== undefined) return known;
      const since: LogEntry[] = [];
      const kept = load(question, since);
      loading.set(id, { since, kept });
      return kept;
    },
    add: (question_id: string, entry: LogEntry) => loading.get(question_id)?.since.push(entry),
    /** What is under way is answered and not kept. */
    forget: () => loading.clear(),
  };
};

export const createLiveConsensus = (
  { sql }: Pick<Deps, 'sql'>,
  most = most_entries,
): LiveConsensus => {
  const shelf = makeShelf(most);
  const loader = makeLoader(sql, shelf);
  let head = -1;

  const live: LiveConsensus = {
    peek(question_id) {
      const kept = shelf.all.get(question_id);
      return kept === undefined ? undefined : consensusOf(kept);
    },
    async read(question) {
      if (question.status === 'draft') {
        return computeConsensus(question, {
          cells: [],
          given: new Map(),
          offset: 0,
          updated_at: null,
        });
      }
      return consensusOf(await loader.open(question));
    },
    async find(question_id) {
      const known = live.peek(question_id);
      if (known !== undefined) return known;
      const question = await readQuestion(sql, question_id);
      return question === undefined || question.status === 'draft'
        ? undefined
        : live.read(question);
    },
    onEvents(batch) {
      if (batch[0] !== undefined && batch[0].offset !== head + 1) {
        // Something of the log was not seen here: what is kept or under way may lack it.
        shelf.clear();
        loader.forget();
      }
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      for (const entry of batch) {
        const { question_id, event } = entry;
        if (question_id === null) continue;
        if (event === 'question.created') moved.add(question_id);
        if (event !== 'prediction.placed') continue;
        moved.add(question_id);
        loader.add(question_id, entry);
        const kept = shelf.all.get(question_id);
        if (kept !== undefined) shelf.add(kept, entry);
      }
      return [...moved];
    },
    stats: () => ({ kept: shelf.all.size, entries: shelf.entries() }),
  };
  return live;
};
