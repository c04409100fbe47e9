import fc from 'fast-check';
import { test } from 'tap';
import { canonicalAddress, makeAddressRules } from '../../src/kit/outbound/addresses.js';
import { vetName } from '../../src/kit/outbound/resolve.js';
import { parseTarget, type TargetProblemCode } from '../../src/kit/outbound/target.js';
import { bad_targets as bad, longUrl as long } from '../help/bad-targets.js';

const rules = makeAddressRules([]);
const codeOf = (url: string): TargetProblemCode | 'good' => {
  const target = parseTarget(url, rules);
  return target.kind === 'problem' ? target.code : 'good';
};

for (const [code, urls] of Object.entries(bad)) {
  for (const url of urls) {
    test(`${code}: ${JSON.stringify(url.slice(0, 60))}`, (t) => {
      t.equal(codeOf(url), code);
      t.end();
    });
  }
}

const good: readonly (readonly [given: string, href: string])[] = [
  ['https://hooks.acme.com/a?b=c', 'https://hooks.acme.com/a?b=c'],
  ['https://HOOKS.acme.com', 'https://hooks.acme.com/'],
  ['https://hooks.acme.com./x', 'https://hooks.acme.com/x'],
  ['https://hooks.acme.com:443/', 'https://hooks.acme.com/'],
  ['https://hooks.acme.com:8443/', 'https://hooks.acme.com:8443/'],
  ['https://hooks.acme.com:10000/', 'https://hooks.acme.com:10000/'],
  ['https://hooks.acme.com:65535/', 'https://hooks.acme.com:65535/'],
  ['https://bücher.de/', 'https://xn--bcher-kva.de/'],
  ['https://example.com/', 'https://example.com/'],
  ['https://my-test.lan.acme.io/', 'https://my-test.lan.acme.io/'],
  ['https://mylocalhost.com/', 'https://mylocalhost.com/'],
  ['https://a_b.acme.com/', 'https://a_b.acme.com/'],
  ['https://hooks.acme.com/%23', 'https://hooks.acme.com/%23'],
  [long(2_048), long(2_048)],
];

for (const [given, href] of good) {
  test(`taken: ${given.slice(0, 60)}`, (t) => {
    const target = parseTarget(given, rules);
    t.equal(target.kind === 'target' ? target.href : target.sentence, href);
    t.end();
  });
}

test('a problem repeats nothing of what was sent', (t) => {
  for (const url of Object.values(bad).flat()) {
    const target = parseTarget(url, rules);
    if (target.kind === 'target') t.fail(url);
    else if (url.length > 12) t.notMatch(target.sentence, url);
  }
  t.end();
});

test('an IP literal is taken inside an allowed range only', (t) => {
  const lab = makeAddressRules(['127.0.0.0/8', 'fd00:1::/32']);
  const kind = (url: string): string => parseTarget(url, lab).kind;
  t.equal(kind('https://127.0.0.1:10000/'), 'target');
  t.equal(kind('https://[fd00:1::9]/'), 'target');
  t.equal(kind('https://[fd00:2::9]/'), 'problem');
  t.equal(kind('https://10.0.0.1/'), 'problem');
  t.equal(kind('https://[::ffff:127.0.0.1]/'), 'problem');
  t.equal(kind('https://localhost/'), 'problem', 'names keep their rules');
  t.equal(kind('http://127.0.0.1/'), 'problem', 'https stays required');
  t.end();
});

test('of this machine only ports from 10000 upwards are taken, where it is allowed at all', (t) => {
  const lab = makeAddressRules(['127.0.0.0/8', '::1', '10.0.0.0/8']);
  const kind = (url: string): string => parseTarget(url, lab, true).kind;
  for (const host of ['127.0.0.1', '127.9.9.9', '[::1]']) {
    for (const port of [80, 443, 5432, 6379, 8080, 8443, 9999]) {
      t.equal(kind(`https://${host}:${port}/`), 'problem', `https ${host} ${port}`);
      t.equal(kind(`http://${host}:${port}/`), 'problem', `http ${host} ${port}`);
    }
    t.equal(kind(`https://${host}:10000/`), 'target');
  }
  t.match(parseTarget('https://127.0.0.1/', lab), { sentence: /10000 or above/ });
  t.equal(kind('https://10.0.0.1:8443/'), 'target', 'another machine keeps the usual ports');
  t.end();
});

const edges: readonly (readonly [
  range: string,
  last_outside: string,
  first: string,
  last: string,
])[] = [
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
];

