import { Socket } from 'node:net';
import type { Teardown } from './stores.js';

/** Every connection over TCP that this process tries to open, with TLS or without. */

export interface Connect {
  readonly host: string;
  readonly port: number;
}

/** The list grows while the test runs; connections to paths are left out. */
export const watchConnects = (t: Teardown): readonly Connect[] => {
  const seen: Connect[] = [];
  const original = Socket.prototype.connect;
  const watched = function (this: Socket, ...given: unknown[]): Socket {
    // Node hands over its own arguments in the normal form: an array of options and listener.
    const first = Array.isArray(given[0]) ? given[0][0] : given[0];
    const { host, port } = (first ?? {}) as Partial<Connect>;
    if (port !== undefined) seen.push({ host: host ?? 'localhost', port: Number(port) });
    return original.apply(this, given as Parameters<typeof original>);
  };
  Socket.prototype.connect = watched as typeof original;
  t.teardown(() => {
    Socket.prototype.connect = original;
  });
  return seen;
};
