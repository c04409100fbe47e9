import path from 'node:path';
import { type Import, importsIn, makeLoads, readSources, type Source } from '../help/imports.js';
import { t } from '../help/tap.js';

/**
 * The style of the repository, as far as a program can check it. Biome checks the length and names
 * of files (`npm run check`). Each rule is also tested on sources that break it.
 */

/** Returns one line for each violation. */
type Rule = (sources: readonly Source[]) => readonly string[];

const code = ['.ts', '.tsx', '.mts', '.mjs'];
const src = readSources(['src'], code);
const client = readSources(['clients/typescript/src'], code);
const everything = readSources(['src', 'clients/typescript/src', 'test', 'bench'], code);

const file = (name: string, ...lines: readonly string[]): Source => ({
  path: name,
  text: `${lines.join('\n')}\n`,
});
const importing = (from: string, name: string): Source =>
  file(from, `import { x } from '${name}';`);

/** `broken` lists sources that break the rule, each alone or as a group. */
const check = (
  name: string,
  rule: Rule,
  sources: readonly Source[],
  broken: readonly (Source | readonly Source[])[],
): void => {
  t.test(name, async (t) => {
    t.ok(sources.length > 0);
    t.same(rule(sources), []);
    for (const some of broken.map((one) => [one].flat())) {
      t.ok(rule(some).length > 0, `found in ${some.map(({ text }) => text.slice(0, 60))}`);
    }
  });
};

/** A rule that reports imports for which `isRefused` is true. */
const imports =
  (isRefused: (one: Import) => boolean): Rule =>
  (sources) =>
    importsIn(sources)
      .filter(isRefused)
      .map(({ from, to }) => `${from} imports ${to}`);

const isIn = (name: string, places: readonly string[]): boolean =>
  places.some((place) => (place.endsWith('/') ? name.startsWith(place) : name === place));

/** `src/http/page.ts` → `http`; `src/routes.ts` → `routes`; `clients/typescript/src/…` → `client`. */
const layerOf = (name: string): string =>
  name.startsWith('clients/') ? 'client' : (name.split('/')[1]?.replace(/\.m?ts$/, '') ?? '');

const engine = ['kit', 'db', 'redis', 'http', 'socket'];
const features_need = ['config', ...engine];
const layers: Readonly<Record<string, readonly string[]>> = {
  config: ['boot'],
  kit: ['config'],
  db: ['config', 'kit'],
  redis: ['config', 'kit'],
  http: ['config', 'kit', 'db', 'redis'],
  socket: ['config', 'kit', 'db', 'redis', 'http'],
  features: features_need,
  web: [...features_need, 'features', 'client'],
  routes: [...engine, 'features'],
  boot: [],
  client: [],
  process: [...features_need, 'features', 'web', 'routes', 'boot'],
  main: ['config', 'process', 'tools'],
  tools: [...features_need, 'client', 'features', 'routes', 'boot', 'process'],
};

check(
  'kit ← db, redis ← http ← socket ← features ← web ← process ← tools ← main',
  imports(({ from, to, is_package }) => {
    const [own, other] = [layerOf(from), layerOf(to)];
    return !is_package && own !== other && layers[own]?.includes(other) !== true;
  }),
  [...src, ...client],
  [
    importing('src/features/a/b.ts', '#client/calls.js'),
    importing('clients/typescript/src/a.ts', '../../../src/kit/fault.js'),
    importing('src/kit/a.ts', '../features/b/index.js'),
    importing('src/features/a/b.ts', '../../process/api.js'),
    importing('src/config.ts', './kit/log.js'),
    file('src/kit/a.ts', "export * from '../features/b/index.js';"),
    file('src/kit/a.ts', "const b = await import('../main.js');"),
    file('src/kit/a.ts', 'import {', '  b,', "} from '../process/b.js';"),
  ],
);

const featureOf = (name: string): string | undefined => /^src\/features\/([^/]+)\//.exec(name)?.[1];

const betweenFeatures = (sources: readonly Source[]): readonly Import[] =>
  importsIn(sources).filter(({ from, to, is_package }) => {
    const [own, other] = [featureOf(from), is_package ? undefined : featureOf(to)];
    return own !== undefined && other !== undefined && own !== other;
  });

