import { edgesOf, findCircles, type Import, importsOf, type Source } from './sources.js';

/** The rules of the repository that a program can hold. Each gives one line per violation. */

export type Rule = (sources: readonly Source[]) => readonly string[];

const isIn = (path: string, places: readonly string[]): boolean =>
  places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place));

const importsIn = (sources: readonly Source[]): readonly Import[] => sources.flatMap(importsOf);

/** `src/http/mount.ts` → `kit`; `src/routes.ts` → `routes`. */
const layerOf = (path: string): string => path.split('/')[1]?.replace(/\.m?ts$/, '') ?? '';

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
    .filter(({ is_package }) => !is_package)
    .filter(({ from, to }) => layerOf(from) !== layerOf(to))
    .filter(({ from, to }) => layers[layerOf(from)]?.includes(layerOf(to)) !== true)
    .map(({ from, to }) => `${from} imports ${to}`);

const featureOf = (path: string): string | null =>
  /^src\/features\/([^/]+)\//.exec(path)?.[1] ?? null;

const between = (sources: readonly Source[]): readonly Import[] =>
  importsIn(sources).filter(({ from, to, is_package }) => {
    const target = is_package ? null : featureOf(to);
    return featureOf(from) !== null && target !== null && featureOf(from) !== target;
  });

export const featuresThroughTheirIndex: Rule = (sources) =>
  between(sources)
    .filter(({ to }) => to !== `src/features/${featureOf(to)}/index.ts`)
    .map(({ from, to }) => `${from} reaches into ${to}`);

export const featuresWithoutCircles: Rule = (sources) => {
  const edges = between(sources).map((one) => ({
    ...one,
    from: featureOf(one.from) ?? '',
    to: featureOf(one.to) ?? '',
  }));
  return findCircles(edgesOf(edges)).map((circle) => `a circle: ${circle.join(', ')}`);
};

export const modulesWithoutCircles: Rule = (sources) =>
  findCircles(
    edgesOf(importsIn(sources).filter(({ is_package, is_type }) => !is_package && !is_type)),
  ).map((circle) => `a circle: ${circle.join(', ')}`);

/** The parts that a feature's files are named after, and what each may not know of. */
const not_known: Readonly<Record<string, RegExp>> = {
  schema: /^(?:.*store|live|events|routes|index)$/,
  faults: /^(?:.*store|live|events|routes|index)$/,
  rules: /^(?:.*store|live|events|routes|index)$/,
  store: /^(?:live|events|routes|index)$/,
  live: /^(?:routes|index)$/,
  events: /^(?:routes|index)$/,
};

const partOf = (path: string): string => {
  const name = path.split('/').at(-1)?.replace(/\.ts$/, '') ?? '';
  return /(?:^|-)(store|routes)$/.exec(name)?.[1] ?? name;
};

/** schema ← rules, store, live, events ← routes; only the index may know the routes. */
export const directionInFeatures: Rule = (sources) =>
  importsIn(sources)
    .filter(({ from, to, is_package }) => !is_package && featureOf(from) === featureOf(to))
    .filter(({ from }) => featureOf(from) !== null)
    .filter(({ from, to }) => {
      const [own, other] = [partOf(from), partOf(to)];
      if (other === 'routes') return !['routes', 'index'].includes(own);
      return not_known[own]?.test(other) === true;
    })
    .map(({ from, to }) => `${from} imports ${to}`);

const impure_packages = /^(?:node:(?!crypto$|url$)|ioredis|postgres|pino|uWebSockets)/;
const impure_kit =
  /^src\/(?:db|redis|socket|http\/(?:mount|request|limits)|kit\/(?:outbound|log|loop|service))/;
