import type { Sql } from '../../kit/pg/client.js';
import {
  type CellsByKey,
  type LineKind,
  readAgentCells,
  readQuestionCells,
} from './cells-store.js';
import type { Lines } from './content.js';
import type { Pace } from './pace.js';
import {
  head_lengths,
  key_lengths,
  type PredictionAsk,
  type Privacy,
  readBounds,
  readPage,
} from './predictions-store.js';

/**
 * Pages of predictions, put together from what Postgres made: the lines of a page, and the cells of
 * its questions and agents, which are kept from page to page.
 *
 *   line ──▶ head │ cells of the question │ cells of the agent │ cells of its own
 */

export interface PagesAsk {
  readonly ask: PredictionAsk;
  readonly privacy: Privacy;
  readonly kind: LineKind;
  readonly separator: string;
  readonly pace: Pace;
  /** Called between two pages. */
  readonly rest: () => Promise<void>;
}

/** Below every id. */
const first_id = '00000000-0000-0000-0000-000000000000';

interface Range {
  readonly after: string;
  readonly last: string;
}

async function* readRanges(sql: Sql, ask: PredictionAsk): AsyncGenerator<Range> {
  let after = first_id;
  for (;;) {
    const bounds = await readBounds(sql, ask, after);
    for (const last of bounds) {
      yield { after, last };
      after = last;
    }
    if (bounds.length === 0) return;
  }
}

/** Of all cells of one kind that an export keeps. */
const kept_bytes = 4_194_304;

/** Cells by their keys; the oldest make room for others. */
class KeptCells {
  readonly #read: (keys: readonly string[]) => Promise<CellsByKey>;
  readonly #kept = new Map<string, Buffer>();
  #bytes = 0;

  constructor(read: (keys: readonly string[]) => Promise<CellsByKey>) {
    this.#read = read;
  }

