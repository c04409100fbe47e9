import { createHash } from 'node:crypto';
import { closeSync, createReadStream, createWriteStream, fsyncSync, openSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { syncFolder } from '../../process/embedded/data-dir.js';
import { Stopped } from '../command.js';

/**
 * The file of a backup: a tar in gzip, which `tar tzvf` lists. Its last entry, `sha256`, is the
 * SHA-256 of every byte of the tar before it: a file that was cut off or edited is found out.
 */
export interface Entry {
  readonly name: string;
  readonly bytes: Buffer;
}

export class DamagedFile extends Stopped {
  constructor(reason: string) {
    super(`The file cannot be used: ${reason}.`);
  }
}

const block_bytes = 512;
const checksum_at = 148;
const most_entry_bytes = 1024 * 1024 * 1024;
const seal_name = 'sha256';

/** Of the POSIX format "ustar"; its sum counts its own place as blanks. */
const headOf = ({ name, bytes }: Entry, made_at: Date): Buffer => {
  const head = Buffer.alloc(block_bytes);
  const octal = (value: number, width: number): string =>
    `${value.toString(8).padStart(width - 1, '0')}\0`;
  head.write(name, 0, 100);
  head.write(octal(0o600, 8), 100);
  head.write(octal(0, 8) + octal(0, 8), 108);
  head.write(octal(bytes.length, 12), 124);
  head.write(octal(Math.floor(made_at.getTime() / 1_000), 12), 136);
  head.write('        ', checksum_at);
  head.write('0', 156);
  head.write('ustar\x0000', 257);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${octal(sum, 7)} `, checksum_at);
  return head;
};

const paddingOf = (bytes: number): number => (block_bytes - (bytes % block_bytes)) % block_bytes;

async function* tarOf(entries: AsyncIterable<Entry>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  const made_at = new Date();
  const blocksOf = (entry: Entry): readonly Buffer[] => [
    headOf(entry, made_at),
    entry.bytes,
    Buffer.alloc(paddingOf(entry.bytes.length)),
  ];
  for await (const entry of entries) {
    for (const bytes of blocksOf(entry)) {
      hash.update(bytes);
      yield bytes;
    }
  }
  yield* blocksOf({ name: seal_name, bytes: Buffer.from(`${hash.digest('hex')}\n`) });
  yield Buffer.alloc(2 * block_bytes);
}

/** Writes the file whole or not at all; only its owner may read it. */
export const writeArchive = async (file: string, entries: AsyncIterable<Entry>): Promise<void> => {
  const part = `${file}.part`;
  await rm(part, { force: true });
  try {
    const sink = createWriteStream(part, { mode: 0o600, flags: 'wx' });
    await pipeline(Readable.from(tarOf(entries)), createGzip(), sink);
    const handle = openSync(part, 'r');
    fsyncSync(handle);
    closeSync(handle);
    await rename(part, file);
    syncFolder(path.dirname(path.resolve(file)));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
};

/** Reads so many bytes after the other. */
class Taker {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async take(bytes: number): Promise<Buffer> {
    const chunks = [this.#held];
    for (let have = this.#held.length; have < bytes; have += chunks.at(-1)?.length ?? 0) {
      const { done, value } = await this.#source.next();
      if (done) throw new DamagedFile('it ends too early');
      chunks.push(value);
    }
    const all = chunks.length === 1 ? this.#held : Buffer.concat(chunks);
    this.#held = all.subarray(bytes);
    return all.subarray(0, bytes);
  }

  /** What is compressed ends with a sum of its own, which is checked when all of it is read. */
  async end(): Promise<void> {
    while (!(await this.#source.next()).done);
  }
}

const readHead = (head: Buffer): { readonly name: string; readonly bytes: number } => {
  const textAt = (from: number, to: number): string =>
    head.toString('latin1', from, to).replace(/\0.*$/s, '');
  const bytes = Number.parseInt(textAt(124, 136), 8);
  if (textAt(257, 263) !== 'ustar' || !(bytes >= 0 && bytes <= most_entry_bytes)) {
    throw new DamagedFile('it is no backup of this program, or was changed');
  }
  return { name: textAt(0, 100), bytes };
};

async function* entriesIn(taker: Taker): AsyncGenerator<Entry> {
  const hash = createHash('sha256');
  for (;;) {
    const head = await taker.take(block_bytes);
    const { name, bytes } = readHead(head);
    const padding = paddingOf(bytes);
    const content = await taker.take(bytes + padding);
    const entry = { name, bytes: content.subarray(0, bytes) };
    if (name === seal_name) {
      await taker.end();
      if (entry.bytes.toString('latin1').trim() === hash.digest('hex')) return;
      throw new DamagedFile('it was changed after it was made');
    }
    hash.update(head).update(content);
    yield entry;
  }
}

/** The entries in their order; throws a DamagedFile, at the latest after the last one. */
export async function* readArchive(file: string): AsyncGenerator<Entry> {
  const source = createReadStream(file);
  const unpacked = createGunzip();
  source.once('error', (error) => unpacked.destroy(error));
  source.pipe(unpacked);
  try {
    yield* entriesIn(new Taker(unpacked));
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    if (!code.startsWith('Z_')) throw error;
    throw new DamagedFile(`it is cut off or damaged (${(error as Error).message})`);
  } finally {
    source.destroy();
    unpacked.destroy();
  }
}
