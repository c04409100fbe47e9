import type { Config } from '../config.js';
import type { Running } from '../kit/service.js';
import { openBase, type RoleOptions } from './base.js';

/**
 * Starts one role in this process. Each process loads the code of its own role only. Any number of
 * processes may have the same role; leases decide which relay is active and which timer does a job.
 */
export const startProcess = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  switch (options.role) {
    case 'api':
      return (await import('./api.js')).startApi(base, options);
    case 'relay':
      return (await import('./relay.js')).startRelay(base);
    case 'signer':
      return (await import('./signer.js')).startSigner(base, options);
    case 'timer':
      return (await import('./timer.js')).startTimer(base);
  }
};
