import { App, DISABLED, us_socket_local_port } from '../../src/http/request.js';
import { makeFrame, type Numbered } from '../load/fanout-events.js';

/** Bare uWebSockets.js: one topic and its own publish; nothing remembered, nothing filtered. */

const app = App();
app.ws('/*', {
  compression: DISABLED,
  maxBackpressure: 64 * 1_048_576,
  idleTimeout: 120,
  open: (ws) => {
    ws.subscribe('all');
    ws.send('{"op":"welcome"}');
  },
});
app.listen('127.0.0.1', 0, (socket) => {
  if (socket) process.send?.({ port: us_socket_local_port(socket) });
});
process.on('message', (events: readonly Numbered[]) => {
  for (const event of events) app.publish('all', makeFrame(event));
});
process.on('disconnect', () => process.exit(0));
