import { type Test, test } from 'tap';
import { makeAddressRules } from '../../src/kit/outbound/addresses.js';
import { makeResolve, vetName } from '../../src/kit/outbound/resolve.js';
import { startNameServer, type Zone } from '../help/name-server.js';

const rules = makeAddressRules([]);

const setUp = async (t: Test, zones: Readonly<Record<string, Zone>>, timeout_ms = 2_000) => {
  const names = await startNameServer(t, zones);
  const { server, asked } = names;
  const resolve = makeResolve({ timeout_ms, servers: [server] });
  const vet = (name: string) => vetName(name, { rules, resolve, timeout_ms });
  return { vet, asked, names };
};

test('A and AAAA are asked of the name server, not of the hosts file', async (t) => {
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

test('one private address among public ones refuses the name', async (t) => {
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

test('names that are absent, empty or broken are told apart', async (t) => {
  const { vet } = await setUp(t, {
    'empty.acme.com': {},
    'broken.acme.com': { rcode: 2 },
  });
  t.match(await vet('absent.acme.com'), { code: 'name_not_found' });
  t.match(await vet('empty.acme.com'), { code: 'name_not_found' });
  t.match(await vet('broken.acme.com'), { code: 'lookup_failed' });
});

test('a name server that is silent ends a lookup at its time limit', async (t) => {
  const { vet } = await setUp(t, { 'silent.acme.com': { silent: true } }, 300);
  t.match(await vet('silent.acme.com'), { kind: 'refused', code: 'lookup_timeout' });
});

test('10,000 answers are asked for over TCP and refused', async (t) => {
  const a = Array.from({ length: 10_000 }, (_, n) => `1.1.${n >> 8}.${n & 255}`);
  const { vet, names } = await setUp(t, { 'many.acme.com': { a } }, 5_000);
  t.match(await vet('many.acme.com'), { kind: 'refused', code: 'address_refused' });
  t.ok(names.over_tcp >= 1);
});

test('an alias counts as what it leads to', async (t) => {
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
