import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/**
 * A name server of the test's own on one port of UDP and TCP, just enough of RFC 1035: one
 * question, A and AAAA answers, behind a CNAME where one is given. What does not fit into a
 * datagram is asked for again over TCP, and what does not fit there is left out.
 */

export interface Zone {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  /** The name that the addresses belong to. */
  readonly cname?: string;
  readonly rcode?: number;
  /** No answer at all. */
  readonly silent?: boolean;
  readonly delay_ms?: number;
}

export interface NameServer {
  /** `address:port` */
  readonly server: string;
  /** Names in the order of the questions, one for each type. */
  readonly asked: readonly string[];
  /** What is said from now on. */
  set(name: string, zone: Zone): void;
}

const type_a = 1;
const type_cname = 5;
const type_aaaa = 28;
const most_udp = 512;
const most_tcp = 65_535;
const truncated = 0x0200;

const readQuestion = (query: Buffer) => {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('ascii', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
};

/** Eight groups for IPv6: no `::`. */
const addressBytes = (address: string): Buffer =>
  address.includes(':')
    ? Buffer.from(
        address
          .split(':')
          .map((group) => group.padStart(4, '0'))
          .join(''),
        'hex',
      )
    : Buffer.from(address.split('.').map(Number));

const nameBytes = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ]);

const makeRecord = (owner: Buffer, type: number, data: Buffer): Buffer => {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(0, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, fixed, data]);
};

const asked_name = Buffer.from([0xc0, 0x0c]);

const answerTo = (query: Buffer, zone: Zone, most: number): Buffer => {
  const { type, end } = readQuestion(query);
  const addresses = (type === type_a ? zone.a : type === type_aaaa ? zone.aaaa : undefined) ?? [];
  const alias = zone.cname === undefined ? undefined : nameBytes(zone.cname);
  const records = [
    ...(alias === undefined ? [] : [makeRecord(asked_name, type_cname, alias)]),
    ...addresses.map((one) => makeRecord(alias ?? asked_name, type, addressBytes(one))),
  ];
  let size = end;
  const fitting = records.filter(({ length }) => {
    size += length;
    return size <= most;
  });
  const is_cut = fitting.length < records.length && most === most_udp;
  const header = Buffer.alloc(12);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(0x8180 | (zone.rcode ?? 0) | (is_cut ? truncated : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(fitting.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...fitting]);
};

interface Parts {
  readonly udp: ReturnType<typeof createSocket>;
  readonly tcp: ReturnType<typeof createServer>;
}

/** Binds both to one port: the one that TCP got may be taken for UDP. */
const bindBoth = async ({ udp, tcp }: Parts): Promise<number> => {
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

export const startNameServer = async (
  t: Teardown,
  given: Readonly<Record<string, Zone>> = {},
): Promise<NameServer> => {
  const zones = new Map(Object.entries(given));
  const asked: string[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const sockets = new Set<Socket>();

  const handle = (query: Buffer, most: number, send: (answer: Buffer) => void): void => {
    const { name } = readQuestion(query);
    asked.push(name);
    const zone = zones.get(name) ?? { rcode: 3 };
    if (zone.silent === true) return;
    const answer = answerTo(query, zone, most);
    if (zone.delay_ms === undefined) send(answer);
    else timers.add(setTimeout(() => send(answer), zone.delay_ms));
  };

  const udp = createSocket('udp4');
  udp.on('message', (query, from) => {
    handle(query, most_udp, (answer) => udp.send(answer, from.port, from.address));
  });
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    let got = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk]);
      while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
        const end = 2 + got.readUInt16BE(0);
        handle(got.subarray(2, end), most_tcp, (answer) => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length, 0);
          socket.write(Buffer.concat([length, answer]));
        });
        got = got.subarray(end);
      }
    });
  });
  const port = await bindBoth({ udp, tcp });
  t.teardown(() => {
    for (const timer of timers) clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
    udp.close();
    tcp.close();
  });
  return {
    server: `127.0.0.1:${port}`,
    asked,
    set: (name, zone) => void zones.set(name, zone),
  };
};
