import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from 'socket.io';
import { WebSocketServer } from 'ws';
import { App, DISABLED, us_socket_local_port } from '../../src/http/request.js';
import { serve } from '../env/child.js';
import { makeEventFrame, type Numbered } from '../env/events.js';

/** The same frames to the same subscribers by three servers, each as fast as it can be set up. */

interface FanoutPeer {
  readonly listen: () => Promise<number>;
  readonly send: (event: Numbered) => void;
}

/** Bare uWebSockets.js: one topic and its own publish; nothing remembered, nothing filtered. */
const makeUws = (): FanoutPeer => {
  const app = App();
  app.ws('/*', {
    ...{ compression: DISABLED, maxBackpressure: 64 * 1_048_576, idleTimeout: 120 },
    open: (ws) => {
      ws.subscribe('all');
      ws.send('{"op":"welcome"}');
    },
  });
  return {
    listen: () =>
      new Promise((resolve) => {
        app.listen('127.0.0.1', 0, (socket) => {
          if (socket) resolve(us_socket_local_port(socket));
        });
      }),
    send: (event) => void app.publish('all', makeEventFrame(event)),
  };
};

/** The `ws` package: one loop over all clients for each event, the text encoded once. */
const makeWs = (): FanoutPeer => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  server.on('connection', (socket) => socket.send('{"op":"welcome"}'));
  const listening = new Promise((resolve) => server.once('listening', resolve));
  return {
    listen: async () => {
      await listening;
      return (server.address() as AddressInfo).port;
    },
    send: (event) => {
      const frame = Buffer.from(makeEventFrame(event));
      for (const client of server.clients) client.send(frame, { binary: false });
    },
  };
};

/** Socket.IO over websockets alone: one room, its adapter encodes an event once. */
const makeSocketIo = (): FanoutPeer => {
  const http = createServer();
  const options = { transports: ['websocket' as const], pingInterval: 3_600_000 };
  const io = new Server(http, { ...options, perMessageDeflate: false });
  io.on('connection', (socket) => {
    socket.join('all');
    socket.emit('welcome');
  });
  return {
    listen: () =>
      new Promise((resolve) => {
        http.listen(0, '127.0.0.1', () => resolve((http.address() as AddressInfo).port));
      }),
    send: (event) => void io.to('all').emit('event', JSON.parse(makeEventFrame(event))),
  };
};

const makers = { uws: makeUws, ws: makeWs, socketio: makeSocketIo };
const peer = makers[process.env['KIND'] as keyof typeof makers]();

const handlers = {
  listen: peer.listen,
  publish: (events: readonly Numbered[]): void => events.forEach(peer.send),
};
export type FanoutHandlers = typeof handlers;
serve(handlers);
