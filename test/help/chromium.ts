import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { project_root } from './own-stores.js';

/** Path of Chromium on this machine. On Debian, a test run installs it if possible. */

export const findChromium = (): string | undefined => {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8', stdio: 'pipe' }).trim();
    } catch {
      // Try the next name.
    }
  }
  return undefined;
};

export const no_chromium = 'there is no Chromium';

const needsChromium = (file: string): boolean =>
  /\/(?:chromium|browser)\.js'/.test(readFileSync(path.join(project_root, file), 'utf8'));

const install_ms = 240_000;
const run = promisify(execFile);

/**
 * Installs Chromium with apt-get if a compiled test file needs it, the machine lacks it and this
 * process may install packages. Otherwise the browser tests are skipped. Call this once, before all
 * tests. It ends within a time limit.
 */
export const installChromium = async (
  files: readonly string[],
  say: (line: string) => void,
): Promise<void> => {
  if (findChromium() !== undefined || !files.some(needsChromium)) return;
  if (process.getuid?.() !== 0) return;
  const signal = AbortSignal.timeout(install_ms);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const aptGet = (...words: string[]) =>
    run('apt-get', ['-o', 'DPkg::Lock::Timeout=60', '-qq', ...words], { env, signal });
  const install = () => aptGet('install', '-y', '--no-install-recommends', 'chromium');
  say('Installing Chromium by apt-get for the tests of browsers …');
  try {
    // A fresh machine has no package lists yet.
    await install().catch(async () => {
      await aptGet('update');
      await install();
    });
  } catch (error) {
    const why = (error as { readonly stderr?: string }).stderr?.trim().split('\n').at(-1);
    say(`Chromium could not be installed: ${why || (error as Error).message}`);
  }
};
