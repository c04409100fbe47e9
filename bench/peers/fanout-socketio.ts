import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from 'socket.io';
import { makeFrame, type Numbered } from '../load/fanout-events.js';

/** Socket.IO over websockets alone: one room, its adapter encodes an event once. */

const http = createServer();
const io = new Server(http, {
  transports: ['websocket'],
  perMessageDeflate: false,
  pingInterval: 3_600_000,
});
io.on('connection', (socket) => {
  socket.join('all');
  socket.emit('welcome');
});
http.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (http.address() as AddressInfo).port });
});
process.on('message', (events: readonly Numbered[]) => {
  for (const event of events) io.to('all').emit('event', JSON.parse(makeFrame(event)));
});
process.on('disconnect', () => process.exit(0));
