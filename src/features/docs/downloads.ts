import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Type } from '@sinclair/typebox';
import { packTar } from 'modern-tar';
import { etagOf } from '../../http/body.js';
import { replyRaw, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { memo } from '../../kit/memo.js';
import { version } from '../../kit/version.js';

/**
 * The client libraries as packages that npm and pip install from this forum's address. They have
 * the version of the forum, and are made from the folder `clients` when somebody first asks for them.
 */

interface Package {
  readonly folder: URL;
  /** Name of the folder in the archive. */
  readonly root: string;
  /** Files and folders that belong to the package. */
  readonly content: readonly string[];
}

const clients = new URL('../../../../clients/', import.meta.url);
const typescript = new URL('typescript/', clients);
const python = new URL('python/', clients);

const downloadPath = (file: string): string => `/downloads/${file}`;

/** Path of the package for npm. */
export const npm_package = downloadPath(`prediction-forum-client-${version}.tgz`);
/** Path of the source package for pip. */
export const pip_package = downloadPath(`prediction_forum-${version}.tar.gz`);

const packages: Readonly<Record<string, Package>> = {
  [npm_package]: {
    folder: typescript,
    root: 'package',
    content: ['package.json', 'README.md', 'LICENSE', 'dist'],
  },
  [pip_package]: {
    folder: python,
    root: `prediction_forum-${version}`,
    content: ['pyproject.toml', 'README.md', 'LICENSE', 'prediction_forum'],
  },
};

const is_source = /\.(?:[cm]?js|d\.ts|json|md|toml|py|typed)$|^LICENSE$/;

/** Lists the package's files by their path in the folder, in a fixed order. */
const listFiles = async ({ folder, content }: Package): Promise<readonly string[]> =>
  (await readdir(folder, { recursive: true }))
    .filter((file) => content.includes(file.split(path.sep)[0] ?? ''))
    .filter((file) => is_source.test(path.basename(file)))
    .sort();

const pack = async (parts: Package): Promise<Buffer> => {
  const files = await listFiles(parts);
  const entries = files.map(async (file) => {
    const body = await readFile(new URL(file, parts.folder));
    const header = { name: `${parts.root}/${file}`, size: body.length, mode: 0o644 };
    // A fixed time gives the same bytes, and so the same ETag, after a restart.
    return { header: { ...header, mtime: new Date(0) }, body };
  });
  return await promisify(gzip)(await packTar(await Promise.all(entries)));
};

interface Download {
  readonly body: Buffer;
  readonly etag: string;
}

/** Returns a function that reads a package. */
export const createDownloads = () =>
  memo(
    ({ root }: Package) => root,
    async (parts: Package): Promise<Download> => {
      const body = await pack(parts);
      return { body, etag: etagOf(body) };
    },
  );

export interface DownloadParts {
  readonly downloads: ReturnType<typeof createDownloads>;
}

const route = routeFor<DownloadParts>();

export const downloads = route({
  id: 'download',
  path: '/downloads/{file}',
  summary: 'The client libraries, as packages for npm and pip',
  method: 'GET',
  tag: 'docs',
  auth: 'public',
  documented: false,
  cacheable: true,
  params: Type.Object({ file: Type.String({ maxLength: 100 }) }),
  absent: common_faults.NOT_FOUND,
  produces: 'application/gzip',
  returns: { 200: Type.String() },
  async handle({ params: { file } }, deps) {
    const parts = packages[downloadPath(file)];
    if (parts === undefined) return refuse(common_faults.NOT_FOUND);
    const found = await deps.downloads(parts);
    return { ...replyRaw('application/gzip', found.body), etag: found.etag };
  },
});