/** Rules must not load these: stores, the engine, connections, and code that serves or sends. */
const impure_packages =
  /^(?:node:(?!crypto$|url$|util$|buffer$)|ioredis$|postgres$|pino$|uWebSockets|undici$|nodemailer$)/;
const impure_files =
  /store\.ts$|routes\.ts$|^src\/(?:db|redis|socket\/(?!frames|recent)|web|process)\/?|^src\/http\/(?:uws|pipeline|limits|idempotency|response-cache)\.ts$|^src\/kit\/(?:outbound|log|loop|service|metrics)/;
const isImpure = (name: string): boolean =>
  name.startsWith('src/') ? impure_files.test(name) : impure_packages.test(name);

check(
  'a feature uses another through its index, or directly a file that loads no store',
  (sources) => {
    const loads = makeLoads(sources);
    return betweenFeatures(sources)
      .filter(({ to }) => to !== `src/features/${featureOf(to)}/index.ts`)
      .filter(({ to }) => [...loads(to)].some(isImpure))
      .map(({ from, to }) => `${from} reaches into ${to}`);
  },
  src,
  [
    importing('src/features/a/routes.ts', '../b/store.js'),
    [
      importing('src/features/a/rules.ts', '../b/posting.js'),
      importing('src/features/b/posting.ts', './store.js'),
    ],
  ],
);

const isIndex = (name: string): boolean => /^src\/features\/[^/]+\/index\.ts$/.test(name);

check(
  'an index exports no routes, and nothing that can be imported without a store',
  (sources) => {
    const loads = makeLoads(sources);
    return importsIn(sources)
      .filter(({ from, is_type }) => isIndex(from) && !is_type)
      .filter(({ to }) => /routes\.ts$/.test(to) || ![...loads(to)].some(isImpure))
      .map(({ from, to }) => `${from} exports ${to}`);
  },
  src,
  [
    file('src/features/a/index.ts', "export { routes } from './routes.js';"),
    file('src/features/a/index.ts', "export { isOpen } from './rules.js';"),
  ],
);

