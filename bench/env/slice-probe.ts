import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/**
 * Loaded into each api process through `NODE_OPTIONS`. Measures the CPU time of the main thread
 * between two ticks of a timer, to find the longest stretch in which the event loop did not turn.
 * Each connection to the socket receives the longest stretch in ms since the previous connection.
 */

const socket = process.env['SLICE_SOCKET'];

/** CPU time, so that other programs on the machine do not count. */
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
