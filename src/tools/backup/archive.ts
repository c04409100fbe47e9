import { createHash } from 'node:crypto';
import { closeSync, createReadStream, createWriteStream, fsyncSync, openSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline as pipelineDone } from 'node:stream/promises';
import type { ReadableWritablePair } from 'node:stream/web';
import { createGunzip, createGzip } from 'node:zlib';
import { createTarDecoder, type ParsedTarEntry, packTar } from 'modern-tar';
import { syncFolder } from '../../process/embedded/data-dir.js';
import { Stopped } from '../command.js';

/**
 * The file of a backup: a tar in gzip, which `tar tzvf` lists. Its last entry, `sha256`, is the
 * SHA-256 of all names and contents before it, so a file that was cut off or edited is detected.
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

const seal_name = 'sha256';
/** Size of the two empty blocks that end a tar file. */
const end_bytes = 1_024;

async function* tarOf(entries: AsyncIterable<Entry>): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  const mtime = new Date();
  const pack = ({ name, bytes }: Entry): Promise<Uint8Array> =>
    packTar([{ header: { name, size: bytes.length, mode: 0o600, mtime }, body: bytes }]);
  for await (const entry of entries) {
    hash.update(entry.name).update(entry.bytes);
    yield (await pack(entry)).subarray(0, -end_bytes);
  }
  yield await pack({ name: seal_name, bytes: Buffer.from(`${hash.digest('hex')}\n`) });
}

/** Writes the whole file or nothing. Only the file's owner may read it. */
export const writeArchive = async (file: string, entries: AsyncIterable<Entry>): Promise<void> => {
  const part = `${file}.part`;
  await rm(part, { force: true });
  try {
    const sink = createWriteStream(part, { mode: 0o600, flags: 'wx' });
    await pipelineDone(Readable.from(tarOf(entries)), createGzip(), sink);
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

/** The type of the decoder with Node's stream types, which differ from the web's in TypeScript. */
type TarDecoder = ReadableWritablePair<ParsedTarEntry, Buffer>;

/** Yields the entries in their order. Throws a DamagedFile, at the latest after the last entry. */
export async function* readArchive(file: string): AsyncGenerator<Entry> {
  const hash = createHash('sha256');
  let sealed = '';
  const unpacked = createGunzip();
  pipeline(createReadStream(file), unpacked, () => undefined);
  try {
    const decoder = createTarDecoder({ strict: true }) as unknown as TarDecoder;
    const tar = Readable.toWeb(unpacked).pipeThrough(decoder);
    for await (const { header, body } of tar) {
      const entry = { name: header.name, bytes: await buffer(body) };
      if (entry.name === seal_name) sealed = entry.bytes.toString('latin1').trim();
      else {
        hash.update(entry.name).update(entry.bytes);
        yield entry;
      }
    }
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code !== '' && !code.startsWith('Z_')) throw error;
    throw new DamagedFile(`it is cut off, damaged, or not a backup of this program (${message})`);
  } finally {
    unpacked.destroy();
  }
  if (sealed === '') throw new DamagedFile('it ends too early, or is not a backup of this program');
  if (sealed !== hash.digest('hex')) throw new DamagedFile('it was changed after it was made');
}
