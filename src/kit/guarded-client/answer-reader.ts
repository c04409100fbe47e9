/**
 * Reads one answer of HTTP/1.1 off a connection, strictly and with little: a head of a few KB, and
 * as much of a body as the limits say. What two readers could take for different things is invalid.
 * It is written for peers that nobody trusts, and costs a tenth of what the general client of Node
 * does, which keeps all that an answer says.
 */

export interface AnswerLimits {
  /** How much of a body is read. */
  readonly answer_bytes: number;
  /** How much of that is kept. */
  readonly kept_bytes: number;
}

/** `enough`: the status is known, and more of the body is not wanted. */
export type Fed = 'more' | 'done' | 'enough' | 'invalid';

const most_head_bytes = 8_192;
/** Answers with a status of 1xx that may come before the answer itself. */
const most_interim = 8;
/** Of a line that says how long a chunk is, or of a trailer. */
const most_line_bytes = 1_024;
/** With the frames of chunks; a body that is mostly frames ends here. */
const most_raw_bytes = 65_536;

const head_end = Buffer.from('\r\n\r\n');
const beginning = Buffer.from('HTTP/1.');
const status_pattern = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/;
const name_pattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const length_pattern = /^\d{1,15}$/;
const chunk_pattern = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?$/;
const line_feed = 0x0a;
const nothing = new Uint8Array();
const no_fields: ReadonlyMap<string, string> = new Map();

interface Head {
  readonly status: number;
  readonly is_old: boolean;
  readonly fields: ReadonlyMap<string, string>;
}

const readHead = (text: string): Head | null => {
  const [first = '', ...lines] = text.split('\r\n');
  const found = status_pattern.exec(first);
  if (found === null || /[\0\r\n]/.test(first)) return null;
  const fields = new Map<string, string>();
  for (const line of lines) {
    const at = line.indexOf(':');
    const name = line.slice(0, at).toLowerCase();
    if (at < 1 || !name_pattern.test(name) || /[\0\r\n]/.test(line)) return null;
    const value = line.slice(at + 1).trim();
    const known = fields.get(name);
    fields.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return { status: Number(found[2]), is_old: found[1] === '0', fields };
};

/** How a body ends: after so many bytes, with its last chunk, or with the connection. */
type Framing = number | 'chunked' | 'close';

const readFraming = ({ status, is_old, fields }: Head, has_body: boolean): Framing | null => {
  const length = fields.get('content-length');
  const coding = fields.get('transfer-encoding');
  if (length !== undefined && !length_pattern.test(length)) return null;
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || is_old)) return null;
  if (coding !== undefined && length !== undefined) return null;
  if (!has_body || status === 204 || status === 304) return 0;
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'close' : Number(length);
};

export class AnswerReader {
  status: number | null = null;
  /** Nothing has come at all. */
  is_untouched = true;
  readonly #limits: AnswerLimits;
  readonly #has_body: boolean;
  #head: Buffer | null = null;
  #fields = no_fields;
  #interim = 0;
  #framing: Framing = 0;
  /** Of the body or of the chunk at hand. */
  #left = 0;
  #step: 'size' | 'data' | 'data end' | 'trailer' = 'size';
  #line = '';
  #raw = 0;
  #size = 0;
  #kept: Buffer[] = [];
  #may_reuse = false;

  /** `has_body`: false for an answer to HEAD. */
  constructor(limits: AnswerLimits, has_body: boolean) {
    this.#limits = limits;
    this.#has_body = has_body;
  }

  /** After `done`: the connection may serve another call. */
  get may_reuse(): boolean {
    return this.#may_reuse;
  }

  field(name: string): string {
    return this.#fields.get(name) ?? '';
  }

  /** The beginning of the body. */
  kept(): Uint8Array {
    return this.#kept.length === 0 ? nothing : Buffer.concat(this.#kept);
  }

  feed(chunk: Buffer): Fed {
    this.is_untouched = false;
    return this.status === null ? this.#feedHead(chunk) : this.#feedBody(chunk);
  }

  /** The peer closed in order: true when that is the end of the answer. */
  end(): boolean {
    return this.status !== null && this.#framing === 'close';
  }

