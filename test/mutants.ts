import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { makeRandom } from './help/long-run.js';
import {
  makeTemplate,
  makeTestFolder,
  project_root,
  removeTestFolder,
  startOwnStores,
  template_name,
} from './help/own-stores.js';
import { startFiles } from './help/run-files.js';

/**
 * `npm run mutants [-- --seed N] [--count N] [--only TEXT] [--list]`: does the suite notice bugs?
 *
 * Draws single-edit bugs (a changed comparison, a dropped clause, a swapped argument, a removed
 * await, an off-by-one) in the compiled code of the areas below. Puts each bug alone into a copy of
 * the checkout, and runs the tests of its area until one fails. Prints the test that noticed each
 * bug, and exits 1 if a bug survives. Not every survivor is a gap: some edits have no effect.
 */

interface Area {
  readonly name: string;
  /** The area's source files, as `src/…`. */
  readonly holds: RegExp;
  /** Path prefixes of the area's tests. */
  readonly tests: readonly string[];
}

const feature = (name: string, holds: string, ...more: readonly string[]): Area => ({
  name: `${name}: ${holds}`,
  holds: new RegExp(`^src/features/${name}/(?:${holds})\\.ts$`),
  tests: [`features/${name}/`, ...more],
});

const areas: readonly Area[] = [
  ...['leaderboards', 'questions', 'resolution'].map((name) => feature(name, '.*rules|.*store')),
  // Retention deletes old snapshots.
  feature('consensus', '.*rules|.*store', 'features/retention/'),
  feature('mail', 'store|mailer'),
  // Moderators suspend and hide through these stores.
  feature('accounts', '.*rules|.*store', 'features/moderation/'),
  feature('comments', '.*rules|.*store', 'features/moderation/'),
  // Registrations and settlements move points.
  feature('points', '.*rules|.*store', 'features/resolution/', 'features/accounts/registration'),
  // The consensus reads the shares that predictions give to options.
  feature(
    'predictions',
    'placing|placing-store|originality|gates|reasoning|citations|distribution|forecast-input|cdf-input|answering|store',
    ...['features/consensus/options', 'features/moderation/'],
  ),
  feature('events', 'relay|store|follow|filter'),
  feature('webhooks', '.*store|.*rules|sending|signing|health'),
  feature('exports', '.*store|.*rules|exports'),
  {
    name: 'limits',
    holds: /^src\/http\/limits\.ts$/,
    tests: ['http/limits', 'features/limits/', 'contract/docs-etags', 'fault/redis-nodes'],
  },
  { name: 'group commit', holds: /^src\/db\/group-commit\.ts$/, tests: ['db/group-commit'] },
  { name: 'socket', holds: /^src\/socket\/(?:hub|session|subscribe)\.ts$/, tests: ['socket/'] },
];

interface Edit {
  readonly kind: string;
  readonly pattern: RegExp;
  replace(found: string, ...groups: string[]): string;
}

const flips: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
};

