import { randomInt } from 'node:crypto';
import {
  classOfWide,
  first_letter,
  is_apart,
  is_ignored,
  is_mark,
  isLetterAt,
  narrow_classes,
} from './letters.js';

/**
 * Reads the words of a text once: how many, how many different, which marks they carry. A word is
 * a run of letters of any script, with the combining marks on them; everything else separates, so
 * that `don't` is two. A run in a script without blanks between words is one as well, unless it is
 * asked to be cut into what `Intl.Segmenter` takes for words.
 *
 * Built for speed, because every prediction passes here: words are never cut out of the text to be
 * counted. They are known by two 32-bit hashes in one open-addressed table that outlives the text,
 * and only a word that the table has not seen is cut out and shown to `mark`. Two different words
 * meet in both hashes with a chance of 2^-64 a pair; the seeds are random for each process, so that
 * nobody can choose words that meet.
 */

/** Flat, sorted, apart: `[start, end, start, end, …]`. */
export type Ranges = readonly number[];

export interface WordScanRequest {
  /** Not read at all. */
  readonly links: Ranges;
  /** Words that begin here are read but do not count towards `distinct`. */
  readonly uncounted: Ranges;
  /** Words shorter than this do not count towards `distinct`. */
  readonly min_letters: number;
  /** Also tell which words they are. */
  readonly collect?: boolean;
  /**
   * Cut runs of scripts without blanks into words (of each its first 1,000 characters, of all about
   * 20,000); there, and in Korean, two letters are enough to count.
   */
  readonly cuts?: boolean;
}

export interface WordScan {
  /** Words of two or more letters. */
  readonly words: number;
  readonly distinct: number;
  /**
   * The counted words as 53-bit numbers, in the order of their first use; empty unless asked for.
   * They hold in this process only.
   */
  readonly collected: readonly number[];
  /** How often the most frequent word occurs, and where it begins and ends. */
  readonly top: { readonly count: number; readonly start: number; readonly end: number };
  /** The marks of all words together. */
  readonly marks: number;
  /** The first word with mark 1, as written; null when there is none. */
  readonly offender: string | null;
  /** Whether every character of the text is one of ASCII. */
  readonly is_ascii: boolean;
  /** The longest run of one character (seen from nine on) that is no blank and no rule. */
  readonly longest_run: number;
}

/** Mark 1 is kept apart: the scan remembers the word. The other bits are only joined. */
export const offence = 1;

/** The table grows with the words that are in use: a small one stays near the processor. */
const first_slots = 4_096;
const most_slots = 65_536;
const most_filled = 0.55;
const longest_text = 80_000;
/** Of two code units at once: the bits that no character of ASCII has. */
const beyond_ascii = 0xff80_ff80 | 0;
const generation_limit = 1 << 29;
/** Characters of one token that digits and symbols hold together, as in `sh1t`. */
const token_limit = 24;
const token_memory = 5_000;
const run_step = 8;

/** Scripts that are written without blanks between words, and for which ICU has dictionaries. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const hangul = /\p{Script=Hangul}/u;
/** All of these are from here on. */
const first_of_these = 0x0e00;
const least_of_these = 2;
const segmenter = new Intl.Segmenter('und', { granularity: 'word' });
/** Cutting costs a hundred times what reading does, and more for each character of a long text. */
const cut_at_once = 1_000;
const most_cut = 20_000;

interface Run {
  readonly start: number;
  readonly is_counted: boolean;
}

/** Runs of these draw lines and tables. */
const rule_characters = new Set([...' \t\n\r-=_*~.#|+:─━═—–…'].map((char) => char.charCodeAt(0)));
/** People write these for letters. */
const stand_in = new Uint8Array(128);
for (const char of '0123456789@$!*') stand_in[char.charCodeAt(0)] = 1;

const nothing_collected: readonly number[] = [];

const seed1 = randomInt(2 ** 32) | 0;
const seed2 = randomInt(2 ** 32) | 0;

/**
 * A reader with its own table; `mark` is asked once for each new word and must be pure. Not
 * re-entrant: one text at a time.
 */
export class WordReader {
  /** Four numbers a slot: hash, hash, generation·2 + counted (0: empty), count·8 + marks. */
  private table = new Int32Array(first_slots * 4);
  private readonly tokens = new Map<string, number>();
  private filled = 0;
  private generation = 1;

