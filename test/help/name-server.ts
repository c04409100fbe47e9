import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import dns from 'dns-packet';
import type { Teardown } from './stores.js';

/**
 * A name server for one test, with the same port for UDP and TCP. It answers one question per
 * query, A or AAAA, optionally behind a CNAME. If the answers do not fit into a datagram, the
 * client asks again over TCP. Answers that do not fit there either are left out.
 */

export interface Zone {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  /** The name that the addresses belong to. */
  readonly cname?: string;
  readonly rcode?: number;
  /** Sends no answer. */
  readonly silent?: boolean;
  readonly delay_ms?: number;
}

const max_udp = 512;
const max_tcp = 65_535;

const answerTo = ({ id, questions = [] }: dns.Packet, zone: Zone, most: number): Buffer => {
  const [{ name, type } = { name: '', type: 'A' }] = questions;
  const addresses = type === 'A' ? zone.a : type === 'AAAA' ? zone.aaaa : [];
  const { cname } = zone;
  const answers = [
    ...(cname === undefined ? [] : [{ name, type: 'CNAME', ttl: 0, data: cname }]),
    ...(addresses ?? []).map((data) => ({ name: cname ?? name, type, ttl: 0, data })),
  ] as dns.Answer[];
  const flags = dns.RECURSION_DESIRED | dns.RECURSION_AVAILABLE | (zone.rcode ?? 0);
  const encode = (count: number): Buffer => {
    const is_cut = count < answers.length && most === max_udp;
    return dns.encode({
      type: 'response',
      questions,
      answers: answers.slice(0, count),
      ...(id === undefined ? {} : { id }),
      flags: flags | (is_cut ? dns.TRUNCATED_RESPONSE : 0),
    });
  };
  let count = answers.length;
  let packet = encode(count);
  while (packet.length > most) {
    count = Math.floor((count * most) / (packet.length + 1)) - 1;
    packet = encode(count);
  }
  return packet;
};

/** Binds both servers to one port. Retries if UDP already uses the port that TCP got. */
const bindBoth = async (
  udp: ReturnType<typeof createSocket>,
  tcp: ReturnType<typeof createServer>,
): Promise<number> => {
  for (;;) {
    tcp.listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    const { port } = tcp.address() as AddressInfo;
    udp.bind(port, '127.0.0.1');
    const bound = await once(udp, 'listening').then(
      () => true,
      () => false,
    );
    if (bound) return port;
    tcp.close();
    await once(tcp, 'close');
  }
};

export type NameServer = Awaited<ReturnType<typeof startNameServer>>;

export const startNameServer = async (t: Teardown, given: Readonly<Record<string, Zone>> = {}) => {
  const zones = new Map(Object.entries(given));
  /** Names in query order. A and AAAA queries are listed separately. */
  const asked: string[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const sockets = new Set<Socket>();

  const handle = (query: dns.Packet, most: number, send: (answer: Buffer) => void): void => {
    const name = query.questions?.[0]?.name.toLowerCase() ?? '';
    asked.push(name);
    const zone = zones.get(name) ?? { rcode: 3 };
    if (zone.silent === true) return;
    const answer = answerTo(query, zone, most);
    if (zone.delay_ms === undefined) send(answer);
    else timers.add(setTimeout(() => send(answer), zone.delay_ms));
  };

  const udp = createSocket('udp4');
  udp.on('message', (query, from) => {
    handle(dns.decode(query), max_udp, (answer) => udp.send(answer, from.port, from.address));
  });
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    let got = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk]);
      while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
        const end = 2 + got.readUInt16BE(0);
        handle(dns.decode(got.subarray(2, end)), max_tcp, (answer) => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length, 0);
          socket.write(Buffer.concat([length, answer]));
        });
        got = got.subarray(end);
      }
    });
  });
  const port = await bindBoth(udp, tcp);
  t.teardown(() => {
    for (const timer of timers) clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
    udp.close();
    tcp.close();
  });
  return {
    server: `127.0.0.1:${port}`,
    asked: asked as readonly string[],
    /** Changes the answers for a name from now on. */
    set: (name: string, zone: Zone) => void zones.set(name, zone),
  };
};