  #feedHead(chunk: Buffer): Fed {
    const all = this.#head === null ? chunk : Buffer.concat([this.#head, chunk]);
    const known = Math.min(all.length, beginning.length);
    if (all.compare(beginning, 0, known, 0, known) !== 0) return 'invalid';
    const end = all.indexOf(head_end);
    if (end > most_head_bytes || (end < 0 && all.length > most_head_bytes)) return 'invalid';
    if (end < 0) {
      this.#head = all;
      return 'more';
    }
    this.#head = null;
    const head = readHead(all.toString('latin1', 0, end));
    if (head === null) return 'invalid';
    const rest = all.subarray(end + head_end.length);
    if (head.status < 200) return this.#skipInterim(head, rest);
    const framing = readFraming(head, this.#has_body);
    if (framing === null) return 'invalid';
    this.status = head.status;
    this.#fields = head.fields;
    this.#framing = framing;
    this.#left = typeof framing === 'number' ? framing : 0;
    const asks = this.field('connection').toLowerCase();
    this.#may_reuse = !head.is_old && framing !== 'close' && !asks.includes('close');
    return this.#feedBody(rest);
  }

  /** No upgrade was asked for. */
  #skipInterim({ status }: Head, rest: Buffer): Fed {
    this.#interim += 1;
    if (status === 101 || this.#interim > most_interim) return 'invalid';
    return rest.length === 0 ? 'more' : this.#feedHead(rest);
  }

  #feedBody(chunk: Buffer): Fed {
    this.#raw += chunk.length;
    const fed = this.#framing === 'chunked' ? this.#feedChunks(chunk) : this.#feedPlain(chunk);
    return fed === 'more' && this.#raw > most_raw_bytes ? 'enough' : fed;
  }

  #feedPlain(chunk: Buffer): Fed {
    if (this.#framing === 'close') return this.#take(chunk) ? 'more' : 'enough';
    if (!this.#take(chunk.subarray(0, this.#left))) return 'enough';
    if (chunk.length > this.#left) this.#may_reuse = false;
    this.#left -= Math.min(chunk.length, this.#left);
    return this.#left === 0 ? 'done' : 'more';
  }

  #feedChunks(chunk: Buffer): Fed {
    for (let at = 0; at < chunk.length; ) {
      if (this.#step === 'data') {
        const piece = chunk.subarray(at, at + this.#left);
        if (!this.#take(piece)) return 'enough';
        at += piece.length;
        this.#left -= piece.length;
        if (this.#left === 0) this.#step = 'data end';
        continue;
      }
      const end = chunk.indexOf(line_feed, at);
      const stop = end < 0 ? chunk.length : end;
      if (this.#line.length + stop - at > most_line_bytes) return 'invalid';
      this.#line += chunk.toString('latin1', at, stop);
      if (end < 0) return 'more';
      at = end + 1;
      const fed = this.#feedLine();
      if (fed === 'done' && at < chunk.length) this.#may_reuse = false;
      if (fed !== 'more') return fed;
    }
    return 'more';
  }

  #feedLine(): Fed {
    const line = this.#line;
    this.#line = '';
    if (!line.endsWith('\r')) return 'invalid';
    const text = line.slice(0, -1);
    if (this.#step === 'trailer') return text === '' ? 'done' : 'more';
    if (this.#step === 'data end') {
      this.#step = 'size';
      return text === '' ? 'more' : 'invalid';
    }
    const size = chunk_pattern.exec(text)?.[1];
    if (size === undefined) return 'invalid';
    this.#left = Number.parseInt(size, 16);
    this.#step = this.#left === 0 ? 'trailer' : 'data';
    return 'more';
  }

  /** False when more than enough has been read. */
  #take(bytes: Buffer): boolean {
    const room = this.#limits.kept_bytes - this.#size;
    // Copied, so that no more than this stays of what came.
    if (room > 0 && bytes.length > 0) this.#kept.push(Buffer.from(bytes.subarray(0, room)));
    this.#size += bytes.length;
    return this.#size <= this.#limits.answer_bytes;
  }
}
