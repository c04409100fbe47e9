import { serve } from '../env/child.js';
import { runCallLoad } from './call-load.js';
import { type HttpOptions, runHttpLoad } from './http-load.js';
import { makeRequests, type PairOptions, type ReadOptions } from './requests.js';
import type { LoadResult } from './tally.js';

/** The process that puts on the load. Requests are made before the clock starts. */
export interface LoadJob extends HttpOptions {
  readonly requests: PairOptions | ReadOptions;
}

let run: (() => Promise<LoadResult>) | undefined;

const handlers = {
  prepare: (job: LoadJob): void => {
    const { requests: options, ...load } = job;
    const requests = makeRequests(options);
    run = () =>
      options.kind === 'call'
        ? runCallLoad({ ...load, ...options }, requests)
        : runHttpLoad(load, requests);
  },
  go: (): Promise<LoadResult> => {
    if (run === undefined) throw new Error('go before prepare');
    return run();
  },
};
export type LoadHandlers = typeof handlers;
serve(handlers);
