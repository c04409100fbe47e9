import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { t } from 'tap';
import { makeAddressReader } from '../../src/http/request.js';
import { parseRange } from '../../src/kit/outbound/addresses.js';
import { holds } from '../help/property.js';

/** An address as uWebSockets.js gives it: its raw bytes, read as latin1. */
const raw = (text: string): string =>
  Buffer.from(ipaddr.parse(text).toByteArray()).toString('latin1');

const direct = makeAddressReader([]);
const behind = makeAddressReader(['10.0.0.0/8', '192.168.1.1', 'fd00::/8']);

t.test('an IPv4 address is counted by itself', async (t) => {
  t.same(direct(raw('203.0.113.7'), ''), { text: '203.0.113.7', limit_key: '203.0.113.7' });
  t.not(direct(raw('203.0.113.8'), '').limit_key, '203.0.113.7');
});

t.test('IPv6 addresses are counted by their /64', async (t) => {
  const one = direct(raw('2001:db8:1:2:3:4:5:6'), '');
  t.same(one, { text: '2001:db8:1:2:3:4:5:6', limit_key: '2001:db8:1:2::/64' });
  t.equal(direct(raw('2001:db8:1:2::1'), '').limit_key, one.limit_key, 'the same network');
  t.equal(direct(raw('2001:db8:1:3::1'), '').limit_key, '2001:db8:1:3::/64', 'the next one');
});

t.test('an IPv4 address in IPv6 clothes is that IPv4 address', async (t) => {
  t.same(direct(raw('::ffff:203.0.113.7'), ''), direct(raw('203.0.113.7'), ''));
  t.equal(behind(raw('::ffff:10.0.0.1'), '203.0.113.7').text, '203.0.113.7', 'a trusted one too');
  t.equal(behind(raw('10.0.0.1'), '::ffff:203.0.113.7').text, '203.0.113.7', 'in the header too');
});

t.test('without trusted proxies the header means nothing', async (t) => {
  t.equal(direct(raw('203.0.113.7'), '198.51.100.1').text, '203.0.113.7');
});

t.test('from an address that is no trusted proxy the header means nothing', async (t) => {
  t.equal(behind(raw('203.0.113.7'), '198.51.100.1').text, '203.0.113.7');
  t.equal(behind(raw('11.0.0.1'), '198.51.100.1').text, '11.0.0.1', 'one past the range');
  t.equal(behind(raw('192.168.1.2'), '198.51.100.1').text, '192.168.1.2', 'beside a single one');
});

t.test('behind trusted proxies the last address that is none of them is the client', async (t) => {
  t.equal(behind(raw('10.0.0.1'), '198.51.100.1').text, '198.51.100.1');
  t.equal(behind(raw('10.0.0.1'), '198.51.100.1, 10.2.3.4, 192.168.1.1').text, '198.51.100.1');
  t.equal(behind(raw('fd00::1'), '2001:db8::5').limit_key, '2001:db8:0:0::/64');
  t.equal(behind(raw('10.0.0.1'), '').text, '10.0.0.1', 'no header: the proxy itself');
  t.equal(behind(raw('10.0.0.1'), '10.2.3.4').text, '10.2.3.4', 'a client inside the range');
});

t.test('what a client writes into the header itself is not believed', async (t) => {
  t.equal(behind(raw('10.0.0.1'), '1.1.1.1, 198.51.100.1').text, '198.51.100.1');
  t.equal(behind(raw('10.0.0.1'), '10.9.9.9, 198.51.100.1').text, '198.51.100.1');
  t.equal(behind(raw('10.0.0.1'), 'nonsense, 198.51.100.1, 10.2.3.4').text, '198.51.100.1');
  const long = Array.from({ length: 500 }, (_, n) => `1.2.${n >> 8}.${n & 255}`).join(', ');
  t.equal(behind(raw('10.0.0.1'), `${long}, 198.51.100.1`).text, '198.51.100.1');
});

t.test('at a hop that is no address the last one that was understood counts', async (t) => {
  for (const header of ['unknown', '', ',', ' , ', '999.1.1.1', '198.51.100.1:5000', '<script>']) {
    t.equal(behind(raw('10.0.0.1'), header).text, '10.0.0.1', JSON.stringify(header));
  }
  t.equal(behind(raw('10.0.0.1'), '198.51.100.1, unknown, 10.2.3.4').text, '10.2.3.4');
});

t.test('a client cannot choose under which name it is counted', async (t) => {
  const v4 = fc.ipV4();
  const hops = fc.array(fc.oneof(v4, fc.ipV6(), fc.string({ maxLength: 20 })), { maxLength: 5 });
  await holds(
    t,
    fc.property(hops, (forged) => {
      const header = [...forged.map((hop) => hop.replaceAll(',', '')), '198.51.100.1'].join(', ');
      return (
        behind(raw('10.0.0.1'), header).limit_key === '198.51.100.1' &&
        behind(raw('203.0.113.7'), header).limit_key === '203.0.113.7' &&
        direct(raw('203.0.113.7'), header).limit_key === '203.0.113.7'
      );
    }),
  );
});

t.test('a reader that has seen more addresses than it remembers still reads right', async (t) => {
  const reader = makeAddressReader([]);
  for (let n = 0; n < 10_050; n += 1) reader(raw(`10.1.${n >> 8}.${n & 255}`), '');
  t.equal(reader(raw('10.1.0.3'), '').text, '10.1.0.3');
  t.equal(reader(raw('10.1.39.65'), '').text, '10.1.39.65');
});

t.test('a range that is none is refused at the start', async (t) => {
  for (const bad of ['10.0.0.0/33', 'example.com', '', '10.0.0.0/-1', '10.0.0.0/8/8']) {
    t.throws(() => parseRange(bad));
  }
});
