import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { makeAddressReader, readTrace } from '../../src/http/call.js';
import { holds } from '../help/property.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';

/** An address as uWebSockets.js gives it: its raw bytes, as latin1. */
const raw = (text: string): string =>
  Buffer.from(ipaddr.parse(text).toByteArray()).toString('latin1');

const readDirect = makeAddressReader([]);
const readProxied = makeAddressReader(['10.0.0.0/8', '192.168.1.1', 'fd00::/8']);
const direct = (remote: string, header = '') => readDirect(raw(remote), header);
const proxied = (remote: string, header: string) => readProxied(raw(remote), header).text;

t.test('a client that is gone has no address', async (t) => {
  t.equal(readDirect('', '').text, '::');
});

t.test('an IPv4 address is counted by itself, an IPv6 address by its /64', async (t) => {
  t.same(direct('203.0.113.7'), { text: '203.0.113.7', limit_key: '203.0.113.7' });
  t.same(direct('2001:db8:1:2:3:4:5:6'), {
    text: '2001:db8:1:2:3:4:5:6',
    limit_key: '2001:db8:1:2::/64',
  });
  t.equal(direct('2001:db8:1:2::1').limit_key, '2001:db8:1:2::/64', 'the same network');
  t.equal(direct('2001:db8:1:3::1').limit_key, '2001:db8:1:3::/64', 'the next one');
  t.same(direct('::ffff:203.0.113.7'), direct('203.0.113.7'), 'IPv4 in IPv6 is IPv4');
});

t.test('X-Forwarded-For is believed as far as trusted proxies wrote it', async (t) => {
  const long = Array.from({ length: 500 }, (_, n) => `1.2.${n >> 8}.${n & 255}`).join(', ');
  const client = '198.51.100.1';
  const cases: readonly (readonly [remote: string, header: string, client: string])[] = [
    ['203.0.113.7', client, '203.0.113.7'],
    ['11.0.0.1', client, '11.0.0.1'],
    ['192.168.1.2', client, '192.168.1.2'],
    ['10.0.0.1', client, client],
    ['10.0.0.1', `${client}, 10.2.3.4, 192.168.1.1`, client],
    ['fd00::1', '2001:db8::5', '2001:db8::5'],
    ['::ffff:10.0.0.1', client, client],
    ['10.0.0.1', `::ffff:${client}`, client],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '10.2.3.4', '10.2.3.4'],
    // The client itself sent a value in the header.
    ['10.0.0.1', `1.1.1.1, ${client}`, client],
    ['10.0.0.1', `10.9.9.9, ${client}`, client],
    ['10.0.0.1', `nonsense, ${client}, 10.2.3.4`, client],
    ['10.0.0.1', `${long}, ${client}`, client],
    // If a hop is not a valid address, the last valid one counts.
    ['10.0.0.1', `${client}, unknown, 10.2.3.4`, '10.2.3.4'],
  ];
  for (const [remote, header, expected] of cases) {
    t.equal(proxied(remote, header), expected, `${remote}, ${header.slice(-40)}`);
    t.same(direct(remote, header), direct(remote), 'without trusted proxies it means nothing');
  }
  for (const header of ['unknown', ',', ' , ', '999.1.1.1', '198.51.100.1:5000', '<script>']) {
    t.equal(proxied('10.0.0.1', header), '10.0.0.1', header);
  }
});

t.test('a client cannot choose under which name it is counted', async (t) => {
  const v4 = fc.ipV4();
  const hops = fc.array(fc.oneof(v4, fc.ipV6(), fc.string({ maxLength: 20 })), { maxLength: 5 });
  await holds(
    t,
    fc.property(hops, (forged) => {
      const header = [...forged.map((hop) => hop.replaceAll(',', '')), '198.51.100.1'].join(', ');
      return (
        proxied('10.0.0.1', header) === '198.51.100.1' &&
        proxied('203.0.113.7', header) === '203.0.113.7' &&
        direct('203.0.113.7', header).limit_key === '203.0.113.7'
      );
    }),
  );
});

t.test('a reader that has seen more addresses than it remembers still reads right', async (t) => {
  const read = makeAddressReader([]);
  for (let n = 0; n < 10_050; n += 1) read(raw(`10.1.${n >> 8}.${n & 255}`), '');
  for (const address of ['10.1.0.3', '10.1.39.65']) t.equal(read(raw(address), '').text, address);
});

/** W3C Trace Context, with the cases from its recommendation. */

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736';
const span_id = '00f067aa0ba902b7';
const parent = `00-${trace_id}-${span_id}-01`;

t.test('a good traceparent is read, also one of a later version', async (t) => {
  for (const good of [
    parent,
    `00-${trace_id}-${span_id}-00`,
    `00-${trace_id}-${span_id}-ff`,
    `cc-${trace_id}-${span_id}-01`,
    `cc-${trace_id}-${span_id}-01-what-comes-later`,
  ]) {
    t.same(readTrace(good), { trace_id, span_id }, good);
  }
});

t.test('a wrong traceparent is no trace', async (t) => {
  const wrong = [
    '',
    '00',
    parent.slice(0, -1),
    `${parent}0`,
    `${parent}-`,
    `${parent}-more`,
    ` ${parent}`,
    parent.toUpperCase(),
    parent.replaceAll('-', '_'),
    parent.replace('a', 'g'),
    `ff${parent.slice(2)}`,
    `cc${parent.slice(2)}.more`,
    `${parent},${parent}`,
    `00-${'0'.repeat(32)}-${span_id}-01`,
    `00-${trace_id}-${'0'.repeat(16)}-01`,
  ];
  for (const given of wrong) t.equal(readTrace(given), null, given);
});

t.test('log lines of a request name its trace, and no request fails by it', async (t) => {
  const app = await startToyApp(t);
  const connection = openRaw(app.port);
  const lineOf = async (name: string, path: string, headers: readonly string[]) => {
    connection.write(writeRequest(`GET ${path} HTTP/1.1`, [`X-Request-Id: ${name}`, ...headers]));
    await connection.next();
    return app.logged.filter(({ request_id }) => request_id === name);
  };
  const traced = await lineOf('traced', '/api/toys', [`Traceparent: ${parent}`]);
  t.match(traced, [{ status: 200, trace_id, span_id }]);
  const thrown = await lineOf('thrown', '/throws', [`traceparent: ${parent}`]);
  t.match(thrown, [
    { level: 50, trace_id, span_id },
    { status: 500, trace_id, span_id },
  ]);
  for (const headers of [
    [],
    ['traceparent: 00-nonsense'],
    [`traceparent: ${parent}`, `traceparent: ${parent}`],
  ]) {
    const [line] = await lineOf(`none-${headers.length}`, '/api/toys', headers);
    t.equal(line?.['status'], 200);
    t.notOk('trace_id' in (line ?? {}), `no trace by ${headers.length} headers`);
  }
});
