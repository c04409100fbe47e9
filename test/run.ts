import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { installChromium } from './help/chromium.js';
import {
  makeTemplate,
  startOwnStores,
  sweepTestFolders,
  template_name,
} from './help/own-stores.js';
import { startWantedCluster } from './help/redis-cluster.js';
import { nameOf, type Result, startFiles } from './help/run-files.js';

/**
 * `npm test [-- PATH…]` and `npm run test:fault [-- PATH…]`: start Postgres and Redis for the tests,
 * run the compiled test files that the paths select, and end with `N passed, N failed`. Without a
 * path, `test` runs all files except the slow ones, and `test:fault` runs the slow ones. With
 * `TEST_REDIS=cluster` Redis is a cluster of three masters with a replica each.
 */
const own_folder = path.dirname(fileURLToPath(import.meta.url));

/** Faults, backups, long logs, grown tables, pictures of every page, the wheel, a whole forum. */
const slow = [
  'fault/',
  'features/webhooks/signer-kill',
  'features/leaderboards/rebuild-fault',
  'tools/backup',
  'walk/mixed',
  'web/every-page',
  'features/log/conformance',
  'clients/python-wheel',
  'kinds/event-loop',
  'contract/plans',
  'features/consensus/large',
  'tutorials/forum-for-friends',
];

const listFiles = (): readonly string[] =>
  readdirSync(own_folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => `dist/test/${name}`)
    .sort();

const beginsWith = (file: string, starts: readonly string[]): boolean =>
  starts.some((start) => file.startsWith(`dist/test/${start}`));

const selectFiles = (wanted: readonly string[], is_fault: boolean): readonly string[] => {
  if (wanted.length === 0) return listFiles().filter((file) => beginsWith(file, slow) === is_fault);
  const starts = wanted.map((name) =>
    name.replace(/^(\.\/)?(dist\/)?test\//, '').replace(/\.ts$/, '.js'),
  );
  // The name of a folder is a whole name: `test/client` is not the beginning of `test/clients`.
  const isFolder = (name: string): boolean => existsSync(path.join(own_folder, name));
  const places = starts.map((name) =>
    /^$|\/$|\.js$/.test(name) || !isFolder(name) ? name : `${name}/`,
  );
  return listFiles().filter((file) => beginsWith(file, places));
};

const is_long = process.env['LONG_FAULTS'] === 'true';

const report = ({ passed, failed, skipped, not_run }: Result): void => {
  if (not_run.length > 0) {
    console.log(`The run was stopped. Not run: ${not_run.map(nameOf).join(', ')}`);
  }
  const skips = skipped > 0 ? `, ${skipped} skipped` : '';
  console.log(`${passed} passed, ${failed} failed${skips}`);
  process.exitCode = failed > 0 || passed === 0 || not_run.length > 0 ? 1 : 0;
};

const nothing = { passed: 0, failed: 0, skipped: 0, not_run: [] };

/** Ctrl-C ends the tests. The stores are then stopped as after every run. */
const stopOnSignal = (stop: () => void): void => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
};

const runFiles = async (files: readonly string[], at_once: number): Promise<Result> => {
  await sweepTestFolders();
  await installChromium(files, (line) => console.log(line));
  const stores = await startOwnStores(false);
  const cluster = await startWantedCluster();
  try {
    await makeTemplate(stores.postgres.admin_url);
    const { result, stop } = startFiles(files, {
      env: {
        TEST_DATABASE_URL: stores.postgres.admin_url,
        TEST_REDIS_URL: cluster?.url ?? stores.redis.url,
        TEST_TEMPLATE: template_name,
      },
      file_ms: is_long ? 3_600_000 : 900_000,
      shows_comments: is_long,
      at_once,
      say: (line) => console.log(line),
    });
    stopOnSignal(stop);
    return await result;
  } finally {
    await cluster?.stop();
    await stores.stop();
  }
};

const run = async (): Promise<void> => {
  const words = process.argv.slice(2);
  const is_fault = words[0] === '--fault';
  const files = selectFiles(is_fault ? words.slice(1) : words, is_fault);
  if (files.length === 0) {
    console.log('No test file has this path.');
    return report(nothing);
  }
  try {
    // Running more files at once is hardly faster, and then services time out on busy cores.
    report(await runFiles(files, availableParallelism()));
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
    report({ ...nothing, failed: 1, not_run: files });
  }
};

await run();
