import { App, us_socket_local_port } from '../../src/http/request.js';
import type { Recorded } from './recorded.js';

/**
 * The least that a server can do: finds the bytes of an address in a map and sends them, with the
 * headers that the service sends. No limits, no log, no credentials, nothing that moves.
 */

let answers = new Map<string, Recorded>();
const app = App();
app.get('/*', (res, req) => {
  const query = req.getQuery() ?? '';
  const found = answers.get(query === '' ? req.getUrl() : `${req.getUrl()}?${query}`);
  if (found === undefined) {
    res.writeStatus('404 Not Found').end('');
    return;
  }
  for (const [name, value] of found.headers) res.writeHeader(name, value);
  res.end(found.body);
});
app.listen('127.0.0.1', 0, (socket) => {
  if (socket) process.send?.({ port: us_socket_local_port(socket) });
});
process.on('message', (recorded: readonly Recorded[]) => {
  answers = new Map(recorded.map((one) => [one.path, one]));
});
process.on('disconnect', () => process.exit(0));
