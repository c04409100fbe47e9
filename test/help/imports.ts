import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Finds the imports in the text of the sources, for the tidy test and the budget. */

export interface Source {
  /** Below the root, with slashes: `src/kit/fault.ts`. */
  readonly path: string;
  readonly text: string;
}

export const project_url = new URL('../../../', import.meta.url);

/** Every file below the folders with one of the endings, except `wire.ts`, which is generated. */
export const readSources = (
  folders: readonly string[],
  endings: readonly string[],
): readonly Source[] =>
  folders
    .flatMap((folder) =>
      readdirSync(new URL(folder, project_url), { recursive: true, withFileTypes: true }),
    )
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => path.relative(project_url.pathname, path.join(entry.parentPath, entry.name)))
    .filter((name) => name !== 'clients/typescript/src/wire.ts')
    .sort()
    .map((name) => ({ path: name, text: readFileSync(new URL(name, project_url), 'utf8') }));

export interface Import {
  readonly from: string;
  /** For a file of this repository its path below the root, else the name of the package. */
  readonly to: string;
  readonly is_package: boolean;
  readonly is_type: boolean;
  /** `import('…')`: it loads when that line runs. */
  readonly is_dynamic: boolean;
}

const import_pattern =
  /^(?:import|export)\s(type\s)?(?:[^'";]*?\sfrom\s)?'([^']+)';$|\bimport\('([^']+)'\)/gms;

/** Static and dynamic imports with a literal name, and re-exports. */
export const importsIn = (sources: readonly Source[]): readonly Import[] =>
  sources.flatMap(({ path: from, text }) =>
    [...text.matchAll(import_pattern)].map(([, type, named, dynamic]) => {
      const name = named ?? dynamic ?? '';
      const is_package = !/^(?:\.|#client\/)/.test(name);
      const below = name.startsWith('#client/') ? 'clients/typescript/src' : path.dirname(from);
      const target = path.join(below, name.replace('#client/', '')).replace(/\.js$/, '.ts');
      return {
        from,
        to: is_package ? name : target,
        is_package,
        is_type: type !== undefined,
        is_dynamic: dynamic !== undefined,
      };
    }),
  );

/**
 * The files of this repository and the packages that a file loads when it is imported: those it
 * imports, those they import, and so on. Types load nothing, and neither does a dynamic import
 * before it runs. Files that are not among the sources load nothing.
 */
export const makeLoads = (sources: readonly Source[]) => {
  const names = new Set(sources.map((source) => source.path));
  const nameOf = (to: string): string => (names.has(`${to}x`) ? `${to}x` : to);
  const direct = new Map(
    sources.map((source) => {
      const loaded = importsIn([source]).filter((one) => !one.is_type && !one.is_dynamic);
      return [source.path, loaded.map(({ to }) => nameOf(to))];
    }),
  );
  return (from: string): ReadonlySet<string> => {
    const found = new Set([from]);
    for (const one of found) for (const to of direct.get(one) ?? []) found.add(to);
    return found;
  };
};
