import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Finds the imports in source texts, for the tidy test and the budget. */

export interface Source {
  /** Path relative to the root, with slashes: `src/kit/fault.ts`. */
  readonly path: string;
  readonly text: string;
}

export const project_url = new URL('../../../', import.meta.url);

/** Every file below the folders that has one of the endings, except the generated `wire.ts`. */
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
  /** Path relative to the root if the file is in this repository, otherwise the package name. */
  readonly to: string;
  readonly is_package: boolean;
  readonly is_type: boolean;
  /** True for `import('…')`, which loads only when that line runs. */
  readonly is_dynamic: boolean;
}

const import_pattern =
  /^(?:import|export)\s(type\s)?(?:[^'";]*?\sfrom\s)?'([^']+)';$|\bimport\('([^']+)'\)/gms;

/** Static imports, dynamic imports with a literal name, and re-exports. */
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
 * Returns the files and packages that are loaded when a file is imported, including indirect
 * imports. Type imports load nothing, nor do dynamic imports before they run. Files outside the
 * sources count as loading nothing.
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
