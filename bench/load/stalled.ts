import type { Socket } from 'node:net';
import { WebSocket } from 'ws';

/** Clients that ask for much of the log, read nothing of it, and come back when they are cut. */

export interface Stalled {
  /** How often one was closed with 4101. */
  readonly closed: number;
  /** Waits until each of them has asked. */
  ready(): Promise<void>;
  close(): void;
}

const again_ms = 100;
/** A little less than one replay may have. */
const behind = 9_000;

export const startStalled = (port: number, count: number): Stalled => {
  const open = new Map<number, WebSocket>();
  const asked = new Set<number>();
  let ended = false;
  let closed = 0;
  let onAsked = (): void => undefined;

  const connect = (n: number): void => {
    if (ended) return;
    const headers = { 'x-forwarded-for': `10.9.0.${n + 1}` };
    const ws = new WebSocket(`ws://127.0.0.1:${port}/ws`, { headers, perMessageDeflate: false });
    open.set(n, ws);
    ws.on('error', () => undefined);
    ws.once('message', (text) => {
      const { head = 0 } = JSON.parse(String(text)) as { head?: number };
      const after = Math.max(0, head - behind);
      ws.send(JSON.stringify({ op: 'subscribe', topics: ['all'], after }));
      (ws as unknown as { _socket: Socket })._socket.pause();
      asked.add(n);
      onAsked();
      // Who reads nothing is not told of the end either: looks again after the patience of the
      // service and the unread rest.
      setTimeout(() => (ws as unknown as { _socket?: Socket })._socket?.resume(), 12_000).unref();
    });
    ws.on('close', (code) => {
      if (code === 4101) closed += 1;
      setTimeout(connect, again_ms, n).unref();
    });
  };
  for (let n = 0; n < count; n += 1) connect(n);

  return {
    get closed() {
      return closed;
    },
    ready: () =>
      new Promise((resolve) => {
        onAsked = () => asked.size === count && resolve();
        onAsked();
      }),
    close() {
      ended = true;
      for (const ws of open.values()) ws.terminate();
    },
  };
};
