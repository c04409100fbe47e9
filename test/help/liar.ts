import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import WebSocket, { WebSocketServer } from 'ws';
import type { Teardown } from './stores.js';

/** A proxy in front of the service that changes event frames. */

type Frame = Readonly<Record<string, unknown>> & { readonly op: string; readonly offset: number };

/** The frames that a client gets in place of one event frame. */
export type Change = (frame: Frame) => readonly Frame[];

/** Starts the proxy and returns its URL. */
export const startLiar = async (t: Teardown, url: string, change: Change): Promise<string> => {
  const server = createServer(async (request, response) => {
    const answer = await fetch(`${url}${request.url}`);
    const type = answer.headers.get('content-type') ?? '';
    response.writeHead(answer.status, { 'content-type': type });
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (client) => {
    const upstream = new WebSocket(`${url.replace('http', 'ws')}/ws`);
    client.on('message', (text) => {
      if (upstream.readyState === WebSocket.OPEN) upstream.send(String(text));
      else upstream.once('open', () => upstream.send(String(text)));
    });
    upstream.on('message', (text) => {
      const frame = JSON.parse(String(text)) as Frame;
      const frames = frame.op === 'event' ? change(frame) : [frame];
      for (const one of frames) client.send(JSON.stringify(one));
    });
    client.on('close', () => upstream.terminate());
    upstream.on('close', () => client.terminate());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const one of sockets.clients) one.terminate();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};
