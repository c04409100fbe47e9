import type { Source } from './sources.js';
import * as tidy from './tidy.js';

/** What breaks each rule of the repository, so that a test can show that the rule sees it. */

export interface TidyCase {
  readonly rule: tidy.Rule;
  readonly scope: 'src' | 'everything' | 'lua' | 'sql' | 'named';
  /** Sources that break the rule, each in one way. */
  readonly broken: readonly (readonly Source[])[];
}

export const file = (path: string, ...lines: readonly string[]): Source => ({
  path,
  text: `${lines.join('\n')}\n`,
});
export const importing = (path: string, name: string): Source =>
  file(path, `import { x } from '${name}';`);
const alone = (...sources: readonly Source[]) => sources.map((source) => [source]);
export const long_text = 'x'.repeat(101);
export const good_script = ['#!lua', '-- About.', '-- KEYS[1] k', '-- ARGV  none', '-- returns 1'];

/** By the sentence that is the name of the test. */
export const tidy_cases: Readonly<Record<string, TidyCase>> = {
  'kit ← features ← roles ← app ← main': {
    rule: tidy.directionOfLayers,
    scope: 'src',
    broken: alone(
      importing('src/kit/a.ts', '../features/b/index.js'),
      importing('src/features/a/b.ts', '../../process/api.js'),
      importing('src/process/a.ts', '../app.js'),
      importing('src/config.ts', './kit/log.js'),
      file('src/kit/a.ts', "export * from '../features/b/index.js';"),
      file('src/kit/a.ts', "const b = await import('../app.js');"),
      file('src/kit/a.ts', 'import {', '  b,', "} from '../roles/b.js';"),
    ),
  },
  'a feature uses another only through its index': {
    rule: tidy.featuresThroughTheirIndex,
    scope: 'src',
    broken: alone(importing('src/features/a/routes.ts', '../b/store.js')),
  },
  'features know each other in no circle': {
    rule: tidy.featuresWithoutCircles,
    scope: 'src',
    broken: [
      [
        importing('src/features/a/x.ts', '../b/index.js'),
        importing('src/features/b/x.ts', '../c/index.js'),
        importing('src/features/c/x.ts', '../a/index.js'),
      ],
    ],
  },
  'modules know each other in no circle': {
    rule: tidy.modulesWithoutCircles,
    scope: 'src',
    broken: [[importing('src/kit/a.ts', './b.js'), importing('src/kit/b.ts', './a.js')]],
  },
  'in a feature: schema ← rules, store, live, events ← routes': {
    rule: tidy.directionInFeatures,
    scope: 'src',
    broken: alone(
      importing('src/features/a/schema.ts', './store.js'),
      importing('src/features/a/rules.ts', './store.js'),
      importing('src/features/a/store.ts', './live.js'),
      importing('src/features/a/live.ts', './routes.js'),
      importing('src/features/a/actions.ts', './routes.js'),
    ),
  },
  'rules have no I/O and no clock': {
    rule: tidy.pureRules,
    scope: 'src',
    broken: alone(
      importing('src/features/a/rules.ts', 'node:fs'),
      importing('src/features/a/rules.ts', '../../db/client.js'),
      file('src/features/a/rules.ts', 'const now = Date.now();'),
      file('src/features/a/b/rules.ts', 'const now = new Date();'),
    ),
  },
  'SQL, environment, console and loose types stay where they belong': {
    rule: tidy.bannedInSource,
    scope: 'src',
    broken: alone(
      file('src/features/a/routes.ts', 'await sql`select 1`;'),
      file('src/features/a/live.ts', 'await tx<{ a: number }[]>`select 1`;'),
      file('src/kit/a.ts', 'const a = process.env.A;'),
      file('src/features/a/b.ts', "console.log('x');"),
      file('src/process/a.ts', 'process.exit(1);'),
      file('src/db/a.ts', 'await client.reserve();'),
      file('src/db/a.ts', 'for await (const rows of tx`select 1`.cursor(10)) {'),
      file('src/kit/a.ts', 'export default 1;'),
      file('src/kit/a.ts', 'const a: any = 1;'),
      file('src/kit/a.ts', 'const a = b as any;'),
      file('src/kit/a.ts', 'const a: Record<string, any> = {};'),
    ),
  },
  'no check of types is suppressed': {
    rule: tidy.noSuppressedTypes,
    scope: 'src',
    broken: alone(file('src/kit/a.ts', '// @ts-expect-error', 'const a = 1;')),
  },
  'packages that are wrapped are used through their wrapper': {
    rule: tidy.packagesAtHome,
    scope: 'src',
    broken: alone(
      importing('src/http/mount.ts', 'uWebSockets.js'),
      file('src/socket/hub.ts', "import type { WebSocket } from 'uWebSockets.js';"),
      importing('src/features/a/live.ts', 'ioredis'),
      importing('src/features/a/store.ts', 'postgres'),
    ),
  },
  'nothing is left for later': {
    rule: tidy.noReminders,
    scope: 'everything',
    broken: alone(file('src/kit/a.ts', `// ${['TO', 'DO'].join('')}: later`)),
  },
  'files are named in kebab-case': {
    rule: tidy.kebabCase,
    scope: 'named',
    broken: alone(
      file('src/kit/someThing.ts'),
      file('src/kit/some_thing.ts'),
      file('src/Kit/a.ts'),
    ),
  },
  'files have at most 600 lines': {
    rule: tidy.shortFiles,
    scope: 'everything',
    broken: alone(file('src/kit/a.ts', ...Array(601).fill('a'))),
  },
  'lines have at most 100 characters': {
    rule: tidy.shortLines,
    scope: 'everything',
    broken: alone(file('src/kit/a.ts', long_text), file('src/kit/a.ts', `// ${long_text}`)),
  },
  'scripts of Redis say what they take and give': {
    rule: tidy.luaScripts,
    scope: 'lua',
    broken: alone(
      file('src/redis/lua/a.lua', ...good_script, 'return KEYS[1]'),
      file('src/redis/lua/a-2.lua', ...good_script, 'return KEYS[1]'),
      file('src/redis/lua/a-1.lua', ...good_script.slice(1), 'return KEYS[1]'),
      ...[1, 2, 3].map((gone) =>
        file(
          'src/redis/lua/a-1.lua',
          ...good_script.filter((_, n) => n !== gone + 1),
          'return KEYS[1]',
        ),
      ),
      file('src/redis/lua/a-1.lua', ...good_script, ...Array(75).fill('-- more'), 'return KEYS[1]'),
    ),
  },
  'migrations are numbered without gaps and say what they mean for an older program': {
    rule: tidy.migrations,
    scope: 'sql',
    broken: alone(
      file('sql/0002_first.sql', '-- compat: adds.', 'create table a ();'),
      file('sql/0001_First.sql', '-- compat: adds.', 'create table a ();'),
      file('sql/0001_first.sql', 'create table a ();'),
      file('sql/0001_first.sql', '-- compat: adds.', 'CREATE TABLE a ();'),
    ),
  },
  'tests do not sleep': {
    rule: tidy.noSleeps,
    scope: 'everything',
    broken: alone(
      file('test/a.test.ts', "import { setTimeout as wait } from 'node:timers/promises';"),
      file('test/a.test.ts', 'await new Promise((resolve) => setTimeout(resolve, 100));'),
    ),
  },
};
