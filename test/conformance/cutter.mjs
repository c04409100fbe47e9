import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
export const makeRandom = (seed) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
};

const least_bytes = 2_000;

/**
 * A proxy to the service that cuts every connection after a random number of bytes, up to
 * `most_bytes`, even in the middle of a frame or an answer.
 */
export const startCutter = async (url, { random, most_bytes }) => {
  const { protocol, hostname, port } = new URL(url);
  const is_tls = protocol === 'https:';
  const target = { host: hostname, port: Number(port || (is_tls ? 443 : 80)) };
  const sockets = new Set();
  let cuts = 0;
  const server = net.createServer((client) => {
    const upstream = is_tls
      ? tls.connect({ ...target, servername: hostname })
      : net.connect(target);
    let left = least_bytes + random() * (most_bytes - least_bytes);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (chunk) => {
      left -= chunk.length;
      if (left > 0) {
        if (client.write(chunk)) return;
        upstream.pause();
        client.once('drain', () => upstream.resume());
        return;
      }
      cuts += 1;
      client.end(chunk.subarray(0, chunk.length + left), () => client.destroy());
      upstream.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cuts: () => cuts,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
