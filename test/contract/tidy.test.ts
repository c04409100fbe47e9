import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { t } from 'tap';
import * as tidy from '../help/tidy.js';

/**
 * The style of the repository. Each rule is first shown what breaks it, so that none of them can
 * fall asleep.
 */

const code = ['.ts', '.mts', '.mjs'];
/** Made at build, and held equal to its sources by another test. */
const isWritten = ({ path }: tidy.Source): boolean => path !== 'src/client/wire.ts';
const src = tidy.readSources(['src'], code).filter(isWritten);
const everything = tidy.readSources(['src', 'test', 'bench'], code).filter(isWritten);
const lua = tidy.readSources(['src/redis/lua'], ['.lua']);
const sql = tidy.readSources(['sql'], ['.sql']);

const file = (path: string, ...lines: readonly string[]): tidy.Source => ({
  path,
  text: `${lines.join('\n')}\n`,
});
const importing = (path: string, name: string): tidy.Source =>
  file(path, `import { x } from '${name}';`);
const good_script = ['#!lua', '-- About.', '-- KEYS[1] k', '-- ARGV  none', '-- returns 1'];
const script = (name: string, ...lines: readonly string[]): tidy.Source =>
  file(`src/redis/lua/${name}`, ...lines, 'return KEYS[1]');

interface TidyCase {
  readonly rule: tidy.Rule;
  readonly sources: readonly tidy.Source[];
  /** Sources that break the rule, each by itself, or as a group. */
  readonly broken: readonly (tidy.Source | readonly tidy.Source[])[];
  readonly right?: readonly tidy.Source[];
}

