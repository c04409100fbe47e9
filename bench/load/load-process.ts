import { serve } from '../env/child.js';
import { connectHttp, connectSocket } from './connections.js';
import { type LoadOptions, type LoadResult, runLoad } from './load.js';
import { makeRequests, type PairOptions, type ReadOptions, readKeys } from './requests.js';

/** The process that puts on the load. Requests are made before the clock starts. */
export interface LoadJob extends LoadOptions {
  readonly requests: PairOptions | ReadOptions;
}

let run: (() => Promise<LoadResult>) | undefined;

const handlers = {
  prepare: (job: LoadJob): void => {
    const { requests: options, port } = job;
    const requests = makeRequests(options);
    if (options.kind === 'call') {
      const keys = readKeys(options);
      run = () =>
        runLoad({ ...job, own_connections: keys.length }, requests, (events, n) =>
          connectSocket(port, events, { api_key: keys[n]!, n }),
        );
    } else {
      run = () => runLoad(job, requests, (events) => connectHttp(port, events));
    }
  },
  go: (): Promise<LoadResult> => {
    if (run === undefined) throw new Error('go before prepare');
    return run();
  },
};
export type LoadHandlers = typeof handlers;
serve(handlers);
