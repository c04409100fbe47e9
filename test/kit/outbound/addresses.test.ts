import fc from 'fast-check';
import type { Test } from 'tap';
import {
  canonicalAddress,
  makeAddressRules,
  makeResolve,
  vetName,
} from '../../../src/kit/outbound/addresses.js';
import { startNameServer, type Zone } from '../../help/name-server.js';
import { t } from '../../help/tap.js';

const rules = makeAddressRules([]);

/** A range, the address before it (if that is public), and its first and last address. */
const edges = [
  ['0/8', '', '0.0.0.0', '0.255.255.255'],
  ['10/8', '9.255.255.255', '10.0.0.0', '10.255.255.255'],
  ['100.64/10', '100.63.255.255', '100.64.0.0', '100.127.255.255'],
  ['127/8', '126.255.255.255', '127.0.0.0', '127.255.255.255'],
  ['169.254/16', '169.253.255.255', '169.254.0.0', '169.254.255.255'],
  ['172.16/12', '172.15.255.255', '172.16.0.0', '172.31.255.255'],
  ['192.0.0/24', '191.255.255.255', '192.0.0.0', '192.0.0.255'],
  ['192.0.2/24', '192.0.1.255', '192.0.2.0', '192.0.2.255'],
  ['192.88.99/24', '192.88.98.255', '192.88.99.0', '192.88.99.255'],
  ['192.168/16', '192.167.255.255', '192.168.0.0', '192.168.255.255'],
  ['198.18/15', '198.17.255.255', '198.18.0.0', '198.19.255.255'],
  ['198.51.100/24', '198.51.99.255', '198.51.100.0', '198.51.100.255'],
  ['203.0.113/24', '203.0.112.255', '203.0.113.0', '203.0.113.255'],
  ['224/4 and 240/4', '223.255.255.255', '224.0.0.0', '255.255.255.255'],
  ['168.63.129.16', '168.63.129.15', '168.63.129.16', '168.63.129.16'],
  ['::/8', '', '::', 'ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['64:ff9b::/96', '', '64:ff9b::', '64:ff9b::ffff:ffff'],
  ['64:ff9b:1::/48', '', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::/64', '', '100::', '100::ffff:ffff:ffff:ffff'],
  ['2001::/23', '2000:ffff::1', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::/32', '2001:db7:ffff::', '2001:db8::', '2001:db8:ffff::ffff'],
  ['2002::/16', '2001:ffff::', '2002::', '2002:ffff::ffff'],
  ['3fff::/20', '3ffe:ffff::', '3fff::', '3fff:fff:ffff::'],
  ['5f00::/16', '5eff:ffff::', '5f00::', '5f00:ffff::'],
  ['fc00::/7', 'fbff:ffff::', 'fc00::', 'fdff:ffff::'],
  ['fe80::/10 and fec0::/10', 'fe7f:ffff::', 'fe80::', 'feff:ffff::'],
  ['ff00::/8', '', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['mapped', '', '::ffff:8.8.8.8', '::ffff:1.1.1.1'],
  ['zones', '', 'fe80::1%eth0', '2606:4700::1%lo'],
] as const;

t.test('addresses of a refused range may not be reached, the one before may', async (t) => {
  for (const [range, last_outside, first, last] of edges) {
    t.equal(rules.mayReach(first), false, `${range}: ${first}`);
    t.equal(rules.mayReach(last), false, `${range}: ${last}`);
    if (last_outside !== '') t.equal(rules.mayReach(last_outside), true, last_outside);
  }
});

t.test('public addresses may be reached, and what is no address may not', async (t) => {
  for (const address of ['1.1.1.1', '8.8.8.8', '223.255.255.255', '172.32.0.0', '192.0.1.0']) {
    t.equal(rules.mayReach(address), true, address);
  }
  for (const address of ['2606:4700:4700::1111', '2a00::1', '2001:200::1', '2400:cb00::1']) {
    t.equal(rules.mayReach(address), true, address);
  }
  for (const text of ['', 'localhost', '127.1', '0x7f000001', '1.1.1.1 ', '01.1.1.1', '::g']) {
    t.equal(rules.mayReach(text), false, text);
  }
});

t.test('an IPv4 address carried in an IPv6 one is never reached', async () => {
  const octet = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const v4 = octets.join('.');
      return [`::ffff:${v4}`, `::${v4}`, `::ffff:0:${v4}`, `64:ff9b::${v4}`].every(
        (text) => !rules.mayReach(text),
      );
    }),
  );
});

t.test('ranges that are no ranges are refused at the start', async (t) => {
  const bad = ['10.0.0.0/33', 'fd00::/129', 'localhost', '10.0.0/8', '::1%lo', '1.1.1.1/x'];
  for (const range of [...bad, 'example.com', '', '10.0.0.0/-1', '10.0.0.0/8/8']) {
    t.throws(() => makeAddressRules([range]), { message: /is not an address range/ }, range);
  }
  t.doesNotThrow(() => makeAddressRules(['10.0.0.0/32', 'fd00::/128', '10.1.2.3', '::1']));
});

t.test('two spellings of one address compare equal', async (t) => {
  t.equal(canonicalAddress('::ffff:127.0.0.1'), '127.0.0.1');
  t.equal(canonicalAddress('2001:0DB8:0::1'), canonicalAddress('2001:db8::1'));
  t.not(canonicalAddress('127.0.0.1'), canonicalAddress('127.0.0.2'));
});

/** The verdict on a name that resolves as `resolve` says. */
const vetBy = (resolve: () => Promise<string[]>) =>
  vetName('hooks.acme.com', { rules, resolve, timeout_ms: 1_000 });

t.test('16 answers are taken and 17 are not', async (t) => {
  const many = (count: number) => async () => Array.from({ length: count }, (_, i) => `1.1.1.${i}`);
  t.match(await vetBy(many(16)), { kind: 'vetted' });
  t.match(await vetBy(many(17)), { kind: 'refused', code: 'address_refused' });
});

t.test('a lookup that fails is told apart from a name that is absent', async (t) => {
  for (const [code, outcome] of [
    ['ENOTFOUND', 'name_not_found'],
    ['ENODATA', 'name_not_found'],
    ['ESERVFAIL', 'lookup_failed'],
    ['ETIMEOUT', 'lookup_timeout'],
  ] as const) {
    const failing = () => Promise.reject(Object.assign(new Error(code), { code }));
    t.match(await vetBy(failing), { code: outcome }, code);
  }
});

const setUp = async (t: Test, zones: Readonly<Record<string, Zone>>, timeout_ms = 2_000) => {
  const { server, asked } = await startNameServer(t, zones);
  const resolve = makeResolve(timeout_ms, [server]);
  const vet = (name: string) => vetName(name, { rules, resolve, timeout_ms });
  return { vet, asked };
};

t.test('A and AAAA are asked of the name server, not of the hosts file', async (t) => {
  const v6 = '2606:4700:4700:0:0:0:0:1111';
  const { vet, asked } = await setUp(t, {
    'both.acme.com': { a: ['1.1.1.1', '1.0.0.1'], aaaa: [v6] },
    'four.acme.com': { a: ['1.1.1.1'] },
    'six.acme.com': { aaaa: [v6] },
  });
  t.match(await vet('both.acme.com'), {
    kind: 'vetted',
    addresses: ['1.0.0.1', '1.1.1.1', '2606:4700:4700::1111'],
  });
  t.match(await vet('four.acme.com'), { kind: 'vetted', addresses: ['1.1.1.1'] });
  t.match(await vet('six.acme.com'), { kind: 'vetted' });
  t.match(await vet('localhost'), { kind: 'refused' });
  t.equal(asked.filter((name) => name === 'both.acme.com').length, 2);
});

t.test('one private address among public ones refuses the name', async (t) => {
  const { vet } = await setUp(t, {
    'a.acme.com': { a: ['1.1.1.1', '192.168.0.1'] },
    'b.acme.com': { a: ['1.1.1.1'], aaaa: ['fd00:0:0:0:0:0:0:1'] },
    'c.acme.com': { a: ['1.1.1.1'], aaaa: ['0:0:0:0:0:ffff:7f00:1'] },
    'd.acme.com': { a: ['169.254.169.254'] },
  });
  for (const name of ['a', 'b', 'c', 'd']) {
    t.match(await vet(`${name}.acme.com`), { kind: 'refused', code: 'address_refused' }, name);
  }
});

t.test('names that are absent, empty, broken or silent are told apart', async (t) => {
  const zones = { empty: {}, broken: { rcode: 2 }, silent: { silent: true } };
  const named = Object.entries(zones).map(([name, zone]) => [`${name}.acme.com`, zone]);
  const { vet } = await setUp(t, Object.fromEntries(named), 300);
  for (const [name, code] of [
    ['absent', 'name_not_found'],
    ['empty', 'name_not_found'],
    ['broken', 'lookup_failed'],
    ['silent', 'lookup_timeout'],
  ] as const) {
    t.match(await vet(`${name}.acme.com`), { kind: 'refused', code }, name);
  }
});

t.test('an alias counts as what it leads to', async (t) => {
  const { vet } = await setUp(t, {
    'lead.acme.com': { cname: 'localhost', a: ['127.0.0.1'] },
    'six.acme.com': { cname: 'localhost', aaaa: ['0:0:0:0:0:0:0:1'] },
    'bare.acme.com': { cname: 'localhost' },
    'good.acme.com': { cname: 'hooks.acme.org', a: ['1.1.1.1'] },
  });
  t.match(await vet('lead.acme.com'), { kind: 'refused', code: 'address_refused' });
  t.match(await vet('six.acme.com'), { kind: 'refused', code: 'address_refused' });
  t.match(await vet('bare.acme.com'), { kind: 'refused', code: 'name_not_found' });
  t.match(await vet('good.acme.com'), { kind: 'vetted', addresses: ['1.1.1.1'] });
});