const impure_call =
  /\b(?:Date\.now|performance\.now|new Date\(\)|setTimeout|setInterval|Math\.random|fetch\()/;

/** No I/O and no clock in rules. */
export const pureRules: Rule = (sources) =>
  sources
    .filter(({ path }) => /^src\/features\/.*\brules\.ts$/.test(path))
    .flatMap((source) => [
      ...importsOf(source)
        .filter(({ to, is_package, is_type }) =>
          is_type ? false : is_package ? impure_packages.test(to) : impure_kit.test(to),
        )
        .map(({ to }) => `${source.path} imports ${to}`),
      ...(impure_call.test(source.text) ? [`${source.path} has a clock or I/O`] : []),
    ]);

/** Source without its comments; texts stay, because a rule may be about them. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

interface Ban {
  readonly pattern: RegExp;
  readonly places: readonly string[];
  readonly what: string;
}

const sql_template = /\b(?:sql|tx|db)(?:<[^`]*>)?`|\.unsafe\(/;
const bans: readonly Ban[] = [
  {
    what: 'SQL outside a store',
    pattern: sql_template,
    places: ['src/db/', 'src/db/event.ts', 'src/process/embedded/', 'src/tools/'],
  },
  {
    what: 'process.env outside config',
    pattern: /process\.env\b/,
    places: ['src/config.ts', 'src/main.ts', 'src/boot/', 'src/tools/'],
  },
  {
    what: 'console outside tools and the supervisor',
    pattern: /\bconsole\./,
    places: ['src/main.ts', 'src/boot/', 'src/tools/', 'src/process/'],
  },
  {
    what: 'process.exit outside main',
    pattern: /process\.exit\(/,
    places: ['src/main.ts', 'src/boot/', 'src/tools/'],
  },
  {
    what: "begin, reserve, listen or a cursor of the Postgres client's own",
    pattern: /\bclient\.(?:begin|reserve|listen|subscribe)\b|`\.cursor\(/,
    places: [],
  },
  { what: 'a default export', pattern: /^export default\b/m, places: [] },
  { what: 'the type any', pattern: /(?::|\bas|<|,)\s*any\b(?!\w)|\bany\[\]/, places: [] },
];

export const bannedInSource: Rule = (sources) =>
  sources.flatMap(({ path, text }) => {
    const code = withoutComments(text);
    return bans
      .filter(({ pattern, places, what }) => {
        const is_store = what.startsWith('SQL') && /store\.ts$/.test(path);
        return !is_store && !isIn(path, places) && pattern.test(code);
      })
      .map(({ what }) => `${path}: ${what}`);
  });

const homes: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['src/http/request.ts'],
  postgres: ['src/db/connection.ts'],
  ioredis: ['src/redis/', 'src/process/embedded/', 'src/tools/'],
};

/** Packages that one place wraps for all others; their types may be used anywhere. */
export const packagesAtHome: Rule = (sources) =>
  importsIn(sources)
    .filter(({ to, is_type }) => homes[to] !== undefined && !(is_type && to !== 'uWebSockets.js'))
    .filter(({ from, to }) => !isIn(from, homes[to] ?? []))
    .map(({ from, to }) => `${from} imports ${to}`);

/** Written so that it does not find itself. */
const reminder = /\b(?:TO[D]O|FIX[M]E|HA[C]K)\b/;

export const noSuppressedTypes: Rule = (sources) =>
  sources
    .filter(({ text }) => /@ts-(?:ignore|expect-error|nocheck)\b/.test(text))
    .map(({ path }) => `${path} has a suppressed type check`);

export const noReminders: Rule = (sources) =>
  sources.filter(({ text }) => reminder.test(text)).map(({ path }) => `${path} has a reminder`);

export const kebabCase: Rule = (sources) =>
  sources
    .filter(({ path }) => !/^(?:[a-z0-9-]+\/)*[a-z0-9]+(?:[.-][a-z0-9]+)*$/.test(path))
    .map(({ path }) => path);

export const file_lines = 600;
export const function_lines = 70;
export const line_characters = 100;

const countLines = (text: string): number => text.replace(/\n$/, '').split('\n').length;

export const shortFiles: Rule = (sources) =>
  sources
    .map(({ path, text }) => ({ path, lines: countLines(text) }))
    .filter(({ lines }) => lines > file_lines)
    .map(({ path, lines }) => `${path} has ${lines} lines`);

/** For each line whether it begins inside a text of several lines, such as an SQL statement. */
const insideTexts = (lines: readonly string[]): readonly boolean[] => {
  let inside = false;
  return lines.map((line) => {
    const was_inside = inside;
    const ticks = line.replace(/\\`/g, '').split('`').length - 1;
    if (ticks % 2 === 1) inside = !inside;
    return was_inside;
  });
};

/** A line may be long only for a text or a pattern that the formatter does not break. */
export const shortLines: Rule = (sources) =>
  sources.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    const inside = insideTexts(lines);
    return lines.flatMap((line, at) => {
      if ([...line].length <= line_characters || inside[at] || /^import /.test(line)) return [];
      const is_comment = /^\s*(?:\/\/|\/?\*)/.test(line);
      const has_text = /(['"`]).{40,}\1|`[^`]*$|\/.{40,}\//.test(line);
      const has_address = /https?:\/\/\S{40,}/.test(line);
      return has_address || (has_text && !is_comment) ? [] : [`${path}:${at + 1} is too long`];
    });
  });

const not_a_function = /^\s*(?:\}\s*)?(?:if|for|while|switch|catch|else|do|try)\b/;
const opens_function = /(?:=>|\)(?::\s[^=]+)?)\s\{$/;

export interface LongFunction {
  /** File and the first line's text, so that it is known again when it moves. */
  readonly name: string;
  readonly lines: number;
}

/**
 * Functions as the formatter leaves them: a line that ends in the opening brace of one, up to the
 * next line that closes it at the same indentation. Lines of a text in it are not counted.
 */
export const longFunctions = (sources: readonly Source[]): readonly LongFunction[] =>
  sources.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    const inside = insideTexts(lines);
    return lines.flatMap((line, at) => {
      if (inside[at] || !opens_function.test(line) || not_a_function.test(line)) return [];
      const indent = /^\s*/.exec(line)?.[0] ?? '';
      const end = lines.findIndex((other, n) => n > at && other.startsWith(`${indent}}`));
      const count = inside.slice(at, end + 1).filter((is_text) => !is_text).length;
      return count > function_lines ? [{ name: `${path}: ${line.trim()}`, lines: count }] : [];
    });
  });

