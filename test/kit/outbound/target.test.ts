import fc from 'fast-check';
import { makeAddressRules } from '../../../src/kit/outbound/addresses.js';
import { parseTarget } from '../../../src/kit/outbound/target.js';
import { bad_targets as bad, longUrl as long } from '../../help/bad-targets.js';
import { t } from '../../help/tap.js';

const rules = makeAddressRules([]);

t.test('each bad address is refused by its rule, in words that repeat nothing of it', async (t) => {
  for (const [code, urls] of Object.entries(bad)) {
    for (const url of urls) {
      const target = parseTarget(url, rules);
      if (target.kind === 'target') t.fail(url);
      else t.equal(target.code, code, JSON.stringify(url.slice(0, 60)));
      if (target.kind === 'problem' && url.length > 12) t.notMatch(target.sentence, url);
    }
  }
});

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

t.test('a good address is taken in its normal form', async (t) => {
  for (const [given, href] of good) {
    const target = parseTarget(given, rules);
    t.equal(target.kind === 'target' ? target.href : target.sentence, href);
  }
});

t.test('an IP literal is taken inside an allowed range only', async (t) => {
  const lab = makeAddressRules(['127.0.0.0/8', 'fd00:1::/32']);
  const kind = (url: string): string => parseTarget(url, lab).kind;
  t.equal(kind('https://127.0.0.1:10000/'), 'target');
  t.equal(kind('https://[fd00:1::9]/'), 'target');
  t.equal(kind('https://[fd00:2::9]/'), 'problem');
  t.equal(kind('https://10.0.0.1/'), 'problem');
  t.equal(kind('https://[::ffff:127.0.0.1]/'), 'problem');
  t.equal(kind('https://localhost/'), 'problem', 'names keep their rules');
  t.equal(kind('http://127.0.0.1/'), 'problem', 'https stays required');
});

t.test(
  'of this machine only ports from 10000 upwards are taken, where it is allowed at all',
  async (t) => {
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
  },
);

t.test('whatever is parsed never throws, and what passes is a plain https address', async (t) => {
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
});
