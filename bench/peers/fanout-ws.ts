import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { makeFrame, type Numbered } from '../load/fanout-events.js';

/** The `ws` package: one loop over all clients for each event, the text encoded once. */

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
server.on('connection', (socket) => socket.send('{"op":"welcome"}'));
server.on('listening', () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
process.on('message', (events: readonly Numbered[]) => {
  for (const event of events) {
    const frame = Buffer.from(makeFrame(event));
    for (const client of server.clients) client.send(frame, { binary: false });
  }
});
process.on('disconnect', () => process.exit(0));
