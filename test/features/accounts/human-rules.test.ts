import { t } from 'tap';
import {
  adminKeys,
  bearerToken,
  isTokenOf,
  readAddress,
  readHumanName,
  tokenText,
} from '../../../src/features/accounts/human-rules.js';

t.test('an address is kept as written and compared in lower case', async (t) => {
  t.same(readAddress('  Ada.Lovelace+Bets@Example.COM '), {
    email: 'Ada.Lovelace+Bets@Example.COM',
    email_key: 'ada.lovelace+bets@example.com',
  });
  t.equal(readAddress('ada@bücher.example')?.email_key, 'ada@xn--bcher-kva.example');
  t.equal(readAddress('jürgen@example.org')?.email_key, 'jürgen@example.org');
});

t.test('what no mail can reach is no address', async (t) => {
  const bad = [
    '',
    'ada',
    '@example.org',
    'ada@',
    'ada@localhost',
    'ada@example.org\nBcc: x@example.org',
    'a da@example.org',
    'ada@exa mple.org',
    '"ada"@example.org',
    'ada<x>@example.org',
    '.ada@example.org',
    'ada.@example.org',
    'a..da@example.org',
    'ada@-example.org',
    'ada@example..org',
    'ada@[127.0.0.1]',
    'ada@127.0.0.1',
    'ada@b@example.org',
    'ada\u202e@example.org',
  ];
  for (const text of bad) t.equal(readAddress(text), null, JSON.stringify(text));
});

t.test('the lengths of an address end at 64 before the @ and 254 in all', async (t) => {
  t.ok(readAddress(`${'a'.repeat(64)}@example.org`));
  t.equal(readAddress(`${'a'.repeat(65)}@example.org`), null);
  const domain = `${`${'d'.repeat(61)}.`.repeat(3)}exam.org`;
  const rest = 254 - domain.length - 1;
  t.ok(readAddress(`${'a'.repeat(rest)}@${domain}`));
  t.equal(readAddress(`${'a'.repeat(rest + 1)}@${domain}`), null);
});

t.test('a name of a person is trimmed, 1 to 80 characters, and visible', async (t) => {
  t.equal(readHumanName(undefined), null);
  t.equal(readHumanName('  '), null);
  t.equal(readHumanName(' Ada '), 'Ada');
  t.equal(readHumanName('x'.repeat(80)), 'x'.repeat(80));
  t.equal(readHumanName('x'.repeat(81)), undefined);
  t.equal(readHumanName('Ada\r\nBcc: x'), undefined);
  t.equal(readHumanName('Ada\u202e'), undefined);
});

t.test('a token is recognised by its kind and its shape', async (t) => {
  const token = tokenText('session', Buffer.alloc(32, 7));
  t.ok(isTokenOf('session', token));
  t.notOk(isTokenOf('reset', token));
  t.notOk(isTokenOf('session', `${token}a`));
  t.notOk(isTokenOf('session', `${token.slice(0, -1)}=`));
  t.notOk(isTokenOf('session', ''));
});

t.test('a Bearer header gives its token, and anything else nothing', async (t) => {
  t.equal(bearerToken('Bearer abc'), 'abc');
  t.equal(bearerToken('bearer   abc '), 'abc');
  for (const header of ['', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'abc']) {
    t.equal(bearerToken(header), '', header);
  }
});

t.test('addresses of admins are compared like any other', async (t) => {
  t.same([...adminKeys(['Root@Example.org', 'nonsense'])], ['root@example.org']);
});
