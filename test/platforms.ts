import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { project_root } from './help/own-stores.js';
import { trixie, withoutTrixie } from './help/trixie.js';

/**
 * `npm run test:platforms [-- PATH…]`: runs the suites that depend on Node and on the engine. It
 * uses this machine's Node, and Node 22 and 24 in a tree of Debian 13, because these need its
 * glibc. On each, a million random texts pass through every interface of the engine. Prints one
 * line per Node at the end.
 */

const suites = ['test/http', 'test/socket', 'test/contract', 'test/client', 'test/clients'];
const paths = process.argv.length > 2 ? process.argv.slice(2) : suites;
const run_words = ['dist/test/run.js', ...paths];
const texts = '1000000';

interface Outcome {
  readonly node: string;
  /** Null if the run did not finish. */
  readonly totals: string | null;
}

/** Runs the suites, shows their output, and returns the last line. */
const runSuites = (node: string, command: string, words: readonly string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    console.log(`\nNode ${node}`);
    const child = spawn(command, words, {
      cwd: project_root,
      env: { ...process.env, TEXTS: process.env['TEXTS'] ?? texts },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let totals: string | null = null;
    createInterface({ input: child.stdout }).on('line', (line) => {
      console.log(line);
      if (/^\d+ passed, \d+ failed/.test(line)) totals = line;
    });
    child.once('close', () => resolve({ node, totals }));
  });

/** A folder with this version of Node and npm, from the npm registry. Null if that fails. */
const fetchNode = (major: string): string | null => {
  const folder = path.join(project_root, '.data', 'node', major);
  const packages = [`node-linux-${process.arch}@${major}`, 'npm@10'];
  const bin = path.join(folder, 'node_modules', '.bin');
  if (existsSync(path.join(bin, 'npm'))) return bin;
  mkdirSync(folder, { recursive: true });
  const words = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', [...words, ...packages], { stdio: 'inherit' });
  return status === 0 ? bin : null;
};

/** Mounts the checkout in the tree, under the same path, while the command runs. */
const enter_tree = `
  mkdir -p "$TREE$ROOT"
  mount --bind "$ROOT" "$TREE$ROOT"
  mount --rbind /proc "$TREE/proc"
  mount --rbind /dev "$TREE/dev"
  touch "$TREE/etc/hosts"
  mount --bind /etc/hosts "$TREE/etc/hosts"
  exec chroot "$TREE" env "PATH=$BIN:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LC_ALL=C.UTF-8 \\
    sh -ec 'cd "$ROOT"; exec node "$@"' sh "$@"`;

const runInTree = async (major: string): Promise<Outcome> => {
  const bin = fetchNode(major);
  if (bin === null) return { node: major, totals: null };
  const settings = [`TREE=${trixie}`, `ROOT=${project_root.replace(/\/$/, '')}`, `BIN=${bin}`];
  const words = [...settings, 'unshare', '--mount', 'sh', '-ec', enter_tree, 'sh', ...run_words];
  return runSuites(`${major} on Debian 13`, 'env', words);
};

const outcomes = [await runSuites(process.versions.node, process.execPath, run_words)];
const reason = withoutTrixie();
if (reason === false) {
  for (const major of ['22', '24']) outcomes.push(await runInTree(major));
}
console.log('');
for (const { node, totals } of outcomes) {
  console.log(`Node ${node}: ${totals ?? 'did not run to its end'}`);
}
if (reason !== false) console.log(`left out: Node 22 and 24, because ${reason}`);
const isGood = ({ totals }: Outcome): boolean => totals?.includes(' 0 failed') === true;
process.exitCode = outcomes.every(isGood) ? 0 : 1;
