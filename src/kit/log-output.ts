import { write, writeSync } from 'node:fs';

/**
 * Where the lines of a log go. Nobody ever waits for it: lines gather in memory and are written
 * beside the work of the process. What cannot be written (the disk is full, nobody reads the pipe)
 * is tried again until it can; meanwhile only so many lines are kept, and those that come after
 * them are dropped and counted.
 */

export interface LogOutput {
  write(line: string): void;
  /** Writes what it can, now: for the end of the process. */
  flushSync(): void;
  /** Lines dropped so far. */
  dropped(): number;
}

export interface LogOutputOptions {
  readonly fd: number;
  /** Lines can be written again; so many had to be dropped. */
  readonly onAgain: (dropped: number, code: string) => void;
  /** Most characters kept while nothing can be written. */
  readonly most?: number;
}

/** What gathered is written after this time, and what failed is tried again. */
const every_ms = 200;
/** The same for a pipe that is full: its reader is at it. */
const pipe_ms = 10;
/** So much is written without a wait: a write costs as much as the lines in it. */
const enough = 32_768;

const line_break = 10;

/**
 * What is left after so many bytes, from the beginning of the line that was cut; a line break ends
 * what of it stands in the file, where others write as well.
 */
const fromCut = (chunk: Buffer, written: number): Buffer => {
  if (written === 0) return chunk;
  const start = chunk.lastIndexOf(line_break, written - 1) + 1;
  const left = chunk.subarray(start);
  return start === written ? left : Buffer.concat([Buffer.of(line_break), left]);
};

const countLines = (text: string): number => text.split('\n').length - 1;

/** Writes as much as it can without waiting for long. */
const writeNow = (fd: number, text: Buffer): void => {
  let patience = 50;
  for (let from = 0; from < text.length; ) {
    try {
      from += writeSync(fd, text, from);
    } catch (error) {
      patience -= 1;
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || patience === 0) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pipe_ms);
    }
  }
};

const outputs: LogOutput[] = [];

const flushAtExit = (output: LogOutput): void => {
  if (outputs.push(output) > 1) return;
  process.on('exit', () => {
    for (const one of outputs) one.flushSync();
  });
};

const nothing = Buffer.alloc(0);

class Output implements LogOutput {
  private readonly options: LogOutputOptions;
  private gathered = '';
  /** Being written, or to be tried again. */
  private chunk: Buffer = nothing;
  private is_writing = false;
  private timer: NodeJS.Timeout | null = null;
  private lost = 0;
  private told = 0;
  /** Why the last write failed; empty when it did not. */
  private trouble = '';

  constructor(options: LogOutputOptions) {
    this.options = options;
  }

  dropped(): number {
    return this.lost;
  }

  write(line: string): void {
    const { most = 1_048_576 } = this.options;
    if (this.gathered.length + line.length > most) {
      this.lost += countLines(line);
      return;
    }
    this.gathered += line;
    if (this.trouble === '' && this.gathered.length >= enough) this.start();
    else this.startIn(every_ms);
  }

  flushSync(): void {
    const rest = Buffer.concat([
      this.is_writing ? nothing : this.chunk,
      Buffer.from(this.gathered),
    ]);
    this.gathered = '';
    if (!this.is_writing) this.chunk = nothing;
    writeNow(this.options.fd, rest);
  }

  private startIn(ms: number): void {
    this.timer ??= setTimeout(() => this.start(), ms).unref();
  }

  private start(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.is_writing) return;
    if (this.chunk.length === 0) {
      this.chunk = Buffer.from(this.gathered);
      this.gathered = '';
    }
    if (this.chunk.length === 0) return;
    this.is_writing = true;
    this.writeFrom(0);
  }

  private writeFrom(from: number): void {
    const { chunk } = this;
    write(this.options.fd, chunk, from, (error, written) => {
      if (error !== null) this.fail(from, error);
      else if (from + written < chunk.length) this.writeFrom(from + written);
      else this.succeed();
    });
  }

  private fail(written: number, { code = 'unknown' }: NodeJS.ErrnoException): void {
    const is_full_pipe = code === 'EAGAIN';
    this.is_writing = false;
    this.chunk = is_full_pipe ? this.chunk.subarray(written) : fromCut(this.chunk, written);
    this.trouble = code;
    this.startIn(is_full_pipe ? pipe_ms : every_ms);
  }

  private succeed(): void {
    const { trouble, lost, told } = this;
    this.is_writing = false;
    this.chunk = nothing;
    this.trouble = '';
    // What was kept goes first, and leaves room for the line that says how much was not.
    if (trouble !== '') this.start();
    if (lost > told) this.options.onAgain(lost - told, trouble);
    this.told = lost;
    if (this.gathered !== '') this.startIn(every_ms);
  }
}

export const openLogOutput = (options: LogOutputOptions): LogOutput => {
  const output = new Output(options);
  flushAtExit(output);
  return output;
};