for (const [range, last_outside, first, last] of edges) {
  test(`addresses of ${range} may not be reached, the one before may`, (t) => {
    t.equal(rules.mayReach(first), false, first);
    t.equal(rules.mayReach(last), false, last);
    if (last_outside !== '') t.equal(rules.mayReach(last_outside), true, last_outside);
    t.end();
  });
}

test('public addresses may be reached, and what is no address may not', (t) => {
  for (const address of ['1.1.1.1', '8.8.8.8', '223.255.255.255', '172.32.0.0', '192.0.1.0']) {
    t.equal(rules.mayReach(address), true, address);
  }
  for (const address of ['2606:4700:4700::1111', '2a00::1', '2001:200::1', '2400:cb00::1']) {
    t.equal(rules.mayReach(address), true, address);
  }
  for (const text of ['', 'localhost', '127.1', '0x7f000001', '1.1.1.1 ', '01.1.1.1', '::g']) {
    t.equal(rules.mayReach(text), false, text);
  }
  t.end();
});

test('an IPv4 address carried in an IPv6 one is never reached', (t) => {
  const octet = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
      const v4 = octets.join('.');
      return [`::ffff:${v4}`, `::${v4}`, `::ffff:0:${v4}`, `64:ff9b::${v4}`].every(
        (text) => !rules.mayReach(text),
      );
    }),
  );
  t.end();
});

test('whatever is parsed never throws, and what passes is a plain https address', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.ipV4(), fc.ipV6()), (text) => {
      for (const url of [text, `https://${text}`, `https://${text}/`]) {
        const target = parseTarget(url, rules);
        if (target.kind === 'problem') continue;
        const again = parseTarget(target.href, rules);
        t.same(again, target);
        if (target.is_literal || !target.href.startsWith('https://')) return false;
      }
      return true;
    }),
  );
  t.end();
});

test('ranges that are no ranges are refused at the start', (t) => {
  for (const range of [
    '10.0.0.0/33',
    'fd00::/129',
    'localhost',
    '10.0.0/8',
    '::1%lo',
    '1.1.1.1/x',
  ]) {
    t.throws(() => makeAddressRules([range]), { message: /is not an address range/ }, range);
  }
  t.doesNotThrow(() => makeAddressRules(['10.0.0.0/32', 'fd00::/128', '10.1.2.3', '::1']));
  t.end();
});

test('two spellings of one address compare equal', (t) => {
  t.equal(canonicalAddress('::ffff:127.0.0.1'), '127.0.0.1');
  t.equal(canonicalAddress('2001:0DB8:0::1'), canonicalAddress('2001:db8::1'));
  t.not(canonicalAddress('127.0.0.1'), canonicalAddress('127.0.0.2'));
  t.end();
});

const vet = (answers: readonly string[]) =>
  vetName('hooks.acme.com', { rules, resolve: async () => answers, timeout_ms: 1_000 });
const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `1.1.1.${i}`);

test('every answer of a lookup must be public', async (t) => {
  t.match(await vet(['1.1.1.1']), { kind: 'vetted', addresses: ['1.1.1.1'] });
  t.match(await vet(['1.1.1.1', '10.0.0.1']), { kind: 'refused', code: 'address_refused' });
  t.match(await vet(['1.1.1.1', '::1']), { kind: 'refused', code: 'address_refused' });
  t.match(await vet(['::ffff:1.1.1.1']), { kind: 'refused', code: 'address_refused' });
  t.match(await vet([]), { kind: 'refused', code: 'name_not_found' });
});

test('16 answers are taken and 17 are not', async (t) => {
  t.match(await vet(many(16)), { kind: 'vetted' });
  t.match(await vet(many(17)), { kind: 'refused', code: 'address_refused' });
});

test('a lookup that takes longer than its limit fails', async (t) => {
  const never = () => new Promise<string[]>(() => undefined);
  const vetted = await vetName('hooks.acme.com', { rules, resolve: never, timeout_ms: 30 });
  t.match(vetted, { kind: 'refused', code: 'lookup_timeout' });
});

test('a lookup that fails is told apart from a name that is absent', async (t) => {
  const failing = (code: string) => () =>
    Promise.reject(Object.assign(new Error(code), { code })) as Promise<string[]>;
  const outcome = async (code: string) =>
    vetName('hooks.acme.com', { rules, resolve: failing(code), timeout_ms: 1_000 });
  t.match(await outcome('ENOTFOUND'), { code: 'name_not_found' });
  t.match(await outcome('ENODATA'), { code: 'name_not_found' });
  t.match(await outcome('ESERVFAIL'), { code: 'lookup_failed' });
  t.match(await outcome('ETIMEOUT'), { code: 'lookup_timeout' });
});