  private text = '';
  /** The code units of the text: reading them here is a third faster than from the string. */
  private readonly units = new Uint16Array(longest_text + 1);
  private readonly unit_bytes = Buffer.from(this.units.buffer);
  private readonly unit_pairs = new Int32Array(this.units.buffer, 0, longest_text / 2);
  private uncounted: Ranges = [];
  private next_range = 0;
  private min_letters = 0;
  private words = 0;
  private distinct = 0;
  private top_count = 0;
  private top_start = 0;
  private top_end = 0;
  private marks = 0;
  private offender: string | null = null;
  private longest_run = 0;
  private singles = 0;
  private singles_start = 0;
  private singles_end = -9;
  private token_end = 0;
  private hash1 = 0;
  private hash2 = 0;
  private cuts = false;
  private cut = 0;
  private runs: Run[] = [];
  /** The runs without invisible characters, each in a line. */
  private run_lines = '';
  private readonly collected = new Float64Array(longest_text / 2);

  constructor(private readonly mark: (word: string) => number) {}

  read(text: string, request: WordScanRequest): WordScan {
    this.startText(text, request);
    let from = 0;
    for (let i = 0; i < request.links.length; i += 2) {
      this.readGap(from, Math.min(request.links[i]!, this.text.length));
      from = request.links[i + 1]!;
    }
    this.readGap(from, this.text.length);
    this.endSingles();
    if (this.runs.length > 0) this.cutRuns();
    return {
      words: this.words,
      distinct: this.distinct,
      collected: request.collect === true ? this.copyCollected() : nothing_collected,
      top: { count: this.top_count, start: this.top_start, end: this.top_end },
      marks: this.marks,
      offender: this.offender,
      is_ascii: this.isAscii(),
      longest_run: this.longest_run,
    };
  }

  /** A plain array: a typed one of this size has its memory outside of the heap, which is slow. */
  private copyCollected(): readonly number[] {
    const copy = new Array<number>(this.distinct);
    for (let i = 0; i < this.distinct; i += 1) copy[i] = this.collected[i]!;
    return copy;
  }

  /** Behind the text stands a 0, so that its last pair is whole. */
  private isAscii(): boolean {
    const { unit_pairs } = this;
    const end = (this.text.length + 1) >> 1;
    let bits = 0;
    for (let at = 0; at < end; at += 1) bits |= unit_pairs[at]!;
    return (bits & beyond_ascii) === 0;
  }

  private addMarks(found: number, word: string): void {
    this.marks |= found;
    if (this.offender === null && (found & offence) !== 0) this.offender = word;
  }

  /** Marks of what is not one plain word: `sh1t`, and the joined letters of `f u c k`. */
  private judgeToken(shown: string, joined: string = shown): void {
    let found = this.tokens.get(joined);
    if (found === undefined) {
      found = this.mark(joined) & offence;
      if (this.tokens.size >= token_memory) this.tokens.clear();
      // A copy, because a slice would keep the whole text it was cut from.
      this.tokens.set(` ${joined}`.slice(1), found);
    }
    this.addMarks(found, shown);
  }

  private endSingles(): void {
    if (this.singles >= 4) {
      const shown = this.text.slice(this.singles_start, this.singles_end);
      this.judgeToken(shown, shown.replace(/[^\p{L}]/gu, '').slice(0, 200));
    }
    this.singles = 0;
  }

  private addSingle(start: number, end: number): void {
    if (start - this.singles_end > 2) {
      this.endSingles();
      this.singles_start = start;
    }
    this.singles += 1;
    this.singles_end = end;
  }

  /** A letter, one or two stand-ins, a letter again: looks at the whole token, once. */
  private readToken(start: number, end: number): void {
    let at = end;
    while (at < this.text.length && at - start < token_limit) {
      const first = this.text.charCodeAt(at);
      if (isLetterAt(this.text, at)) at += 1;
      else if (first >= 128 || stand_in[first] === 0) break;
      else if (isLetterAt(this.text, at + 1)) at += 2;
      else if (stand_in[this.text.charCodeAt(at + 1)] === 1 && isLetterAt(this.text, at + 2))
        at += 3;
      else break;
    }
    this.token_end = at;
    if (at > end && at - start >= 4) this.judgeToken(this.text.slice(start, at));
  }

