import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Type } from '@sinclair/typebox';
import { packTar } from 'modern-tar';
import { etagOf } from '../../http/body.js';
import { replyRaw, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';

/**
 * The client libraries as packages that npm and pip install from this forum's address. They are
 * made from the folder `clients` when somebody first asks for them.
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

const readVersion = (file: URL, pattern: RegExp): string =>
  pattern.exec(readFileSync(file, 'utf8'))?.[1] ?? '';

const npm_version = readVersion(new URL('package.json', typescript), /"version": "(.+?)"/);
const pip_version = readVersion(new URL('pyproject.toml', python), /^version = "(.+?)"/m);

const downloadPath = (file: string): string => `/downloads/${file}`;

/** Path of the package for npm. */
export const npm_package = downloadPath(`prediction-forum-client-${npm_version}.tgz`);
/** Path of the source package for pip. */
export const pip_package = downloadPath(`prediction_forum-${pip_version}.tar.gz`);

const packages: Readonly<Record<string, Package>> = {
  [npm_package]: {
    folder: typescript,
    root: 'package',
    content: ['package.json', 'README.md', 'LICENSE', 'dist'],
  },
  [pip_package]: {
    folder: python,
    root: `prediction_forum-${pip_version}`,
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
    // A fixed time gives the same bytes, and so the same ETag, on every host.
    return { header: { ...header, mtime: new Date(0) }, body };
  });
  return await promisify(gzip)(await packTar(await Promise.all(entries)));
};

interface Download {
  readonly body: Buffer;
  readonly etag: string;
}

export const createDownloads = () => {
  const made = new Map<string, Promise<Download>>();
  const makeOnce = async (parts: Package): Promise<Download> => {
    const body = await pack(parts);
    return { body, etag: etagOf(body) };
  };
  /** Returns the package, or undefined if there is none at this path. */
  return (file: string): Promise<Download> | undefined => {
    const parts = packages[downloadPath(file)];
    if (parts === undefined) return undefined;
    const known = made.get(file) ?? makeOnce(parts);
    made.set(file, known);
    return known;
  };
};

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
    const found = await deps.downloads(file);
    if (found === undefined) return refuse(common_faults.NOT_FOUND);
    return { ...replyRaw('application/gzip', found.body), etag: found.etag };
  },
});
