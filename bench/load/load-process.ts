import { runLoad } from './http-load.js';
import { runSocketLoad, type SocketOptions } from './socket-load.js';
import type { LoadOptions, LoadResult } from './tally.js';

/**
 * The process that puts on the load: started by the bench, told over IPC what to do. Requests are
 * made before the clock starts, by the module that `source` names: it exports `makeRequests`.
 */
export interface LoadJob extends Omit<LoadOptions, 'requests'> {
  /** URL of a module with `makeRequests(options)`. */
  readonly source: string;
  readonly source_options: unknown;
  /** Present where the requests are frames for websockets. */
  readonly sockets?: SocketOptions;
}

export type ToLoad = { readonly op: 'prepare'; readonly job: LoadJob } | { readonly op: 'go' };
export type FromLoad =
  | { readonly op: 'ready' }
  | { readonly op: 'result'; readonly result: LoadResult }
  | { readonly op: 'failed'; readonly error: string };

interface Source {
  makeRequests(options: unknown): readonly Buffer[];
}

const tell = (message: FromLoad): void => {
  process.send?.(message);
};

let prepared: (() => Promise<LoadResult>) | undefined;

const handle = async (message: ToLoad): Promise<void> => {
  if (message.op === 'prepare') {
    const { source, source_options, sockets, ...options } = message.job;
    prepared = undefined;
    const { makeRequests } = (await import(source)) as Source;
    const load = { ...options, requests: makeRequests(source_options) };
    prepared = () => (sockets === undefined ? runLoad(load) : runSocketLoad(load, sockets));
    tell({ op: 'ready' });
  } else {
    if (prepared === undefined) throw new Error('go before prepare');
    const result = await prepared();
    prepared = undefined;
    tell({ op: 'result', result });
  }
};

process.on('message', (message: ToLoad) => {
  handle(message).catch((error: unknown) => tell({ op: 'failed', error: String(error) }));
});
process.on('disconnect', () => process.exit(0));
