import { hashText } from '../../kit/hash.js';
import { Ints, NumberTable } from '../../kit/number-table.js';
import type { Db } from '../../kit/pg/client.js';
import { type SimilarSet, SimilarSets } from '../../kit/similar-sets.js';
import { readCitation } from './citations.js';
import { type EarlierRow, readEarlier } from './gate-store.js';
import { readWords } from './reasoning.js';

/**
 * The predictions of one question, as far as gates 5 and 6 and the cap of a family compare with
 * them, in the memory of an api process. It holds what is committed up to number `seq`, and the
 * drafts of this process that wait for their commit, so that two similar drafts never wait
 * together. Other processes commit as well: the group commit accepts a draft only while `seq` is
 * still the last number of the question, and otherwise `sync` reads what came in between.
 */

/** What is known of a draft beside its words. */
export interface ComparedDraft {
  /** Hashes of the pages it cites. */
  readonly sources: readonly number[];
  readonly model_family: string;
}

/** What is compared. */
export interface ComparedText extends ComparedDraft {
  readonly words: readonly number[];
}

interface Counted {
  stored: number;
  waiting: number;
}

/** A draft that waits for its commit. */
export interface Pending {
  readonly id: string;
  readonly entry: number;
  /** Without its words, which the sets have: what lives through a commit costs to be moved. */
  readonly text: ComparedDraft;
  /** Where its sources and its family are counted. */
  readonly source_ids: readonly number[];
  readonly family: Counted;
  state: 'waiting' | 'stored' | 'dropped';
  waiters: (() => void)[];
}

export type Finding =
  | { readonly kind: 'reused'; readonly by: 'others' | 'self'; readonly unsure: boolean }
  | { readonly kind: 'family'; readonly cap: number; readonly unsure: boolean }
  | {
      readonly kind: 'similar';
      readonly similarity: number;
      readonly prediction_id: string | null;
      readonly seq: number;
      readonly unsure: boolean;
    };

/** What a text is compared with beside what is stored. */
interface Waiting {
  /** Whether one of them cites the page with this id. */
  readonly waits: (source: number) => boolean;
  /** How many of them are of the family. */
  readonly family: number;
  /** The most similar text. */
  readonly like: () => SimilarSet | null;
}

export const hashSources = (keys: readonly string[]): number[] => keys.map(hashText);

const rows_a_turn = 200;
const first_agent = '00000000-0000-0000-0000-000000000000';

export class QuestionMemory {
  seq = 0;
  /** Grows when the predictions of other processes come in: what was checked before is not now. */
  version = 0;
  /** By `Gates`: when it was used last, in ms of `performance.now`. */
  used_ms = 0;
  readonly waiting = new Set<Pending>();

  private readonly sets = new SimilarSets();
  /** By set: its number; 0 while it waits. */
  private readonly seqs = new Ints();
  /** Ids of those that have no number, by set. */
  private readonly ids = new Map<number, string>();
  private readonly sources = new NumberTable(64);
  private readonly sources_stored = new Ints();
  private readonly sources_waiting = new Ints();
  private readonly families = new Map<string, Counted>();

  constructor(
    readonly question_id: string,
    private readonly family_cap: number,
  ) {}

  get bytes(): number {
    const bytes = this.seqs.bytes + 2 * this.sources_stored.bytes;
    return this.sets.bytes + this.sources.bytes + bytes + 2_000;
  }

  /** Everything that is committed, up to the number `seq` at least. */
  async load(db: Db, seq: number): Promise<void> {
    await this.readBehind(db, { seq: 0, agent_id: first_agent });
    this.seq = Math.max(this.seq, seq);
  }

  /**
   * What was committed since. `locked`: the number it stands at, under its lock; no prediction has
   * it where something was numbered and then not stored.
   */
  async sync(db: Db, locked = 0): Promise<void> {
    const after = { seq: this.seq, agent_id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };
    if (await this.readBehind(db, after)) this.version += 1;
    this.seq = Math.max(this.seq, locked);
  }

  /** What speaks against the text. `unsure`: it hangs on a draft that waits. */
  check(text: ComparedText): Finding[] {
    const waits = (source: number): boolean => this.sources_waiting.values[source]! > 0;
    const family = this.families.get(text.model_family)?.waiting ?? 0;
    return this.findAll(text, { waits, family, like: () => this.sets.find(text.words) });
  }

  /** The same for a draft that waits itself: only those that came before it count. */
  recheck({ entry, text }: Pending): Finding[] {
    const earlier = [...this.waiting].filter((other) => other.entry < entry);
    const ids = new Set(earlier.flatMap((other) => other.source_ids));
    const same = earlier.filter((other) => other.text.model_family === text.model_family);
    const like = () => this.sets.findLike(entry);
    return this.findAll(text, { waits: (source) => ids.has(source), family: same.length, like });
  }