export const shortFunctions: Rule = (sources) =>
  longFunctions(sources).map(({ name, lines }) => `${name} has ${lines} lines`);

export const lua_lines = 80;

export const luaScripts: Rule = (sources) =>
  sources.flatMap(({ path, text }) => {
    const name = path.split('/').at(-1) ?? '';
    const header = /^(?:--.*\n)+/m.exec(text)?.[0] ?? '';
    const problems = [
      /^[a-z]+(?:-[a-z]+)*-(?:\d+|n)\.lua$/.test(name) ? null : 'is not named <name>-<keys>.lua',
      text.startsWith('#!lua\n') ? null : 'has no shebang',
      /^-- KEYS/m.test(header) ? null : 'does not name its KEYS',
      /^-- ARGV/m.test(header) ? null : 'does not name its ARGV',
      /^-- returns/m.test(header) ? null : 'does not say what it returns',
      countLines(text) <= lua_lines ? null : `has ${countLines(text)} lines`,
    ];
    const keys = Number(/-(\d+)\.lua$/.exec(name)?.[1]);
    const used = [...text.matchAll(/KEYS\[(\d+)\]/g)].map(([, n]) => Number(n));
    if (Number.isInteger(keys) && Math.max(0, ...used) !== keys) {
      problems.push(`takes ${keys} keys and uses ${Math.max(0, ...used)}`);
    }
    return problems.filter((one) => one !== null).map((problem) => `${path} ${problem}`);
  });

export const migrations: Rule = (sources) =>
  sources.flatMap(({ path, text }, at) => {
    const name = path.split('/').at(-1) ?? '';
    const number = String(at + 1).padStart(4, '0');
    const problems = [
      name.startsWith(`${number}_`) ? null : `should be number ${number}`,
      /^\d{4}_[a-z0-9]+(?:_[a-z0-9]+)*\.sql$/.test(name) ? null : 'is not named NNNN_what.sql',
      /^-- compat: \S.*\.$/m.test(text) ? null : 'has no compat note',
      /^\s*(?:CREATE|ALTER|INSERT|UPDATE|SELECT)\b/m.test(text) ? 'shouts' : null,
    ];
    return problems.filter((one) => one !== null).map((problem) => `${path} ${problem}`);
  });

const sleep = /\bsetTimeout\b[^;]*from 'node:timers\/promises'|setTimeout\((?:resolve|r|done)\b/;

/** Tests wait for signals and conditions, never for time to pass. */
export const noSleeps: Rule = (sources) =>
  sources
    .filter(({ path, text }) => path.endsWith('.test.ts') && sleep.test(text))
    .map(({ path }) => `${path} sleeps`);
