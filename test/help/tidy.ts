import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The style of the repository, as far as a program can hold it. */

export interface Source {
  /** Below the root, with slashes: `src/kit/fault.ts`. */
  readonly path: string;
  readonly text: string;
}

/** One line for each place that breaks it. */
export type Rule = (sources: readonly Source[]) => readonly string[];

const root = new URL('../../../', import.meta.url);

/** Every file below the folders with one of the endings. */
export const readSources = (
  folders: readonly string[],
  endings: readonly string[],
): readonly Source[] =>
  folders
    .flatMap((folder) =>
      readdirSync(new URL(folder, root), { recursive: true, withFileTypes: true }),
    )
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => path.relative(root.pathname, path.join(entry.parentPath, entry.name)))
    .sort()
    .map((name) => ({ path: name, text: readFileSync(new URL(name, root), 'utf8') }));

interface Import {
  readonly from: string;
  /** A path below the root for a relative import, else the name of the package. */
  readonly to: string;
  readonly is_package: boolean;
  readonly is_type: boolean;
}

const import_pattern =
  /^(?:import|export)\s(type\s)?(?:[^'";]*?\sfrom\s)?'([^']+)';$|\bimport\('([^']+)'\)/gms;

/** Static and dynamic imports with a literal name, and re-exports. */
const importsIn = (sources: readonly Source[]): readonly Import[] =>
  sources.flatMap(({ path: from, text }) =>
    [...text.matchAll(import_pattern)].map(([, type, named, dynamic]) => {
      const name = named ?? dynamic ?? '';
      const is_package = !name.startsWith('.');
      const file = path.posix.join(path.posix.dirname(from), name).replace(/\.js$/, '.ts');
      return { from, to: is_package ? name : file, is_package, is_type: type !== undefined };
    }),
  );

const isIn = (file: string, places: readonly string[]): boolean =>
  places.some((place) => (place.endsWith('/') ? file.startsWith(place) : file === place));

/** `src/http/page.ts` → `http`; `src/routes.ts` → `routes`. */
const layerOf = (file: string): string => file.split('/')[1]?.replace(/\.m?ts$/, '') ?? '';

const engine = ['kit', 'db', 'redis', 'http', 'socket'];
const features_need = ['config', ...engine, 'web'];
const layers: Readonly<Record<string, readonly string[]>> = {
  config: [],
  kit: ['config'],
  db: ['config', 'kit'],
  redis: ['config', 'kit'],
  http: ['config', 'kit', 'db', 'redis'],
  socket: ['config', 'kit', 'db', 'redis', 'http'],
  web: ['config', 'kit', 'http'],
  features: features_need,
  routes: [...engine, 'features'],
  boot: [],
  client: [],
  process: [...features_need, 'features', 'routes', 'boot'],
  main: ['config', 'process'],
  tools: [...features_need, 'client', 'features', 'routes', 'boot', 'process'],
};

/** kit ← db, redis ← http ← socket ← features ← process ← main. */
export const directionOfLayers: Rule = (sources) =>
  importsIn(sources)
    .filter(({ from, to, is_package }) => !is_package && layerOf(from) !== layerOf(to))
    .filter(({ from, to }) => layers[layerOf(from)]?.includes(layerOf(to)) !== true)
    .map(({ from, to }) => `${from} imports ${to}`);

const featureOf = (file: string): string | undefined => /^src\/features\/([^/]+)\//.exec(file)?.[1];

const betweenFeatures = (sources: readonly Source[]): readonly Import[] =>
  importsIn(sources).filter(({ from, to, is_package }) => {
    const [own, other] = [featureOf(from), is_package ? undefined : featureOf(to)];
    return own !== undefined && other !== undefined && own !== other;
  });

export const featuresThroughTheirIndex: Rule = (sources) =>
  betweenFeatures(sources)
    .filter(({ to }) => to !== `src/features/${featureOf(to)}/index.ts`)
    .map(({ from, to }) => `${from} reaches into ${to}`);

const findCircles = (imports: readonly { readonly from: string; readonly to: string }[]) => {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
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

export const featuresWithoutCircles: Rule = (sources) =>
  findCircles(
    betweenFeatures(sources).map(({ from, to }) => ({
      from: featureOf(from) ?? '',
      to: featureOf(to) ?? '',
    })),
  );

/** Types count as well: whoever reads one file should not have to know the other first. */
export const filesWithoutCircles: Rule = (sources) =>
  findCircles(importsIn(sources).filter(({ is_package }) => !is_package));

/** The parts that a feature's files are named after, and what each may not know of. */
const not_known: Readonly<Record<string, RegExp>> = {
  schema: /^(?:.*store|live|events|routes|index)$/,
  rules: /^(?:.*store|live|events|routes|index)$/,
  store: /^(?:live|events|routes|index)$/,
  live: /^(?:routes|index)$/,
  events: /^(?:routes|index)$/,
};

const partOf = (file: string): string => {
  const name = path.basename(file, '.ts');
  return /(?:^|-)(store|routes)$/.exec(name)?.[1] ?? name;
};

/** schema ← rules, store, live, events ← routes; only the index may know the routes. */
export const directionInFeatures: Rule = (sources) =>
  importsIn(sources)
    .filter(({ from, to, is_package }) => !is_package && featureOf(from) === featureOf(to))
    .filter(({ from }) => featureOf(from) !== undefined)
    .filter(({ from, to }) => {
      const [own, other] = [partOf(from), partOf(to)];
      if (other === 'routes') return !['routes', 'index'].includes(own);
      return not_known[own]?.test(other) === true;
    })
    .map(({ from, to }) => `${from} imports ${to}`);

const impure_packages = /^(?:node:(?!crypto$|url$)|ioredis|postgres|pino|uWebSockets)/;
const impure_files =
  /^src\/(?:db|redis|socket|http\/(?:pipeline|request|limits)|kit\/(?:outbound|log|loop|service))/;
const impure_call =
  /\b(?:Date\.now|performance\.now|new Date\(\)|setTimeout|setInterval|Math\.random|fetch\()/;

/** No I/O and no clock in rules. */
export const pureRules: Rule = (sources) => {
  const rules = sources.filter(({ path: file }) => /^src\/features\/.*\brules\.ts$/.test(file));
  return [
    ...importsIn(rules)
      .filter(({ is_type }) => !is_type)
      .filter(({ to, is_package }) => (is_package ? impure_packages : impure_files).test(to))
      .map(({ from, to }) => `${from} imports ${to}`),
    ...rules
      .filter(({ text }) => impure_call.test(text))
      .map(({ path: file }) => `${file} has a clock or I/O`),
  ];
};

/** Source without its comments; texts stay, because a rule may be about them. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

const commands = ['src/main.ts', 'src/boot/', 'src/tools/'];
const bans: readonly (readonly [what: string, pattern: RegExp, places: readonly string[]])[] = [
  [
    'SQL outside a store',
    /\b(?:sql|tx|db)(?:<[^`]*>)?`|\.unsafe\(/,
    ['src/db/', 'src/process/embedded/', 'src/tools/'],
  ],
  ['process.env outside config', /process\.env\b/, ['src/config.ts', ...commands]],
  ['console outside tools and the supervisor', /\bconsole\./, [...commands, 'src/process/']],
  ['process.exit outside main', /process\.exit\(/, commands],
  [
    "begin, reserve, listen or a cursor of the Postgres client's own",
    /\bclient\.(?:begin|reserve|listen|subscribe)\b|`\.cursor\(/,
    [],
  ],
];

export const bannedInSource: Rule = (sources) =>
  sources.flatMap(({ path: file, text }) => {
    const code = withoutComments(text);
    return bans
      .filter(([what]) => !(what === 'SQL outside a store' && file.endsWith('store.ts')))
      .filter(([, pattern, places]) => !isIn(file, places) && pattern.test(code))
      .map(([what]) => `${file}: ${what}`);
  });

const homes: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['src/http/request.ts'],
  postgres: ['src/db/pool.ts'],
  ioredis: ['src/redis/', 'src/process/embedded/', 'src/tools/'],
};

/** Packages that one place wraps for all others; their types may be used anywhere. */
export const packagesAtHome: Rule = (sources) =>
  importsIn(sources)
    .filter(({ to, is_type }) => homes[to] !== undefined && !(is_type && to !== 'uWebSockets.js'))
    .filter(({ from, to }) => !isIn(from, homes[to] ?? []))
    .map(({ from, to }) => `${from} imports ${to}`);

const findText =
  (pattern: RegExp, problem: string): Rule =>
  (sources) =>
    sources.filter(({ text }) => pattern.test(text)).map(({ path: file }) => `${file} ${problem}`);

export const noSuppressedTypes = findText(
  /@ts-(?:ignore|expect-error|nocheck)\b/,
  'has a suppressed type check',
);

/** Written so that it does not find itself. */
export const noReminders = findText(/\b(?:TO[D]O|FIX[M]E|HA[C]K)\b/, 'has a reminder');

const sleep = /\bsetTimeout\b[^;]*from 'node:timers\/promises'|setTimeout\((?:resolve|r|done)\b/;

/** Tests wait for signals and conditions, never for time to pass. */
export const noSleeps: Rule = (sources) =>
  findText(sleep, 'sleeps')(sources.filter(({ path: file }) => file.endsWith('.test.ts')));

export const kebabCase: Rule = (sources) =>
  sources
    .filter(({ path: file }) => !/^(?:[a-z0-9-]+\/)*[a-z0-9]+(?:[.-][a-z0-9]+)*$/.test(file))
    .map(({ path: file }) => file);

export const shortFiles: Rule = (sources) =>
  sources
    .filter(({ text }) => text.trimEnd().split('\n').length > 600)
    .map(({ path: file }) => `${file} has more than 600 lines`);

/** Words of a private dialect, for which the field has another: cache, transport, job, queue, … */
const banned_words = new Set(
  [
    'shelf shelves door doors ear ears voice voices seat seats told roll rolls lot lots',
    'errand errands courier couriers letter keeper keepers lane lanes marks talk talks',
    'desk desks',
  ].flatMap((words) => words.split(' ')),
);

/** The names in a source: its code without comments, texts and patterns, and its file name. */
const namesIn = ({ path: file, text }: Source): readonly string[] => {
  const code = withoutComments(text)
    .replace(/`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^}]*\})*`/g, (template) =>
      [...template.matchAll(/(?<!\\)\$\{([^}]*)\}/g)].map(([, expression]) => expression).join(' '),
    )
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(/\/(?![/*\s])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/g, "''");
  return [path.basename(file), ...(code.match(/[\p{L}_$][\w$]*/gu) ?? [])];
};

/** Members of the wire and tables, which keep their names. */
const wire_names = new Set(['voices', 'told_tiers']);

const partsOf = (name: string): readonly string[] =>
  name
    .replace(/rollBack/g, 'rollback')
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/);

export const commonWords: Rule = (sources) =>
  sources.flatMap((source) => {
    const names = namesIn(source)
      .filter((name) => !wire_names.has(name))
      .filter((name) => partsOf(name).some((part) => banned_words.has(part)));
    return names.length === 0 ? [] : [`${source.path}: ${[...new Set(names)].join(', ')}`];
  });

export const luaScripts: Rule = (sources) =>
  sources.flatMap(({ path: file, text }) => {
    const header = /^(?:--.*\n)+/m.exec(text)?.[0] ?? '';
    const keys = Number(/-(\d+)\.lua$/.exec(file)?.[1]);
    const used = Math.max(0, ...[...text.matchAll(/KEYS\[(\d+)\]/g)].map(([, n]) => Number(n)));
    return Object.entries({
      'is not named <name>-<keys>.lua': !/\/[a-z]+(?:-[a-z]+)*-(?:\d+|n)\.lua$/.test(file),
      'has no shebang': !text.startsWith('#!lua\n'),
      'does not name its KEYS': !/^-- KEYS/m.test(header),
      'does not name its ARGV': !/^-- ARGV/m.test(header),
      'does not say what it returns': !/^-- returns/m.test(header),
      [`takes ${keys} keys and uses ${used}`]: Number.isInteger(keys) && keys !== used,
    })
      .filter(([, is_broken]) => is_broken)
      .map(([problem]) => `${file} ${problem}`);
  });

export const migrations: Rule = (sources) =>
  sources.flatMap(({ path: file, text }, at) => {
    const number = String(at + 1).padStart(4, '0');
    return Object.entries({
      [`should be number ${number}`]: !path.basename(file).startsWith(`${number}_`),
      'is not named NNNN_what.sql': !/\/\d{4}_[a-z0-9]+(?:_[a-z0-9]+)*\.sql$/.test(file),
      'has no compat note': !/^-- compat: \S.*\.$/m.test(text),
      shouts: /^\s*(?:CREATE|ALTER|INSERT|UPDATE|SELECT)\b/m.test(text),
    })
      .filter(([, is_broken]) => is_broken)
      .map(([problem]) => `${file} ${problem}`);
  });