  /** In the order of the keys; nothing where there is no such row any more. */
  async take(keys: readonly string[]): Promise<(Buffer | undefined)[]> {
    const taken = keys.map((key) => this.#kept.get(key));
    const missing = new Set(keys.filter((_, n) => taken[n] === undefined));
    if (missing.size === 0) return taken;
    const found = await this.#read([...missing]);
    for (const [key, cells] of found) this.#keep(key, cells);
    return keys.map((key, n) => taken[n] ?? found.get(key));
  }

  #keep(key: string, cells: Buffer): void {
    if (this.#kept.has(key)) return;
    this.#kept.set(key, cells);
    this.#bytes += cells.byteLength;
    for (const [old, { byteLength }] of this.#kept) {
      if (this.#bytes <= kept_bytes) return;
      this.#kept.delete(old);
      this.#bytes -= byteLength;
    }
  }
}

const first_bytes = 2_097_152;
/** Larger memory, which only very long texts need, is not kept. */
const most_kept_bytes = 4_194_304;

/** The rows of a page, one behind the other in memory that is used again for other pages. */
class PageRows {
  #memory = Buffer.allocUnsafeSlow(first_bytes);
  readonly #ends: number[] = [];

  get memory(): Buffer {
    return this.#memory;
  }

  get count(): number {
    return this.#ends.length;
  }

  get is_large(): boolean {
    return this.#memory.byteLength > most_kept_bytes;
  }

  /** Where a row begins; that behind the last is the end of all. */
  at(row: number): number {
    return row === 0 ? 0 : (this.#ends[row - 1] as number);
  }

  readonly add = (row: Buffer): void => {
    const at = this.at(this.count);
    const end = at + row.byteLength;
    if (end > this.#memory.byteLength) {
      const wider = Buffer.allocUnsafeSlow(2 * end);
      this.#memory.copy(wider, 0, 0, at);
      this.#memory = wider;
    }
    row.copy(this.#memory, at);
    this.#ends.push(end);
  };

  /** Texts of all rows, so many bytes behind the beginning of each. */
  texts(from: number, to: number): string[] {
    return this.#ends.map((_, row) => {
      const at = this.at(row);
      return this.#memory.toString('latin1', at + from, at + to);
    });
  }

  clear(): void {
    this.#ends.length = 0;
  }
}

interface Page {
  readonly rows: PageRows;
  readonly questions: readonly (Buffer | undefined)[];
  readonly agents: readonly (Buffer | undefined)[];
}

const keys_end = key_lengths.question + key_lengths.agent;

const makeReader = (sql: Sql, parts: PagesAsk) => {
  const questions = new KeptCells((keys) => readQuestionCells(sql, parts, keys));
  const agents = new KeptCells((keys) => readAgentCells(sql, parts, keys));
  const free: PageRows[] = [];
  return {
    async read(range: Range): Promise<Page> {
      const rows = free.pop() ?? new PageRows();
      await readPage(sql, { ...parts, ...range }, rows.add);
      const [of_questions, of_agents] = await Promise.all([
        questions.take(rows.texts(0, key_lengths.question)),
        agents.take(rows.texts(key_lengths.question, keys_end)),
      ]);
      return { rows, questions: of_questions, agents: of_agents };
    },
    /** Nobody looks at the page any more. */
    release({ rows }: Page): void {
      rows.clear();
      if (!rows.is_large) free.push(rows);
    },
  };
};

/** Bytes that lines are put together to; a longer line comes alone. */
const scratch_bytes = 131_072;

/** Puts lines together in memory that is used again: each piece is good until the next one. */
const makeJoiner = ({ kind, separator }: PagesAsk) => {
  const between = Buffer.from(separator);
  const head_bytes = head_lengths[kind];
  const scratch = Buffer.allocUnsafeSlow(scratch_bytes);
  return function* joinLines({ rows, questions, agents }: Page): Generator<Lines> {
    const { memory } = rows;
    let made = scratch;
    let used = 0;
    let count = 0;
    for (let row = 0; row < rows.count; row += 1) {
      const question = questions[row];
      const agent = agents[row];
      // Gone since the page was read, and the prediction with it.
      if (question === undefined || agent === undefined) continue;
      const head = rows.at(row) + keys_end;
      const own = head + head_bytes;
      const end = rows.at(row + 1);
      const bytes = end - head + question.byteLength + agent.byteLength;
      if (count > 0 && used + between.byteLength + bytes > made.byteLength) {
        yield { rows: count, text: made.subarray(0, used) };
        made = scratch;
        used = 0;
        count = 0;
      }
      if (bytes > made.byteLength) made = Buffer.allocUnsafeSlow(bytes);
      if (count > 0) used += between.copy(made, used);
      used += memory.copy(made, used, head, own);
      used += question.copy(made, used);
      used += agent.copy(made, used);
      used += memory.copy(made, used, own, end);
      count += 1;
    }
    if (count > 0) yield { rows: count, text: made.subarray(0, used) };
  };
};

/**
 * Pages under way besides the one that is awaited: while some are put together, Postgres makes
 * others. With none the two take turns, and leave half of two cores to others who ask.
 */
const most_ahead = 4;

export async function* readPredictionPages(sql: Sql, parts: PagesAsk): AsyncGenerator<Lines> {
  const { read, release } = makeReader(sql, parts);
  const join = makeJoiner(parts);
  const ahead: Promise<Page>[] = [];
  async function* takeFirst(): AsyncGenerator<Lines> {
    const page = (await ahead.shift()) as Page;
    yield* join(page);
    release(page);
    await parts.rest();
  }
  for await (const range of readRanges(sql, parts.ask)) {
    const page = read(range);
    // Whoever stops between two pages does not wait for this one.
    page.catch(() => undefined);
    ahead.push(page);
    while (ahead.length > (parts.pace.others_ask ? 0 : most_ahead)) yield* takeFirst();
  }
  while (ahead.length > 0) yield* takeFirst();
}
