import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { t } from 'tap';
import { connectBulkSocket } from '../../src/kit/pg/bulk-socket.js';
import { openSql } from '../../src/kit/pg/client.js';
import { openStores } from '../help/stores.js';

/** Sockets that read into one memory: whole messages, however they were cut on the way. */

const message = (bytes: number, fill: number): Buffer => {
  const made = Buffer.alloc(5 + bytes, fill);
  made.write('D', 0, 'latin1');
  made.writeUInt32BE(4 + bytes, 1);
  return made;
};

/** Lengths around the size of the memory, and very many short ones. */
const lengths = [
  ...Array.from({ length: 30_000 }, (_, n) => n % 50),
  ...[262_138, 262_139, 262_140, 1_000_000, 0, 1, 229_371, 40_000, 3_000_000, 7],
  ...Array.from({ length: 200 }, (_, n) => (n * 7919) % 70_001),
];
const sent = Buffer.concat(lengths.map((bytes, n) => message(bytes, n % 251)));

t.test('every message arrives whole, in its order, with nothing between', async (t) => {
  const server = net.createServer((socket) => {
    let at = 0;
    const sendMore = (): void => {
      for (let n = 1; at < sent.byteLength; n += 1) {
        const bytes = 1 + ((at * 31 + n) % 90_000);
        const part = sent.subarray(at, at + bytes);
        at += part.byteLength;
        if (!socket.write(part)) return;
      }
      socket.end();
    };
    socket.on('drain', sendMore);
    sendMore();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const socket = connectBulkSocket({ host: '127.0.0.1', port });
  const got: Buffer[] = [];
  let is_whole = true;
  socket.on('data', (messages: Buffer) => {
    let at = 0;
    while (at < messages.byteLength) at += 1 + messages.readUInt32BE(at + 1);
    is_whole &&= at === messages.byteLength;
    got.push(Buffer.from(messages));
  });
  await once(socket, 'close');
  t.ok(is_whole, 'no part of a message was handed over');
  t.ok(Buffer.concat(got).equals(sent));
});

t.test('Postgres is spoken to over it like over any other', async (t) => {
  const { database_url } = await openStores(t);
  const address = { url: database_url, pool: 1, prepare: true, name: 'bulk' };
  const sql = openSql({ ...address, reads_much: true });
  t.teardown(() => sql.end({ timeout: 5 }));
  const [long] = await sql<{ text: string; n: number }[]>`
    select repeat('é', 1000000) as text, 7 as n`;
  t.equal(long?.text, 'é'.repeat(1_000_000));
  t.equal(long?.n, 7);
  let rows = 0;
  let bytes = 0;
  await sql`select repeat('x', n % 3000) as text from generate_series(1, 20000) as n`
    .raw()
    .forEach((row) => {
      rows += 1;
      bytes += (row as unknown as [Buffer])[0].byteLength;
    });
  const expected = Array.from({ length: 20_000 }, (_, n) => (n + 1) % 3_000);
  t.strictSame(
    { rows, bytes },
    { rows: expected.length, bytes: expected.reduce((sum, one) => sum + one, 0) },
  );
  await t.rejects(sql`select 1 / 0`, { code: '22012' });
  t.strictSame(
    (await sql<{ one: number }[]>`select 1 as one`).map(({ one }) => one),
    [1],
  );
});