const edits: readonly Edit[] = [
  {
    kind: 'comparison',
    pattern: /(?<= )(?:===|!==|<=?|>=?|&&|\|\|)(?= )/g,
    replace: (found) => flips[found] ?? found,
  },
  { kind: 'off by one', pattern: / [+-] 1\b/g, replace: () => '' },
  { kind: 'removed await', pattern: /(?<!for )\bawait (?!import)/g, replace: () => '' },
  { kind: 'dropped clause', pattern: /^\s+and [^()`]+$/g, replace: () => '' },
  {
    kind: 'swapped argument',
    // The order of the arguments of Math.max and Math.min does not matter.
    pattern: /(?<=\b(?<!Math\.)[a-z]\w*\()([a-z_]\w*), ([a-z_]\w*)(?=[,)])/g,
    replace: (_, first = '', second = '') => `${second}, ${first}`,
  },
];

interface Mutant {
  readonly area: Area;
  /** Relative to the root: `dist/src/…js`. */
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  readonly before: string;
  readonly after: string;
}

const isCode = (line: string): boolean => !/^\s*(?:\/\/|\/?\*|import |export \{|$)/.test(line);

const mutantsOf = (area: Area, file: string): Mutant[] =>
  readFileSync(path.join(project_root, file), 'utf8')
    .split('\n')
    .flatMap((before, at) =>
      !isCode(before)
        ? []
        : edits.flatMap(({ kind, pattern, replace }) =>
            [...before.matchAll(pattern)].map((found) => {
              const end = found.index + found[0].length;
              const made = replace(found[0], ...found.slice(1));
              const after = before.slice(0, found.index) + made + before.slice(end);
              return { area, file, line: at + 1, kind, before, after };
            }),
          ),
    );

/** Draws from the areas in turn, with a random kind of edit if the area has one. */
const draw = (seed: number, count: number, only: string): readonly Mutant[] => {
  const random = makeRandom(seed);
  const sources = readdirSync(path.join(project_root, 'src'), {
    recursive: true,
    encoding: 'utf8',
  });
  const by_area = areas.map((area) =>
    sources
      .map((name) => `src/${name}`)
      .filter((name) => area.holds.test(name) && name.includes(only))
      .sort()
      .flatMap((name) => mutantsOf(area, `dist/${name.replace(/ts$/, 'js')}`)),
  );
  const drawn: Mutant[] = [];
  for (let turn = 0; drawn.length < count && by_area.some(({ length }) => length > 0); turn += 1) {
    const left = by_area[turn % by_area.length] ?? [];
    const kind = edits[Math.floor(random() * edits.length)]?.kind;
    const of_kind = left.filter((mutant) => mutant.kind === kind);
    const from = of_kind.length > 0 ? of_kind : left;
    const one = from[Math.floor(random() * from.length)];
    if (one === undefined) continue;
    left.splice(left.indexOf(one), 1);
    drawn.push(one);
  }
  return drawn;
};

/** A copy of the checkout in which compiled files may be changed. */
const makeCopy = (): string => {
  const folder = makeTestFolder();
  for (const name of readdirSync(project_root)) {
    if (name === 'dist')
      cpSync(path.join(project_root, name), path.join(folder, name), { recursive: true });
    else if (!name.startsWith('.'))
      symlinkSync(path.join(project_root, name), path.join(folder, name));
  }
  mkdirSync(path.join(folder, '.data', 'test'), { recursive: true });
  return folder;
};

/** The test files of an area. The file named after the source comes first. */
const testsOf = ({ area, file }: Mutant): readonly string[] => {
  const name = path.basename(file, '.js');
  const folder = path.join(project_root, 'dist', 'test');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((one) => one.endsWith('.test.js') && area.tests.some((start) => one.startsWith(start)))
    .sort();
  const isOwn = (one: string): boolean => path.basename(one).startsWith(name);
  return [...files.filter(isOwn), ...files.filter((one) => !isOwn(one))].map(
    (one) => `dist/test/${one}`,
  );
};

/** The first test that fails, and so notices the bug. Null if all pass. */
const runTests = async (mutant: Mutant, root: string, env: NodeJS.ProcessEnv) => {
  const lines: string[] = [];
  const running = startFiles(testsOf(mutant), {
    root,
    at_once: 1,
    env: { ...env, TAP_BAIL: '1' },
    file_ms: 150_000,
    shows_comments: false,
    say(line) {
      lines.push(line);
      if (line.startsWith('FAIL')) running.stop();
    },
  });
  await running.result;
  const at = lines.findIndex((line) => line.startsWith('FAIL'));
  if (at === -1) return null;
  const file = lines[at]?.split(/\s+/)[1];
  const failed = lines.slice(at).find((line) => /^ *not ok /.test(line)) ?? 'its process ended';
  return `${file}: ${failed.trim()}`;
};

const tryMutant = async (mutant: Mutant, root: string, env: NodeJS.ProcessEnv) => {
  const place = path.join(root, mutant.file);
  const whole = readFileSync(place, 'utf8');
  const lines = whole.split('\n');
  lines[mutant.line - 1] = mutant.after;
  writeFileSync(place, lines.join('\n'));
  try {
    return await runTests(mutant, root, env);
  } finally {
    writeFileSync(place, whole);
  }
};

const show = ({ file, line, kind, before, after }: Mutant): string =>
  `${file.replace('dist/', '')}:${line} ${kind}\n    - ${before.trim()}\n    + ${after.trim()}`;

const run = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      count: { type: 'string', default: '60' },
      only: { type: 'string', default: '' },
      list: { type: 'boolean', default: false },
    },
  });
  const mutants = draw(Number(values.seed), Number(values.count), values.only);
  if (values.list) return console.log(mutants.map(show).join('\n'));
  const stores = await startOwnStores(false);
  const waiting = [...mutants.entries()];
  const survivors: Mutant[] = [];
  const work = async (env: NodeJS.ProcessEnv): Promise<void> => {
    const root = makeCopy();
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [n, mutant] = next;
        const failed = await tryMutant(mutant, root, env);
        if (failed === null) survivors.push(mutant);
        console.log(`${n + 1}. ${show(mutant)}\n    ${failed ?? 'SURVIVED'}`);
      }
    } finally {
      removeTestFolder(root);
    }
  };
  try {
    await makeTemplate(stores.postgres.admin_url);
    const env = {
      TEST_DATABASE_URL: stores.postgres.admin_url,
      TEST_REDIS_URL: stores.redis.url,
      TEST_TEMPLATE: template_name,
    };
    await Promise.all(Array.from({ length: availableParallelism() }, () => work(env)));
  } finally {
    await stores.stop();
  }
  console.log(`seed ${values.seed}: ${mutants.length} bugs, ${survivors.length} survived`);
  if (survivors.length > 0) process.exitCode = 1;
};

await run();
