import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Teardown } from './stores.js';

/**
 * A name server of the test's own over UDP, just enough of RFC 1035: one question, A and AAAA
 * answers, behind a CNAME where one is given.
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

const answerTo = (query: Buffer, zone: Zone): Buffer => {
  const { type, end } = readQuestion(query);
  const addresses = (type === type_a ? zone.a : type === type_aaaa ? zone.aaaa : undefined) ?? [];
  const alias = zone.cname === undefined ? undefined : nameBytes(zone.cname);
  const records = [
    ...(alias === undefined ? [] : [makeRecord(asked_name, type_cname, alias)]),
    ...addresses.map((one) => makeRecord(alias ?? asked_name, type, addressBytes(one))),
  ];
  const header = Buffer.alloc(12);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(0x8180 | (zone.rcode ?? 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...records]);
};

export const startNameServer = async (
  t: Teardown,
  given: Readonly<Record<string, Zone>> = {},
): Promise<NameServer> => {
  const zones = new Map(Object.entries(given));
  const asked: string[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const udp = createSocket('udp4');
  udp.on('message', (query, from) => {
    const { name } = readQuestion(query);
    asked.push(name);
    const zone = zones.get(name) ?? { rcode: 3 };
    if (zone.silent === true) return;
    const send = (): void => udp.send(answerTo(query, zone), from.port, from.address);
    if (zone.delay_ms === undefined) send();
    else timers.add(setTimeout(send, zone.delay_ms));
  });
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  t.teardown(() => {
    for (const timer of timers) clearTimeout(timer);
    udp.close();
  });
  return {
    server: `127.0.0.1:${udp.address().port}`,
    asked,
    set: (name, zone) => void zones.set(name, zone),
  };
};
