import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installChromium } from './help/chromium.js';
import {
  makeTemplate,
  type OwnStores,
  project_root,
  startOwnStores,
  sweepTestFolders,
  template_name,
} from './help/own-stores.js';
import { type RedisCluster, startWantedCluster } from './help/redis-cluster.js';

/**
 * `npm test [-- PATH…]`: starts Postgres and Redis for the tests, runs the compiled test files that
 * the paths select (all of them without any), and ends with tap's own totals on a line alone.
 * With `TEST_REDIS=cluster` Redis is a cluster of three masters with a replica each.
 */
const own_folder = path.dirname(fileURLToPath(import.meta.url));

const selectFiles = (wanted: readonly string[]): readonly string[] => {
  const normal = wanted.map((name) =>
    name.replace(/^(\.\/)?(dist\/)?/, 'dist/').replace(/\.ts$/, '.js'),
  );
  return readdirSync(own_folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => `dist/test/${name}`)
    .filter((name) => normal.length === 0 || normal.some((start) => name.startsWith(start)))
    .sort();
};

interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** tap's last word: `# { total: 8, pass: 4, fail: 3, skip: 1 }`, zeros left out. */
const readTotals = (line: string): Totals | null => {
  if (!/^# \{ total: \d+/.test(line)) return null;
  const count = (name: string): number =>
    Number(new RegExp(`${name}: (\\d+)`).exec(line)?.[1] ?? 0);
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
};

/**
 * One line a file that passes, and one for each test that it left out; of a file that fails
 * everything but what passed in it.
 */
const is_long = process.env['LONG_FAULTS'] === 'true';

const makePrinter = (): ((line: string) => void) => {
  let block: string[] = [];
  return (line) => {
    const end = /^(ok|not ok) \d+ - (.*)$/.exec(line);
    const [, name, why] = /^ *ok \d+ - (.*?) # SKIP ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) console.log(`left out: ${name}${why === '' ? '' : ` (${why})`}`);
    if (end === null) {
      if (!/^\s*(ok \d|1\.\.\d|TAP version|# time=|# Subtest:.*\.test\.ts$|$)/.test(line)) {
        block.push(line);
      }
      return;
    }
    const failed = end[1] === 'not ok';
    if (name === undefined) console.log(`${failed ? 'FAIL' : '  ok'}  ${end[2]}`);
    const told = failed ? block : block.filter((text) => is_long && /^ *# /.test(text));
    if (told.length > 0) console.log(told.join('\n'));
    block = [];
  };
};

const runFiles = async (
  files: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Totals | null> => {
  const runner = spawn(
    process.execPath,
    [path.join(own_folder, 'help', 'run-files.js'), ...files],
    {
      cwd: project_root,
      env: { ...process.env, TAP_TIMEOUT: is_long ? '3000' : '500', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  stopWith(runner);
  const print = makePrinter();
  let totals: Totals | null = null;
  for await (const line of createInterface({ input: runner.stdout })) {
    totals = readTotals(line) ?? totals;
    print(line);
  }
  return totals;
};

/** Ctrl-C ends the tests; the stores are then stopped in the ordinary way. */
const stopWith = (runner: ChildProcess): void => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => runner.kill('SIGTERM'));
  }
};

const report = ({ passed, failed, skipped }: Totals): void => {
  const parts = [`${passed} passed`, `${failed} failed`];
  if (skipped > 0) parts.push(`${skipped} skipped`);
  console.log(parts.join(', '));
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
};

const run = async (): Promise<void> => {
  const files = selectFiles(process.argv.slice(2));
  if (files.length === 0) {
    console.log('No test file has this path.');
    return report({ passed: 0, failed: 0, skipped: 0 });
  }
  let stores: OwnStores | null = null;
  let cluster: RedisCluster | null = null;
  try {
    await sweepTestFolders();
    await installChromium(files, (line) => console.log(line));
    stores = await startOwnStores(false);
    cluster = await startWantedCluster();
    await makeTemplate(stores.postgres.admin_url);
    const totals = await runFiles(files, {
      TEST_DATABASE_URL: stores.postgres.admin_url,
      TEST_REDIS_URL: cluster?.url ?? stores.redis.url,
      TEST_TEMPLATE: template_name,
    });
    report(totals ?? { passed: 0, failed: 1, skipped: 0 });
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
    report({ passed: 0, failed: 1, skipped: 0 });
  } finally {
    await cluster?.stop();
    await stores?.stop();
  }
};

await run();
