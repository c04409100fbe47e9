import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { project_root } from './own-stores.js';

/** The Chromium of this machine, which a run of the tests installs where Debian can. */

export const findChromium = (): string | undefined => {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8', stdio: 'pipe' }).trim();
    } catch {
      // The next name.
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
 * Installs Chromium by apt-get where one of the compiled test files needs it, the machine has none
 * and this process may; else the tests of browsers are left out. Once for a whole run, before its
 * tests begin, and bounded in time.
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
    // A machine that has never asked for its lists of packages has none.
    await install().catch(async () => {
      await aptGet('update');
      await install();
    });
  } catch (error) {
    const why = (error as { readonly stderr?: string }).stderr?.trim().split('\n').at(-1);
    say(`Chromium could not be installed: ${why || (error as Error).message}`);
  }
};