check(
  'texts are normalised in kit/text.ts alone, which refuses what takes quadratic time',
  (sources) =>
    sources
      .filter(({ path, text }) => path !== 'src/kit/text.ts' && /\.normalize\(/.test(text))
      .map(({ path }) => `${path} normalises`),
  src.filter(({ path }) => !path.startsWith('src/web/browser/')),
  [file('src/features/a/rules.ts', "const key = name.normalize('NFKC');")],
);

const findCircles = (edges: readonly { readonly from: string; readonly to: string }[]) => {
  const targets = new Map<string, string[]>();
  for (const { from, to } of edges) targets.set(from, [...(targets.get(from) ?? []), to]);
  const reachesItself = (start: string): boolean => {
    const seen = new Set([start]);
    for (const node of seen) {
      for (const to of targets.get(node) ?? []) {
        if (to === start) return true;
        seen.add(to);
      }
    }
    return false;
  };
  return [...targets.keys()].filter(reachesItself).map((node) => `${node} is in a circle`);
};

check(
  'features do not use each other in a circle',
  (sources) =>
    findCircles(
      betweenFeatures(sources).map(({ from, to }) => ({
        from: featureOf(from) ?? '',
        to: featureOf(to) ?? '',
      })),
    ),
  src,
  [
    [
      importing('src/features/a/x.ts', '../b/index.js'),
      importing('src/features/b/x.ts', '../c/index.js'),
      importing('src/features/c/x.ts', '../a/index.js'),
    ],
  ],
);

check(
  'files do not import each other in a circle, not even types',
  (sources) => findCircles(importsIn(sources).filter(({ is_package }) => !is_package)),
  everything,
  [[file('src/kit/a.ts', "import type { X } from './b.js';"), importing('src/kit/b.ts', './a.js')]],
);

/** The parts that a feature's files are named after, with the parts that each must not import. */
const not_known: Readonly<Record<string, RegExp>> = {
  schema: /^(?:.*store|live|events|routes|index)$/,
  rules: /^(?:.*store|live|events|routes|index)$/,
  store: /^(?:live|events|routes|index)$/,
  live: /^(?:routes|index)$/,
  events: /^(?:routes|index)$/,
};

const partOf = (name: string): string => {
  const base = path.basename(name, '.ts');
  return /(?:^|-)(store|routes)$/.exec(base)?.[1] ?? base;
};

check(
  'in a feature: schema ← rules, store, live, events ← routes',
  imports(({ from, to, is_package }) => {
    if (is_package || featureOf(from) === undefined || featureOf(from) !== featureOf(to)) {
      return false;
    }
    const [own, other] = [partOf(from), partOf(to)];
    if (other === 'routes') return own !== 'routes';
    return not_known[own]?.test(other) === true;
  }),
  src,
  [
    importing('src/features/a/schema.ts', './store.js'),
    importing('src/features/a/store.ts', './live.js'),
    importing('src/features/a/actions.ts', './routes.js'),
  ],
);

const rules_file = /^src\/features\/.*\brules\.ts$/;
const max_files_of_rules = 15;

check(
  'rules, schemas and faults load neither the engine nor a store',
  (sources) => {
    const loads = makeLoads(sources);
    return sources
      .filter(({ path: at }) => /^src\/features\/.*\b(?:rules|schema|faults)\.ts$/.test(at))
      .flatMap(({ path: at }) =>
        [...loads(at)].filter(isImpure).map((one) => `${at} loads ${one}`),
      );
  },
  src,
  [
    importing('src/features/a/rules.ts', 'node:fs'),
    importing('src/features/a/schema.ts', '../../db/client.js'),
    [
      importing('src/features/a/rules.ts', '../../kit/a.js'),
      importing('src/kit/a.ts', 'uWebSockets.js'),
    ],
  ],
);

check(
  `rules load at most ${max_files_of_rules} files`,
  (sources) => {
    const loads = makeLoads(sources);
    return sources
      .filter(({ path: at }) => rules_file.test(at))
      .map(({ path: at }) => [at, [...loads(at)].filter((one) => one.startsWith('src/'))] as const)
      .filter(([, files]) => files.length > max_files_of_rules)
      .map(([at, files]) => `${at} loads ${files.length} files`);
  },
  src,
  [
    file(
      'src/features/a/rules.ts',
      ...Array.from({ length: max_files_of_rules }, (_, n) => `import '../../kit/k${n}.js';`),
    ),
  ],
);

check(
  'relay, signer and timer load no route, page, engine or socket',
  (sources) => {
    const loads = makeLoads(sources);
    return ['relay', 'signer', 'timer'].flatMap((role) =>
      [...loads(`src/process/${role}.ts`)]
        .filter((name) =>
          // `frames` has only schemas and faults, and `recent` a ring buffer: both are allowed.
          /^uWebSockets|^src\/web\/|^src\/socket\/(?!frames|recent)|^src\/http\/(?:uws|pipeline)|routes\.ts$/.test(
            name,
          ),
        )
        .map((name) => `the ${role} loads ${name}`),
    );
  },
  src,
  [
    [
      importing('src/process/relay.ts', '../features/a/index.js'),
      importing('src/features/a/index.ts', './routes.js'),
    ],
    importing('src/process/timer.ts', '../http/uws.js'),
    importing('src/process/signer.ts', '../socket/hub.js'),
  ],
);

const homes: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['src/http/uws.ts'],
  postgres: ['src/db/pool.ts'],
  ioredis: ['src/redis/', 'src/process/embedded/', 'src/tools/'],
};

check(
  'packages that are wrapped are used through their wrapper; other types may be used anywhere',
  imports(
    ({ from, to, is_type }) =>
      homes[to] !== undefined &&
      !(is_type && to !== 'uWebSockets.js') &&
      !isIn(from, homes[to] ?? []),
  ),
  src,
  [
    importing('src/http/page.ts', 'uWebSockets.js'),
    file('src/socket/hub.ts', "import type { WebSocket } from 'uWebSockets.js';"),
    importing('src/features/a/live.ts', 'ioredis'),
  ],
);

