import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { project_root } from './own-stores.js';
import type { Teardown } from './stores.js';

/** The client library as users get it: packed, and installed elsewhere without a registry. */

const run = promisify(execFile);

/** An empty folder outside the checkout, and an npm configuration that ignores the user's own. */
export const makeEmptyFolder = (t: Teardown) => {
  const base = mkdtempSync(path.join(os.tmpdir(), 'pf-client-'));
  t.teardown(() => rmSync(base, { recursive: true, force: true }));
  const folder = path.join(base, 'empty');
  mkdirSync(folder);
  const env = {
    PATH: process.env['PATH'],
    HOME: base,
    npm_config_cache: path.join(base, 'cache'),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  };
  return { base, folder, env };
};

export type EmptyFolder = ReturnType<typeof makeEmptyFolder>;

/** Packs the built library and its only dependency. Returns the paths of the tarballs. */
export const packClient = async ({ base, env }: EmptyFolder): Promise<readonly string[]> => {
  const places = ['clients/typescript', 'node_modules/ws'].map((one) =>
    path.join(project_root, one),
  );
  const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', base];
  const { stdout } = await run('npm', [...words, ...places], { cwd: base, env });
  const packed = JSON.parse(stdout) as readonly { readonly filename: string }[];
  return packed.map(({ filename }) => path.join(base, filename));
};

/** Runs `npm install` on the tarballs in a second folder, as the author of a program would. */
export const installTarballs = async (
  { base, env }: EmptyFolder,
  tarballs: readonly string[],
): Promise<string> => {
  const folder = path.join(base, 'program');
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module","private":true}');
  await run('npm', ['install', '--no-audit', '--no-fund', ...tarballs], { cwd: folder, env });
  return folder;
};

export const installClient = async (t: Teardown): Promise<string> => {
  const empty = makeEmptyFolder(t);
  return installTarballs(empty, await packClient(empty));
};