  /** The draft is compared with from now on; right after `check`, with nothing in between. */
  add(text: ComparedText, id: string): Pending {
    const entry = this.keep(text.words, 0);
    const { sources, model_family } = text;
    const kept = { sources, model_family };
    const pending: Pending = {
      id,
      entry,
      text: kept,
      source_ids: this.sourceIds(sources),
      family: this.familyOf(model_family),
      state: 'waiting',
      waiters: [],
    };
    this.waiting.add(pending);
    for (const id of pending.source_ids) this.sources_waiting.values[id]! += 1;
    pending.family.waiting += 1;
    return pending;
  }

  stored(pending: Pending, seq: number): void {
    if (!this.settle(pending, 'stored')) return;
    this.seqs.values[pending.entry] = seq;
    this.seq = Math.max(this.seq, seq);
    this.countStored(pending.source_ids, pending.family);
  }

  drop(pending: Pending): void {
    if (this.settle(pending, 'dropped')) this.sets.remove(pending.entry);
  }

  /** Until the drafts that wait now have their verdicts. */
  async untilSettled(): Promise<void> {
    await Promise.all(
      [...this.waiting].map(
        (pending) =>
          new Promise<void>((resolve) => {
            pending.waiters.push(resolve);
          }),
      ),
    );
  }

  private settle(pending: Pending, state: 'stored' | 'dropped'): boolean {
    if (pending.state !== 'waiting') return false;
    pending.state = state;
    this.waiting.delete(pending);
    for (const id of pending.source_ids) this.sources_waiting.values[id]! -= 1;
    pending.family.waiting -= 1;
    for (const done of pending.waiters) done();
    pending.waiters = [];
    return true;
  }

  private findAll(text: ComparedDraft, waiting: Waiting): Finding[] {
    const findings: Finding[] = [];
    const reused = this.checkSources(text.sources, waiting);
    if (reused !== null) findings.push(reused);
    const similar = waiting.like();
    if (similar !== null) {
      const { entry, similarity } = similar;
      const seq = this.seqs.values[entry]!;
      const prediction_id = this.ids.get(entry) ?? null;
      const unsure = seq === 0 && prediction_id === null;
      findings.push({ kind: 'similar', similarity, prediction_id, seq, unsure });
    }
    const full = this.checkFamily(text.model_family, waiting);
    if (full !== null) findings.push(full);
    return findings;
  }

  private checkSources(sources: readonly number[], { waits }: Waiting): Finding | null {
    if (sources.length === 0) return null;
    let unsure = false;
    for (const source of sources) {
      const id = this.sources.find(source);
      if (id === -1) return null;
      if (this.sources_stored.values[id]! > 0) continue;
      if (!waits(id)) return null;
      unsure = true;
    }
    return { kind: 'reused', by: 'others', unsure };
  }

  private checkFamily(model_family: string, { family }: Waiting): Finding | null {
    if (this.family_cap === 0) return null;
    const stored = this.families.get(model_family)?.stored ?? 0;
    if (stored + family < this.family_cap) return null;
    return { kind: 'family', cap: this.family_cap, unsure: stored < this.family_cap };
  }

  private keep(words: readonly number[], seq: number): number {
    this.seqs.push(seq);
    return this.sets.add(words);
  }

  /** Under these numbers the sources are counted. */
  private sourceIds(sources: readonly number[]): number[] {
    const ids = sources.map((source) => this.sources.findOrAdd(source));
    const missing = this.sources.size - this.sources_stored.length;
    if (missing > 0) {
      this.sources_stored.extend(missing);
      this.sources_waiting.extend(missing);
    }
    return ids;
  }

  private familyOf(model_family: string): Counted {
    const known = this.families.get(model_family);
    if (known !== undefined) return known;
    const counted = { stored: 0, waiting: 0 };
    this.families.set(model_family, counted);
    return counted;
  }

  private countStored(source_ids: readonly number[], family: Counted): void {
    for (const id of source_ids) this.sources_stored.values[id]! += 1;
    family.stored += 1;
  }

  private async readBehind(
    db: Db,
    from: { readonly seq: number; readonly agent_id: string },
  ): Promise<boolean> {
    let after = from;
    let is_new = false;
    for (;;) {
      const rows = await readEarlier(db, this.question_id, after, rows_a_turn);
      for (const row of rows) is_new = this.take(row) || is_new;
      const last = rows.at(-1);
      if (last === undefined || rows.length < rows_a_turn) return is_new;
      after = last;
    }
  }

  /**
   * False where it is known: by another reading at the same time, or as a draft of this process
   * whose commit had gone unheard. Everything up to `seq` is known.
   */
  private take(row: EarlierRow): boolean {
    if (row.seq > 0 && row.seq <= this.seq) return false;
    this.seq = Math.max(this.seq, row.seq);
    const own = [...this.waiting].find(({ id }) => id === row.id);
    if (own !== undefined) {
      this.stored(own, row.seq);
      return false;
    }
    const sources = hashSources(row.citations.map((url) => readCitation(url).key));
    const words = readWords(row.reasoning);
    const entry = this.keep(words, row.seq);
    if (row.seq === 0) this.ids.set(entry, row.id);
    this.countStored(this.sourceIds(sources), this.familyOf(row.model_family));
    return true;
  }
}