/** Source without comments. Strings stay, because a rule may be about them. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

const commands = ['src/main.ts', 'src/boot/', 'src/tools/'];
const places = {
  sql: ['src/db/', 'src/process/embedded/', 'src/tools/'],
  env: ['src/config.ts', ...commands],
  console: [...commands, 'src/process/'],
};

/** Patterns that may occur only in files whose path `isAllowed` accepts. */
const bans: readonly (readonly [
  name: string,
  pattern: RegExp,
  broken: readonly string[],
  isAllowed: (name: string) => boolean,
])[] = [
  [
    'SQL stands in stores',
    /\b(?:sql|tx|db)(?:<[^`]*>)?`|\.unsafe\(/,
    ['await sql`select 1`;', 'await tx<{ a: number }[]>`select 1`;'],
    (name) => name.endsWith('store.ts') || isIn(name, places.sql),
  ],
  [
    'the environment is read by the config',
    /process\.env\b/,
    ['const a = process.env.A;'],
    (name) => isIn(name, places.env),
  ],
  [
    'only tools and the supervisor write to the console',
    /\bconsole\./,
    ["console.log('x');"],
    (name) => isIn(name, places.console),
  ],
  ['only commands exit', /process\.exit\(/, ['process.exit(1);'], (name) => isIn(name, commands)],
  [
    'nobody uses begin, reserve, listen or a cursor of the Postgres client itself',
    /\bclient\.(?:begin|reserve|listen|subscribe)\b|`\.cursor\(/,
    ['await client.reserve();', 'for await (const rows of tx`select 1`.cursor(10)) {'],
    () => false,
  ],
  [
    'rules read no clock and draw no random numbers',
    /\b(?:Date\.now|performance\.now|new Date\(\)|setTimeout|setInterval|Math\.random|fetch\()/,
    ['const now = Date.now();', 'const now = new Date();'],
    (name) => !rules_file.test(name) && name !== 'src/features/a/b.ts',
  ],
];

for (const [name, pattern, broken, isAllowed] of bans) {
  const rule: Rule = (sources) =>
    sources
      .filter(({ path: at, text }) => !isAllowed(at) && pattern.test(withoutComments(text)))
      .map(({ path: at }) => at);
  check(
    name,
    rule,
    src,
    broken.map((line) => file('src/features/a/b.ts', line)),
  );
}

const findText =
  (pattern: RegExp): Rule =>
  (sources) =>
    sources.filter(({ text }) => pattern.test(text)).map(({ path: at }) => at);

check('no check of types is suppressed', findText(/@ts-(?:ignore|expect-error|nocheck)\b/), src, [
  file('src/kit/a.ts', '// @ts-expect-error', 'const a = 1;'),
]);

// Written so that the pattern does not match itself.
check('nothing is left for later', findText(/\b(?:TO[D]O|FIX[M]E|HA[C]K)\b/), everything, [
  file('src/kit/a.ts', `// ${['TO', 'DO'].join('')}: later`),
]);

/** Tests wait for signals and conditions, never for time to pass. */
check(
  'tests do not sleep',
  findText(/\bsetTimeout\b[^;]*from 'node:timers\/promises'|setTimeout\((?:resolve|r|done)\b/),
  everything.filter(
    ({ path: at }) => at.endsWith('.test.ts') && at !== 'test/contract/tidy.test.ts',
  ),
  [
    file('test/a.test.ts', "import { setTimeout as wait } from 'node:timers/promises';"),
    file('test/a.test.ts', 'await new Promise((resolve) => setTimeout(resolve, 100));'),
  ],
);

/** Words of a private dialect. Use the field's words instead: cache, transport, job, queue, … */
const banned_words = new Set(
  [
    'shelf shelves door doors ear ears voice voices seat seats told roll rolls lot lots',
    'errand errands courier couriers letter keeper keepers lane lanes marks talk talks',
    'desk desks',
  ].flatMap((words) => words.split(' ')),
);

/** The names in a source without comments, strings and patterns, and its file name. */
const namesIn = ({ path: at, text }: Source): readonly string[] => {
  const names = withoutComments(text)
    .replace(/`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^}]*\})*`/g, (template) =>
      [...template.matchAll(/(?<!\\)\$\{([^}]*)\}/g)].map(([, expression]) => expression).join(' '),
    )
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(/\/(?![/*\s])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/g, "''")
    .match(/[\p{L}_$][\w$]*/gu);
  return [path.basename(at), ...(names ?? [])];
};

/** Fields of the wire and of tables, which keep their names. */
const wire_names = new Set(['voices', 'told_tiers']);

const partsOf = (name: string): readonly string[] =>
  name
    .replace(/rollBack/g, 'rollback')
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/);

check(
  'names are those of the field',
  (sources) =>
    sources.flatMap((source) => {
      const names = namesIn(source)
        .filter((name) => !wire_names.has(name))
        .filter((name) => partsOf(name).some((part) => banned_words.has(part)));
      const found = [...new Set(names)].join(', ');
      return names.length === 0 ? [] : [`${source.path}: say another word for ${found}`];
    }),
  everything,
  [
    file('src/kit/a.ts', 'const makeShelf = 1;'),
    file('src/kit/a.ts', 'const by_lane = 1;'),
    file('src/kit/a.ts', `const a = \`\${seats} free\`;`),
    file('src/kit/fast-door.ts', 'const a = 1;'),
  ],
);

/** Reports every problem that a file has. */
const findProblems =
  (problemsOf: (source: Source, at: number) => Readonly<Record<string, boolean>>): Rule =>
  (sources) =>
    sources.flatMap((source, at) =>
      Object.entries(problemsOf(source, at))
        .filter(([, is_broken]) => is_broken)
        .map(([problem]) => `${source.path} ${problem}`),
    );

const good_script = ['#!lua', '-- About.', '-- KEYS[1] k', '-- ARGV  none', '-- returns 1'];
const script = (name: string, lines: readonly string[]): Source =>
  file(`src/redis/lua/${name}`, ...lines, 'return KEYS[1]');

check(
  'scripts of Redis say what they take and return',
  findProblems(({ path: at, text }) => {
    const header = /^(?:--.*\n)+/m.exec(text)?.[0] ?? '';
    const keys = Number(/-(\d+)\.lua$/.exec(at)?.[1]);
    const used = Math.max(0, ...[...text.matchAll(/KEYS\[(\d+)\]/g)].map(([, n]) => Number(n)));
    return {
      'is not named <name>-<keys>.lua': !/\/[a-z]+(?:-[a-z]+)*-(?:\d+|n)\.lua$/.test(at),
      'has no shebang': !text.startsWith('#!lua\n'),
      'does not name its KEYS': !/^-- KEYS/m.test(header),
      'does not name its ARGV': !/^-- ARGV/m.test(header),
      'does not say what it returns': !/^-- returns/m.test(header),
      [`takes ${keys} keys and uses ${used}`]: Number.isInteger(keys) && keys !== used,
    };
  }),
  readSources(['src/redis/lua'], ['.lua']),
  [
    script('a.lua', good_script),
    script('a-2.lua', good_script),
    ...good_script.flatMap((_, n) =>
      n === 1 ? [] : script('a-1.lua', good_script.toSpliced(n, 1)),
    ),
  ],
);

check(
  'migrations are numbered without gaps and say what they mean for an older program',
  findProblems(({ path: at, text }, n) => {
    const number = String(n + 1).padStart(4, '0');
    return {
      [`should be number ${number}`]: !path.basename(at).startsWith(`${number}_`),
      'is not named NNNN_what.sql': !/\/\d{4}_[a-z0-9]+(?:_[a-z0-9]+)*\.sql$/.test(at),
      'has no compat note': !/^-- compat: \S.*\.$/m.test(text),
      shouts: /^\s*(?:CREATE|ALTER|INSERT|UPDATE|SELECT)\b/m.test(text),
    };
  }),
  readSources(['sql'], ['.sql']),
  [
    file('sql/0002_first.sql', '-- compat: adds.', 'create table a ();'),
    file('sql/0001_First.sql', '-- compat: adds.', 'create table a ();'),
    file('sql/0001_first.sql', 'create table a ();'),
    file('sql/0001_first.sql', '-- compat: adds.', 'CREATE TABLE a ();'),
  ],
);
