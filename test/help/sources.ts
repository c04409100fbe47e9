import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The files of the repository as texts, and what they import. */

export interface Source {
  /** Below the root, with slashes: `src/kit/fault.ts`. */
  readonly path: string;
  readonly text: string;
}

const root = new URL('../../../', import.meta.url);

/** Every file below the folders that ends in one of the endings. */
export const readSources = (
  folders: readonly string[],
  endings: readonly string[],
): readonly Source[] =>
  folders
    .flatMap((folder) =>
      readdirSync(new URL(folder, root), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
        .map((entry) =>
          path.relative(new URL(root).pathname, path.join(entry.parentPath, entry.name)),
        ),
    )
    .sort()
    .map((name) => ({ path: name, text: readFileSync(new URL(name, root), 'utf8') }));

export interface Import {
  readonly from: string;
  /** A path below the root for a relative import, else the name of the package. */
  readonly to: string;
  readonly is_package: boolean;
  readonly is_type: boolean;
}

const import_pattern =
  /^(?:import|export)\s(type\s)?(?:[^'";]*?\sfrom\s)?'([^']+)';$|\bimport\('([^']+)'\)/gms;

const resolveImport = (from: string, to: string): string =>
  path.posix.join(path.posix.dirname(from), to).replace(/\.js$/, '.ts');

/** Static and dynamic imports with a literal name, and re-exports. */
export const importsOf = ({ path: from, text }: Source): readonly Import[] =>
  [...text.matchAll(import_pattern)].map(([, type, named, dynamic]) => {
    const name = named ?? dynamic ?? '';
    const is_package = !name.startsWith('.');
    return {
      from,
      to: is_package ? name : resolveImport(from, name),
      is_package,
      is_type: type !== undefined,
    };
  });

/**
 * The circles of a graph as lists of their members, by Tarjan's algorithm: strongly connected
 * components of more than one node.
 */
export const findCircles = (
  edges: ReadonlyMap<string, ReadonlySet<string>>,
): readonly (readonly string[])[] => {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node) as number);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      else if (!stack.includes(next)) continue;
      low.set(node, Math.min(low.get(node) as number, low.get(next) as number));
    }
    if (low.get(node) !== index.get(node)) return;
    const members = stack.splice(stack.indexOf(node));
    if (members.length > 1) circles.push(members.sort());
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return circles;
};

export const edgesOf = (imports: readonly Import[]): Map<string, Set<string>> => {
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports) edges.set(from, (edges.get(from) ?? new Set()).add(to));
  return edges;
};
