import { readdirSync } from 'node:fs';
import type { FaultDef } from '../../src/kit/fault.js';

/** The modules of the service and what they export, without naming any of them. */

const sources = new URL('../../../src/', import.meta.url);
const compiled = new URL('../../src/', import.meta.url);

export interface ModuleFile {
  /** Below src: `kit/fault.ts`. */
  readonly path: string;
  /** Of what was compiled from it. */
  readonly url: string;
}

export const listModules = (folders: readonly string[]): readonly ModuleFile[] =>
  folders
    .flatMap((folder) =>
      readdirSync(new URL(`${folder}/`, sources), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
        .map((name) => `${folder}/${name}`),
    )
    .sort()
    .map((path) => ({ path, url: new URL(path.replace(/ts$/, 'js'), compiled).href }));

const importAll = (files: readonly ModuleFile[]): Promise<readonly Record<string, unknown>[]> =>
  Promise.all(files.map(({ url }) => import(url) as Promise<Record<string, unknown>>));

const isFaultDef = (value: unknown): value is FaultDef =>
  typeof value === 'object' &&
  value !== null &&
  ['code', 'status', 'category', 'sentence', 'retryable'].every((member) => member in value);

const faultsIn = (value: unknown): readonly FaultDef[] => {
  if (isFaultDef(value)) return [value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const members = Object.values(value);
  return members.length > 0 && members.every(isFaultDef) ? members : [];
};

/** Every fault that some module defines, each once. */
export const collectFaults = async (): Promise<readonly FaultDef[]> => {
  const modules = await importAll(listModules(['kit', 'http', 'socket', 'features']));
  const found = modules.flatMap((one) => Object.values(one).flatMap(faultsIn));
  return [...new Set(found)];
};
