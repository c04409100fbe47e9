import { serve } from '../env/child.js';
import { connectHttp } from './http-connection.js';
import { type LoadOptions, type LoadResult, runLoad } from './load.js';
import { makeRequests, type PairOptions, type ReadOptions, readKeys } from './requests.js';
import { connectSocket } from './socket-connection.js';

/** The process that generates the load. Requests are prepared before the clock starts. */
export interface LoadJob extends LoadOptions {
  readonly requests: PairOptions | ReadOptions;
}

let run: () => Promise<LoadResult>;

const handlers = {
  prepare: (job: LoadJob): void => {
    const { requests: options, port } = job;
    const requests = makeRequests(options);
    run = () => runLoad(job, requests, (events) => connectHttp(port, events));
    if (options.kind !== 'call') return;
    const keys = readKeys(options);
    run = () =>
      runLoad({ ...job, own_connections: keys.length }, requests, (events, n) =>
        connectSocket(port, events, { api_key: keys[n]!, n }),
      );
  },
  go: () => run(),
};
export type LoadHandlers = typeof handlers;
serve(handlers);