  /** Where the word with these hashes stands, or the empty place where it belongs. */
  private findSlot(hash1: number, hash2: number): number {
    const { table } = this;
    const last = table.length - 1;
    let base = ((hash1 ^ (hash1 >>> 16)) << 2) & last;
    while (table[base + 2] !== 0 && (table[base] !== hash1 || table[base + 1] !== hash2)) {
      base = (base + 4) & last;
    }
    return base;
  }

  /** Room for so many new words: a larger table, or the one there is over again. */
  private makeRoom(words: number): void {
    if (this.filled + words > most_filled * most_slots || this.generation >= generation_limit) {
      this.table.fill(0);
      this.filled = 0;
      this.generation = 1;
    }
    const least = (this.filled + words) / most_filled;
    while (4 * least > this.table.length) {
      const old = this.table;
      this.table = new Int32Array(2 * old.length);
      for (let base = 0; base < old.length; base += 4) {
        if (old[base + 2] === 0) continue;
        const slot = this.findSlot(old[base]!, old[base + 1]!);
        this.table.set(old.subarray(base, base + 4), slot);
      }
    }
  }

  /** Whether no uncounted range covers `start`; asked with growing `start` only. */
  private isCounted(start: number): boolean {
    const { uncounted } = this;
    while (this.next_range < uncounted.length && uncounted[this.next_range + 1]! <= start) {
      this.next_range += 2;
    }
    return this.next_range >= uncounted.length || start < uncounted[this.next_range]!;
  }

  private endWord(start: number, end: number, letters: number, least = this.min_letters): void {
    // One past the text stands a 0.
    const follower = this.units[end]!;
    if (follower < 128 && stand_in[follower] === 1 && start >= this.token_end) {
      this.readToken(start, end);
    }
    if (letters === 1) {
      this.addSingle(start, end);
      return;
    }
    if (this.singles > 0) this.endSingles();
    this.countWord(start, end, letters >= least && this.isCounted(start));
  }

  /** The word that has the hashes. */
  private countWord(start: number, end: number, counted: boolean): void {
    const { table, hash1, hash2, generation } = this;
    this.words += 1;
    const base = this.findSlot(hash1, hash2);
    const stamp = table[base + 2]!;
    if (stamp === 0) {
      table[base] = hash1;
      table[base + 1] = hash2;
      table[base + 3] = this.mark(this.text.slice(start, end)) & 7;
      this.filled += 1;
    }
    const entry = table[base + 3]!;
    if ((entry & 7) !== 0) this.addMarks(entry & 7, this.text.slice(start, end));
    const seen = stamp >> 1 === generation;
    const count = seen ? (entry >> 3) + 1 : 1;
    table[base + 3] = (count << 3) | (entry & 7);
    if (count > this.top_count) {
      this.top_count = count;
      this.top_start = start;
      this.top_end = end;
    }
    if (seen && (stamp & 1) === 1) return;
    if (counted) {
      this.collected[this.distinct] = (hash1 >>> 0) * 2_097_152 + (hash2 >>> 11);
      this.distinct += 1;
    }
    table[base + 2] = (generation << 1) | (counted ? 1 : 0);
  }

  /** A run with letters of which some may be of a script without blanks, or of Korean. */
  private endRun(start: number, end: number, letters: number): void {
    const run = this.text.slice(start, end);
    if (letters === 1 || !unspaced.test(run)) {
      this.endWord(start, end, letters, hangul.test(run) ? least_of_these : this.min_letters);
    } else if (this.cut < most_cut) {
      this.runs.push({ start, is_counted: this.isCounted(start) });
      this.run_lines += `${run.replace(/\p{Cf}/gu, '').slice(0, cut_at_once)}\n`;
      if (this.run_lines.length >= cut_at_once) this.cutRuns();
    }
  }

  /** Many together, because a call of the segmenter costs as much as twenty words of it. */
  private cutRuns(): void {
    let n = 0;
    let at = this.runs[0]!.start;
    for (const { segment } of segmenter.segment(this.run_lines)) {
      if (segment !== '\n') at = this.readSegment(segment, at, this.runs[n]!.is_counted);
      else if (++n < this.runs.length) at = this.runs[n]!.start;
    }
    this.cut += this.run_lines.length;
    this.runs = [];
    this.run_lines = '';
  }

