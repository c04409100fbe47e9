import type { Logger } from 'pino';
import type { Mounted } from '../../src/http/mount.js';
import type { Credentials } from '../../src/http/pipeline.js';
import type { TemplatedApp } from '../../src/http/request.js';
import { makeAddressReader } from '../../src/http/request.js';
import { refuse } from '../../src/kit/fault.js';
import { makeCallOp } from '../../src/socket/calls.js';
import { ws_faults } from '../../src/socket/frames.js';
import { type Hub, type HubLimits, type HubOptions, mountHub } from '../../src/socket/hub.js';
import { makeOwnCounter, makeTestRecent } from './hub.js';

/** Sockets of a toy server: an empty log, and calls. */

export interface ToySocketParts {
  readonly log: Logger;
  readonly mounted: Mounted;
  readonly authenticate: HubOptions['authenticate'];
  readonly limits: Partial<HubLimits>;
}

export const mountToySocket = (app: TemplatedApp, parts: ToySocketParts): Hub => {
  const { mounted, ...rest } = parts;
  const readToken = (token: string): Credentials => ({
    api_key: token,
    authorization: '',
    admin_key: '',
  });
  const hub = mountHub(app, {
    ...rest,
    ...{ path: '/ws', node: 'toy', readToken },
    readAddress: makeAddressReader([]),
    resolveTopic: () => refuse(ws_faults.INVALID_TOPIC),
    defaultTopics: () => [],
    source: {
      oldest: () => 1,
      read: async () => [],
      count: async () => 0,
      nthNewest: async () => null,
      newest: async () => new Map(),
    },
    recent: makeTestRecent(),
    connections: makeOwnCounter(),
    readFilter: () => null,
    backfill: () => '/',
    ops: { call: makeCallOp(mounted) },
  });
  hub.begin(0);
  return hub;
};
