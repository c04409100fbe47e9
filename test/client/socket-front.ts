import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import type { Teardown } from '../help/stores.js';
import type { Frame } from '../help/ws-client.js';

/**
 * A proxy between clients and the sockets of a service. It behaves like bad networks and broken
 * programs: it cuts connections, loses or repeats frames, or goes silent.
 */
export interface SocketFront {
  readonly url: string;
  /** Called for each frame from the service. Returns the frames that the client gets instead. */
  tamper: ((frame: Frame, connection: object) => readonly (Frame | string)[]) | null;
  /** Frames from the clients, in order of arrival. */
  readonly said: readonly Frame[];
  /** Number of connections so far. */
  readonly opened: number;
  /** Ends every connection: with this close code, or without one as if the cable was cut. */
  cut(code?: number): void;
}

export const startSocketFront = async (t: Teardown, port: number): Promise<SocketFront> => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  const said: Frame[] = [];
  let opened = 0;
  await new Promise<void>((resolve) => server.once('listening', () => resolve()));
  const front: SocketFront = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tamper: null,
    said,
    get opened() {
      return opened;
    },
    cut(code) {
      for (const client of server.clients) {
        if (code === undefined) client.terminate();
        else client.close(code);
      }
    },
  };
  server.on('connection', (client, { headers, url = '/ws' }) => {
    opened += 1;
    const key = headers['x-api-key'];
    const service = new WebSocket(`ws://127.0.0.1:${port}${url}`, {
      perMessageDeflate: false,
      headers: key === undefined ? {} : { 'x-api-key': key },
    });
    const waiting: string[] = [];
    service.on('open', () => {
      for (const text of waiting.splice(0)) service.send(text);
    });
    client.on('message', (raw) => {
      const text = String(raw);
      said.push(JSON.parse(text) as Frame);
      if (service.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (service.readyState === WebSocket.OPEN) service.send(text);
    });
    service.on('message', (raw) => {
      if (client.readyState !== WebSocket.OPEN) return;
      const frame = JSON.parse(String(raw)) as Frame;
      for (const sent of front.tamper?.(frame, client) ?? [frame]) {
        client.send(typeof sent === 'string' ? sent : JSON.stringify(sent));
      }
    });
    service
      .on('error', () => client.terminate())
      .on('close', (code, reason) => {
        if (code === 1_005 || code === 1_006) client.terminate();
        else client.close(code, reason);
      });
    client.on('error', () => undefined).on('close', () => service.terminate());
  });
  t.teardown(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  return front;
};