  /** Where the segment ends whose first character stands at `from`, or behind invisible ones. */
  private readSegment(segment: string, from: number, is_counted: boolean): number {
    const { text, units } = this;
    let letters = 0;
    let h1 = seed1;
    let h2 = seed2;
    let at = from;
    for (let left = segment.length; left > 0; at += 1) {
      const code = units[at]!;
      const kind = code < 256 ? narrow_classes[code]! : classOfWide(text, at, code);
      if (kind === is_ignored) continue;
      left -= 1;
      const hashed = kind >= first_letter ? kind : code;
      // The second half of a pair is of the same letter.
      if (kind >= first_letter && (code & 0xfc00) !== 0xdc00) letters += 1;
      h1 = Math.imul(h1 ^ hashed, 0x01000193);
      h2 = (Math.imul(h2, 0x2c1b3c6d) + hashed) | 0;
    }
    if (letters < 2) return at;
    this.hash1 = h1;
    this.hash2 = h2;
    const is_dense = unspaced.test(segment) || hangul.test(segment);
    const least = is_dense ? least_of_these : this.min_letters;
    this.countWord(from, at, is_counted && letters >= least);
    return at;
  }

  /**
   * Looks at every eighth character only and walks both ways from one that equals its neighbour;
   * so runs of fewer than nine characters may go unseen, and the cost is an eighth.
   */
  private readRuns(from: number, to: number): void {
    const { units } = this;
    for (let at = from + run_step; at < to; at += run_step) {
      const code = units[at]!;
      if (code !== units[at - 1]) continue;
      let start = at - 1;
      while (start > from && units[start - 1] === code) start -= 1;
      while (at + 1 < to && units[at + 1] === code) at += 1;
      const run = at + 1 - start;
      if (run > this.longest_run && !rule_characters.has(code)) this.longest_run = run;
    }
  }

  private readGap(from: number, to: number): void {
    this.readRuns(from, to);
    let start = from;
    let letters = 0;
    let is_wide = false;
    let h1 = seed1;
    let h2 = seed2;
    const { text, units, cuts } = this;
    for (let at = from; at < to; at += 1) {
      const code = units[at]!;
      const kind = code < 256 ? narrow_classes[code]! : classOfWide(text, at, code);
      if (kind >= first_letter) {
        if (letters === 0) start = at;
        letters += 1;
        if (kind >= first_of_these) is_wide = cuts;
        h1 = Math.imul(h1 ^ kind, 0x01000193);
        h2 = (Math.imul(h2, 0x2c1b3c6d) + kind) | 0;
      } else if (letters === 0) {
        // Marks without a letter before them belong to no word.
      } else if (kind === is_apart) {
        this.hash1 = h1;
        this.hash2 = h2;
        if (is_wide) this.endRun(start, at, letters);
        else this.endWord(start, at, letters);
        is_wide = false;
        letters = 0;
        h1 = seed1;
        h2 = seed2;
      } else if (kind === is_mark) {
        if (code >= first_of_these) is_wide = cuts;
        h1 = Math.imul(h1 ^ code, 0x01000193);
        h2 = (Math.imul(h2, 0x2c1b3c6d) + code) | 0;
      }
    }
    if (letters > 0) {
      this.hash1 = h1;
      this.hash2 = h2;
      if (is_wide) this.endRun(start, to, letters);
      else this.endWord(start, to, letters);
    }
  }

  /** The table grows or starts over before a text that could overfill it, and never within one. */
  private startText(text: string, request: WordScanRequest): void {
    this.generation += 1;
    this.text = text.length > longest_text ? text.slice(0, longest_text) : text;
    // A word has two letters, and a separator where runs are not cut.
    this.makeRoom(this.text.length / (request.cuts === true ? 2 : 3));
    this.unit_bytes.write(this.text, 0, 'utf16le');
    this.units[this.text.length] = 0;
    this.uncounted = request.uncounted;
    this.min_letters = request.min_letters;
    this.next_range = 0;
    this.words = 0;
    this.distinct = 0;
    this.top_count = 0;
    this.top_start = 0;
    this.top_end = 0;
    this.marks = 0;
    this.offender = null;
    this.longest_run = 0;
    this.singles = 0;
    this.singles_start = 0;
    this.singles_end = -9;
    this.token_end = 0;
    this.cuts = request.cuts === true;
    this.cut = 0;
    this.runs = [];
    this.run_lines = '';
  }
}
