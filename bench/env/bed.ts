import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import type { Bench, BenchContext, Prepared } from '../frame/types.js';
import { type Loader, startLoader } from '../load/loader.js';
import { type Stores, startStores } from './stores.js';

/** What a bench stands on: stores, a load generator, and the care for all that it starts. */
export interface Bed {
  readonly context: BenchContext;
  readonly stores: Stores;
  readonly loader: Loader;
  /** Called at the end of the bench, what came last first. */
  onClose(close: () => unknown): void;
}

type Made = Pick<Prepared, 'stages'> & Partial<Pick<Prepared, 'missing'>>;

/** `prepare` of a bench: whatever was started is closed at its end, and when a part of it fails. */
export const prepareOnBed =
  (make: (bed: Bed) => Promise<Made>): Bench['prepare'] =>
  async (context) => {
    const closers: (() => unknown)[] = [];
    const close = async (): Promise<void> => {
      for (const closeOne of closers.splice(0).reverse()) {
        await Promise.resolve(closeOne()).catch(() => undefined);
      }
    };
    try {
      const stores = await startStores(context.folder, context.tell);
      closers.push(stores.close);
      const loader = startLoader();
      closers.push(loader.close);
      const onClose: Bed['onClose'] = (closeOne) => void closers.push(closeOne);
      const { stages, missing = [] } = await make({ context, stores, loader, onClose });
      return { stages, missing, close };
    } catch (error) {
      await close();
      throw error;
    }
  };

export const makeKeys = (count: number): readonly string[] =>
  Array.from({ length: count }, makeApiKey);

/** The keys the load uses, in a file that its process reads. */
export const writeKeys = ({ folder }: BenchContext, keys: readonly string[]): string => {
  const keys_file = path.join(folder, 'keys.json');
  writeFileSync(keys_file, JSON.stringify(keys), { mode: 0o600 });
  return keys_file;
};
