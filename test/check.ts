import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { makeLoads, readSources } from './help/imports.js';
import { project_root } from './help/own-stores.js';

/**
 * `npm run check [-- --set-budget]`: checks lint and format, and compares the size of the
 * repository with `budget.json`. Run it after the build. A change that adds a feature may raise the
 * budget by the size of the feature: `--set-budget` writes today's figures.
 */

interface Budget {
  /** Number of lines in tracked files, by folder. */
  readonly lines: Readonly<Record<string, number>>;
  /** Number of files in `src` whose code one prediction runs (`npm run walk`). */
  readonly files_of_a_prediction: number;
  /** Number of files in `src` that are loaded with a rules file, by rules file. */
  readonly files_loaded_by_rules: Readonly<Record<string, number>>;
  readonly readme_words: number;
}

const budget_file = path.join(project_root, 'budget.json');
const run = promisify(execFile);

const read = (name: string): string => readFileSync(path.join(project_root, name), 'utf8');

const isText = (name: string): boolean => !/\.(?:png|svg|ico|gz|woff2?|parquet)$/.test(name);

/** The folder in the budget: `src/features/webhooks`, `src/http`, `test`, or `.` for the root. */
const folderOf = (name: string): string => {
  const [first = '', second = '', third = ''] = name.split('/');
  if (first !== 'src') return second === '' ? '.' : first;
  if (second === 'features') return `src/features/${third}`;
  return third === '' ? 'src' : `src/${second}`;
};

const countLines = (): Record<string, number> => {
  const listed = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const names = execFileSync('git', listed, { cwd: project_root, encoding: 'utf8' })
    .trim()
    .split('\n')
    .filter((name) => isText(name) && !/^(?:package-lock|budget)\.json$|^LICENSE$/.test(name))
    .sort();
  const lines: Record<string, number> = {};
  for (const name of names) {
    const folder = folderOf(name);
    lines[folder] = (lines[folder] ?? 0) + read(name).split('\n').length - 1;
  }
  return lines;
};

const countLoaded = (): Record<string, number> => {
  const sources = readSources(['src'], ['.ts', '.tsx']);
  const loads = makeLoads(sources);
  const rules = sources.map((source) => source.path).filter((name) => /\brules\.ts$/.test(name));
  const isOwn = (name: string): boolean => name.startsWith('src/');
  return Object.fromEntries(rules.map((name) => [name, [...loads(name)].filter(isOwn).length]));
};

const countEntered = async (): Promise<number> => {
  const walk = fileURLToPath(new URL('entered.js', import.meta.url));
  const { stdout } = await run(process.execPath, [walk], { cwd: project_root });
  const found = /# (\d+) files in \d+ folders/.exec(stdout);
  if (found === null) throw new Error(`npm run walk failed:\n${stdout}`);
  return Number(found[1]);
};

/** A timer that runs during the prediction adds its files, so a larger count is measured again. */
const countEnteredAtLeast = async (allowed: number): Promise<number> => {
  let least = await countEntered();
  for (let n = 0; n < 2 && least > allowed; n += 1) least = Math.min(least, await countEntered());
  return least;
};

const measure = async (allowed: Budget): Promise<Budget> => ({
  lines: countLines(),
  files_of_a_prediction: await countEnteredAtLeast(allowed.files_of_a_prediction),
  files_loaded_by_rules: countLoaded(),
  readme_words: read('README.md').split(/\s+/).filter(Boolean).length,
});

const figuresOf = (budget: Budget): ReadonlyMap<string, number> =>
  new Map([
    ...Object.entries(budget.lines).map(([name, n]) => [`lines of ${name}`, n] as const),
    ['files that a prediction enters', budget.files_of_a_prediction],
    ...Object.entries(budget.files_loaded_by_rules).map(
      ([name, n]) => [`files that ${name} loads`, n] as const,
    ),
    ['words of README.md', budget.readme_words],
  ]);

const findGrowth = (now: Budget, allowed: Budget): readonly string[] => {
  const limits = figuresOf(allowed);
  return [...figuresOf(now)].flatMap(([name, n]) => {
    const limit = limits.get(name) ?? 0;
    return n <= limit ? [] : [`${name}: ${n}, budget ${limit} (+${n - limit})`];
  });
};

const findLintProblems = async (): Promise<string> => {
  const biome = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
  return run(process.execPath, [biome, 'ci', '--colors=off', '.'], { cwd: project_root }).then(
    () => '',
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
};

const { values } = parseArgs({ options: { 'set-budget': { type: 'boolean', default: false } } });
const allowed = JSON.parse(read('budget.json')) as Budget;
const [problems, now] = await Promise.all([findLintProblems(), measure(allowed)]);
if (values['set-budget']) writeFileSync(budget_file, `${JSON.stringify(now, null, 2)}\n`);
const grown = values['set-budget'] ? [] : findGrowth(now, allowed);
if (problems !== '') console.log(problems);
if (grown.length > 0) {
  console.log(`Larger than budget.json allows:\n  ${grown.join('\n  ')}`);
  console.log(
    'Make it smaller. If a feature needs the space, run `npm run check -- --set-budget` and say in ' +
      'the commit what needs it.',
  );
}
if (problems === '' && grown.length === 0) console.log('Build, lint and budget are in order.');
else process.exitCode = 1;
