import uWS from 'uWebSockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from 'socket.io';
import { WebSocketServer } from 'ws';
import { serve } from '../env/child.js';
import { makeEventFrame, type Numbered } from '../env/events.js';
import { listenOn } from './uws.js';

/** Sends the same frames to the same subscribers from three servers, each in its fastest setup. */

interface FanoutPeer {
  readonly listen: () => Promise<number>;
  readonly send: (event: Numbered) => void;
}

const peers: Readonly<Record<string, () => FanoutPeer>> = {
  /** Bare uWebSockets.js: one topic and its built-in publish, without history or filters. */
  uws() {
    const app = uWS.App().ws('/*', {
      compression: uWS.DISABLED,
      maxBackpressure: 64 * 1_048_576,
      idleTimeout: 120,
      open: (ws) => {
        ws.subscribe('all');
        ws.send('{"op":"welcome"}');
      },
    });
    return {
      listen: () => listenOn(app),
      send: (event) => void app.publish('all', makeEventFrame(event)),
    };
  },
  /** The `ws` package: one loop over all clients per event, with the text encoded once. */
  ws() {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
    server.on('connection', (socket) => socket.send('{"op":"welcome"}'));
    return {
      async listen() {
        if (server.address() === null) await once(server, 'listening');
        return (server.address() as AddressInfo).port;
      },
      send: (event) => {
        const frame = Buffer.from(makeEventFrame(event));
        for (const client of server.clients) client.send(frame, { binary: false });
      },
    };
  },
  /** Socket.IO over websockets only: one room, and its adapter encodes an event once. */
  socketio() {
    const http = createServer();
    const options = { transports: ['websocket' as const], pingInterval: 3_600_000 };
    const io = new Server(http, { ...options, perMessageDeflate: false });
    io.on('connection', (socket) => {
      socket.join('all');
      socket.emit('welcome');
    });
    return {
      async listen() {
        await once(http.listen(0, '127.0.0.1'), 'listening');
        return (http.address() as AddressInfo).port;
      },
      send: (event) => void io.to('all').emit('event', JSON.parse(makeEventFrame(event))),
    };
  },
};

const peer = peers[process.env['KIND'] ?? '']!();
const handlers = {
  listen: peer.listen,
  publish: (events: readonly Numbered[]): void => events.forEach(peer.send),
};
export type FanoutHandlers = typeof handlers;
serve(handlers);
