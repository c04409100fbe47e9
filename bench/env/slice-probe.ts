import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Loaded into each api process by `NODE_OPTIONS`: the CPU time of its main thread between two turns
 * of a timer, which is that of the longest stretch without a turn of the event loop. Whoever
 * connects to the socket gets the longest since the last one who did, in ms.
 */

const socket = process.env['SLICE_SOCKET'];

/** Time on a CPU, so that other programs on the machine do not count. */
const cpuMs = (): number =>
  Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6;

if (socket !== undefined && process.argv.includes('--role=api')) {
  let longest_ms = 0;
  let before_ms = cpuMs();
  setInterval(() => {
    const now_ms = cpuMs();
    longest_ms = Math.max(longest_ms, now_ms - before_ms);
    before_ms = now_ms;
  }, 1).unref();
  createServer((client) => {
    client.end(String(longest_ms));
    longest_ms = 0;
  })
    .listen(socket)
    .unref();
}
