import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeId } from '../../kit/ids.js';
import { parquetPieces, type TypedColumns } from './content.js';
import type { Lines } from './copy-store.js';

/** Archives rows in files before they are removed from the database. */

export interface ArchiveTable extends TypedColumns {
  /** First part of the names of the table's files. */
  readonly name: string;
}

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
};

const unfinished_ms = 3_600_000;

/** Removes temporary files that killed processes left behind. */
const removeUnfinished = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.parquet.tmp')) continue;
    const file = path.join(folder, name);
    const { mtimeMs: at } = await stat(file);
    if (at < Date.now() - unfinished_ms) await rm(file, { force: true });
  }
};

interface Part extends ArchiveTable {
  readonly part: string;
  /** The expected number of rows, if it is known. */
  readonly count?: number;
}

/**
 * Writes rows to FOLDER/NAME-PART.parquet; returns how many. Until the whole file is on disk, it
 * has a temporary name. So if anything fails, an existing file stays unchanged.
 */
export const writeArchive = async (
  folder: string,
  { name, columns, part, count }: Part,
  lines: AsyncIterable<Lines>,
): Promise<number> => {
  await mkdir(folder, { recursive: true });
  await removeUnfinished(folder);
  const file = path.join(folder, `${name}-${part}.parquet`);
  const unfinished = path.join(folder, `${name}-${part}.${makeId()}.parquet.tmp`);
  let rows = 0;
  async function* counted() {
    for await (const page of lines) {
      rows += page.rows;
      yield page;
    }
  }
  const handle = await open(unfinished, 'wx', 0o600);
  try {
    for await (const piece of parquetPieces({ columns }, counted())) await handle.writeFile(piece);
    await handle.sync();
    await handle.close();
    if (rows !== (count ?? rows)) throw new Error(`${file}: ${rows} rows instead of ${count}`);
    await rename(unfinished, file);
    await syncFolder(folder);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(unfinished, { force: true });
    throw error;
  }
  return rows;
};