const cases: Readonly<Record<string, TidyCase>> = {
  'kit ← db, redis ← http ← socket ← features ← process ← main': {
    rule: tidy.directionOfLayers,
    sources: src,
    broken: [
      importing('src/kit/a.ts', '../features/b/index.js'),
      importing('src/features/a/b.ts', '../../process/api.js'),
      importing('src/process/a.ts', '../main.js'),
      importing('src/config.ts', './kit/log.js'),
      file('src/kit/a.ts', "export * from '../features/b/index.js';"),
      file('src/kit/a.ts', "const b = await import('../main.js');"),
      file('src/kit/a.ts', 'import {', '  b,', "} from '../process/b.js';"),
    ],
    right: [importing('src/features/a/b.ts', '../../kit/log.js')],
  },
  'a feature uses another only through its index': {
    rule: tidy.featuresThroughTheirIndex,
    sources: src,
    broken: [importing('src/features/a/routes.ts', '../b/store.js')],
  },
  'features use each other in no circle': {
    rule: tidy.featuresWithoutCircles,
    sources: src,
    broken: [
      [
        importing('src/features/a/x.ts', '../b/index.js'),
        importing('src/features/b/x.ts', '../c/index.js'),
        importing('src/features/c/x.ts', '../a/index.js'),
      ],
    ],
  },
  'files import each other in no circle, not even types': {
    rule: tidy.filesWithoutCircles,
    sources: everything,
    broken: [
      [importing('src/kit/a.ts', './b.js'), importing('src/kit/b.ts', './a.js')],
      [
        file('src/kit/a.ts', "import type { X } from './b.js';"),
        importing('src/kit/b.ts', './a.js'),
      ],
    ],
  },
  'in a feature: schema ← rules, store, live, events ← routes': {
    rule: tidy.directionInFeatures,
    sources: src,
    broken: [
      importing('src/features/a/schema.ts', './store.js'),
      importing('src/features/a/rules.ts', './store.js'),
      importing('src/features/a/store.ts', './live.js'),
      importing('src/features/a/live.ts', './routes.js'),
      importing('src/features/a/actions.ts', './routes.js'),
    ],
  },
  'rules have no I/O and no clock': {
    rule: tidy.pureRules,
    sources: src,
    broken: [
      importing('src/features/a/rules.ts', 'node:fs'),
      importing('src/features/a/rules.ts', '../../db/client.js'),
      file('src/features/a/rules.ts', 'const now = Date.now();'),
      file('src/features/a/b/rules.ts', 'const now = new Date();'),
    ],
  },
  'SQL, environment and console stay where they belong': {
    rule: tidy.bannedInSource,
    sources: src,
    broken: [
      file('src/features/a/routes.ts', 'await sql`select 1`;'),
      file('src/features/a/live.ts', 'await tx<{ a: number }[]>`select 1`;'),
      file('src/kit/a.ts', 'const a = process.env.A;'),
      file('src/features/a/b.ts', "console.log('x');"),
      file('src/process/a.ts', 'process.exit(1);'),
      file('src/db/a.ts', 'await client.reserve();'),
      file('src/db/a.ts', 'for await (const rows of tx`select 1`.cursor(10)) {'),
    ],
  },
  'no check of types is suppressed': {
    rule: tidy.noSuppressedTypes,
    sources: src,
    broken: [file('src/kit/a.ts', '// @ts-expect-error', 'const a = 1;')],
  },
  'packages that are wrapped are used through their wrapper': {
    rule: tidy.packagesAtHome,
    sources: src,
    broken: [
      importing('src/http/pipeline.ts', 'uWebSockets.js'),
      file('src/socket/hub.ts', "import type { WebSocket } from 'uWebSockets.js';"),
      importing('src/features/a/live.ts', 'ioredis'),
      importing('src/features/a/store.ts', 'postgres'),
    ],
  },
  'nothing is left for later': {
    rule: tidy.noReminders,
    sources: everything,
    broken: [file('src/kit/a.ts', `// ${['TO', 'DO'].join('')}: later`)],
  },
  'files are named in kebab-case': {
    rule: tidy.kebabCase,
    sources: [...everything, ...lua],
    broken: [file('src/kit/someThing.ts'), file('src/kit/some_thing.ts'), file('src/Kit/a.ts')],
  },
  'files have at most 600 lines': {
    rule: tidy.shortFiles,
    sources: everything,
    broken: [file('src/kit/a.ts', ...Array(601).fill('a'))],
    right: [file('src/kit/a.ts', ...Array(600).fill('a'))],
  },
  'names are those of the field': {
    rule: tidy.commonWords,
    sources: everything,
    broken: [
      file('src/kit/a.ts', 'const makeShelf = 1;'),
      file('src/kit/a.ts', 'const by_lane = 1;'),
      file('src/kit/a.ts', 'interface Keeper {'),
      file('src/kit/a.ts', `const a = \`\${seats} free\`;`),
      file('src/kit/fast-door.ts', 'const a = 1;'),
    ],
    right: [
      file(
        'src/kit/a.ts',
        '// The door is told by ear.',
        "const a = 'a desk';",
        'const b = `talk`;',
      ),
      file('src/kit/a.ts', 'const year = /lots/.test(controller);', 'rollBack();'),
    ],
  },
  'scripts of Redis say what they take and give': {
    rule: tidy.luaScripts,
    sources: lua,
    broken: [
      script('a.lua', ...good_script),
      script('a-2.lua', ...good_script),
      script('a-1.lua', ...good_script.slice(1)),
      ...['KEYS', 'ARGV', 'returns'].map((gone) =>
        script('a-1.lua', ...good_script.filter((line) => !line.startsWith(`-- ${gone}`))),
      ),
    ],
    right: [script('a-b-1.lua', ...good_script)],
  },
  'migrations are numbered without gaps and say what they mean for an older program': {
    rule: tidy.migrations,
    sources: sql,
    broken: [
      file('sql/0002_first.sql', '-- compat: adds.', 'create table a ();'),
      file('sql/0001_First.sql', '-- compat: adds.', 'create table a ();'),
      file('sql/0001_first.sql', 'create table a ();'),
      file('sql/0001_first.sql', '-- compat: adds.', 'CREATE TABLE a ();'),
    ],
  },
  'tests do not sleep': {
    rule: tidy.noSleeps,
    sources: everything.filter(({ path }) => path !== 'test/contract/tidy.test.ts'),
    broken: [
      file('test/a.test.ts', "import { setTimeout as wait } from 'node:timers/promises';"),
      file('test/a.test.ts', 'await new Promise((resolve) => setTimeout(resolve, 100));'),
    ],
  },
};

for (const [name, { rule, sources, broken, right = [] }] of Object.entries(cases)) {
  t.test(name, async (t) => {
    t.ok(sources.length > 0);
    t.same(rule(sources), []);
    for (const some of broken) {
      const found = rule([some].flat());
      t.ok(found.length > 0, `found in ${[some].flat().map(({ text }) => text.slice(0, 60))}`);
    }
    t.same(
      right.flatMap((one) => rule([one])),
      [],
    );
  });
}

t.test('the formatter and the linter have nothing to say', async (t) => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const biome = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
  const options = { cwd: root };
  const problems = await promisify(execFile)(
    process.execPath,
    [biome, 'ci', '--colors=off', '.'],
    options,
  ).then(
    () => '',
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
  t.equal(problems, '');
});
