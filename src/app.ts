import type { Config } from './config.js';
import type { Running } from './kit/service.js';
import { startApi } from './roles/api.js';
import type { RoleOptions } from './roles/base.js';
import { startRelay } from './roles/relay.js';
import { startSigner } from './roles/signer.js';
import { startTimer } from './roles/timer.js';

/** Starts one role in this process: the one place that knows which role is what. */
export const startProcess = async (config: Config, options: RoleOptions): Promise<Running> => {
  switch (options.role) {
    case 'api':
      return startApi(config, options);
    case 'relay':
      return startRelay(config, options);
    case 'signer':
      return startSigner(config, options);
    case 'timer':
      return startTimer(config, options);
  }
};
