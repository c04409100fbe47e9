import { Transform } from 'node:stream';
import { lineTooLong, type RpcError, readLine } from '../features/mcp/messages.js';

/** Larger than the input of any tool. */
const max_bytes = 1_048_576;

const line_feed = 10;

/**
 * Passes on the lines of standard input that are messages. The SDK does not answer a bad line, so
 * `refuse` receives an error for it, and reading continues with the next line.
 */
export class MessageLines extends Transform {
  readonly #refuse: (error: RpcError) => void;
  /** Parts of the current line, which has no end yet. */
  #parts: Buffer[] = [];
  #size = 0;

  constructor(refuse: (error: RpcError) => void) {
    super();
    this.#refuse = refuse;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    let begin = 0;
    for (let end = chunk.indexOf(line_feed); end !== -1; end = chunk.indexOf(line_feed, begin)) {
      this.#add(chunk.subarray(begin, end));
      begin = end + 1;
      this.#endLine();
    }
    this.#add(chunk.subarray(begin));
    done();
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size <= max_bytes) this.#parts.push(part);
    else this.#parts = [];
  }

  #endLine(): void {
    const line = Buffer.concat(this.#parts);
    const is_too_long = this.#size > max_bytes;
    this.#parts = [];
    this.#size = 0;
    if (is_too_long) {
      this.#refuse(lineTooLong(max_bytes));
      return;
    }
    if (line.toString('latin1').trim() === '') return;
    const read = readLine(line);
    if ('error' in read) this.#refuse(read.error);
    else this.push(`${JSON.stringify(read.message)}\n`);
  }
}
