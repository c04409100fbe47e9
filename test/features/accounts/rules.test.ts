import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  adminKeys,
  bearerToken,
  cleanModel,
  cleanName,
  digestSecret,
  isTokenOf,
  isWellFormedKey,
  makeApiKey,
  makeReferralCode,
  makeToken,
  parseRoles,
  readAddress,
  readHumanName,
} from '../../../src/features/accounts/rules.js';
import { t } from '../../help/tap.js';

const keyOf = (raw: string): string => {
  const clean = cleanName(raw);
  if (!('name_key' in clean)) throw new Error(`${JSON.stringify(raw)}: ${clean.message}`);
  return clean.name_key;
};

t.test('a name is trimmed, brought to NFC and 2 to 50 characters long', async (t) => {
  t.same(cleanName('  Ada Bot '), { name: 'Ada Bot', name_key: 'ada bot' });
  t.same(cleanName('Cafe\u0301'), { name: 'Café', name_key: 'café' });
  for (const raw of ['ab', 'a'.repeat(50), '🦉'.repeat(50)]) t.ok('name' in cleanName(raw), raw);
  for (const raw of ['', ' ', 'a', ' a ', 'a'.repeat(51), '🦉'.repeat(51), 'e\u0301']) {
    t.match(cleanName(raw), { path: 'body.name', message: /2 to 50 characters/ });
  }
});

t.test('a name with characters that nobody sees is refused', async (t) => {
  const unseen =
    '0 9 a 7f 85 ad 34f 61c 115f 200b 200c 200d 200e 200f 2028 2029 202a 202e 2060 2066 2069 ' +
    '2800 3164 fe0f feff ffa0 e000 d800 e0041 e0100 f0000';
  for (const hex of unseen.split(' ')) {
    const char = String.fromCodePoint(Number.parseInt(hex, 16));
    t.match(cleanName(`ad${char}min`), { path: 'body.name', message: /invisible/ }, hex);
    t.match(cleanModel(`gpt${char}4`), { path: 'body.model', message: /invisible/ }, hex);
  }
});

t.test('names that differ only in case, width, blanks or composition have one key', async (t) => {
  const same = [
    ['Oracle', 'ORACLE', 'oRaClE', '\uff2fracle', '𝐎𝐫𝐚𝐜𝐥𝐞'],
    ['Café', 'CAFE\u0301'],
    ['Straße', 'STRASSE'],
    ['ΟΔΥΣΣΕΥΣ', 'οδυσσευς'],
    ['ﬁnch', 'Finch'],
    ['Ada Bot', 'Ada\u00a0Bot', 'Ada  Bot'],
    ['Kelvin', '\u212Aelvin'],
    ['mississippi', 'miſſiſſippi'],
    ['Бот', 'БОТ'],
  ];
  for (const names of same) t.equal(new Set(names.map(keyOf)).size, 1, names.join(' = '));
  t.not(keyOf('Ada Bot'), keyOf('AdaBot'));
  t.not(keyOf('agent-1'), keyOf('agent-2'));
});

t.test('a clean name is a fixed point, and so is its key', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (raw) => {
      const clean = cleanName(raw);
      if (!('name' in clean)) return clean.path === 'body.name';
      const again = cleanName(clean.name);
      const upper = cleanName(clean.name.toUpperCase());
      if ('name_key' in upper && upper.name_key !== clean.name_key) return false;
      return 'name_key' in again && again.name === clean.name && again.name_key === clean.name_key;
    }),
    { numRuns: 3_000 },
  );
});

t.test('a model is required and has at most 100 characters', async (t) => {
  t.same(cleanModel(' gpt-4o '), { model: 'gpt-4o' });
  t.same(cleanModel('m'.repeat(100)), { model: 'm'.repeat(100) });
  for (const raw of ['', ' \t ']) t.match(cleanModel(raw), { code: 'MODEL_REQUIRED' });
  const long = cleanModel('m'.repeat(101));
  t.match(long, { path: 'body.model', message: /at most 100/ });
  t.notHas(long, { code: 'MODEL_REQUIRED' });
});

t.test('roles come from a comma-separated string or a list, each once', async (t) => {
  t.same(parseRoles('predictor, Scout,,predictor '), { roles: ['predictor', 'scout'] });
  t.same(parseRoles(['guardian', 'debater']), { roles: ['guardian', 'debater'] });
  for (const raw of [undefined, '', ' , ', []]) t.same(parseRoles(raw), { roles: ['predictor'] });
  for (const raw of ['king', 'predictor,king', ['scout', 'king']]) {
    t.match(parseRoles(raw), { path: 'body.role', message: /king is not a role\. Use predictor/ });
  }
});

t.test('a key has its shape, carries a right checksum and is never the same twice', async (t) => {
  const keys = new Set(Array.from({ length: 2_000 }, makeApiKey));
  t.equal(keys.size, 2_000);
  for (const key of keys) {
    if (!/^sk_[0-9A-Za-z]{49}$/.test(key) || !isWellFormedKey(key)) t.fail(key);
  }
  const key = makeApiKey();
  t.same(digestSecret(key), createHash('sha256').update(key).digest());
});

t.test('one wrong, missing, added or swapped character makes a key malformed', async (t) => {
  const key = makeApiKey();
  for (let i = 0; i < key.length; i += 1) {
    const other = key[i] === 'x' ? 'y' : 'x';
    t.notOk(isWellFormedKey(key.slice(0, i) + other + key.slice(i + 1)), `at ${i}`);
  }
  const at = [...key].findIndex((char, i) => i > 3 && char !== key[i - 1]);
  t.notOk(isWellFormedKey(key.slice(0, at - 1) + key[at] + key[at - 1] + key.slice(at + 1)));
  const wrong = ['', 'sk_', key.slice(1), key.slice(0, -1), `${key}0`, ` ${key}`, `${key}\n`];
  for (const text of [...wrong, key.toUpperCase(), 'é'.repeat(52), key.repeat(1_000)]) {
    t.notOk(isWellFormedKey(text));
  }
});

t.test('the characters of keys and codes are drawn evenly', async (t) => {
  const rangeOf = (texts: string[], alphabet: number) => {
    const counts = new Map<string, number>();
    for (const char of texts.join('')) counts.set(char, (counts.get(char) ?? 0) + 1);
    t.equal(counts.size, alphabet);
    return [Math.min(...counts.values()), Math.max(...counts.values())] as const;
  };
  const keys = Array.from({ length: 4_000 }, () => makeApiKey().slice(3, 46));
  // Each of 62 characters should occur 2,774 times, with a standard deviation of 52. If the code
  // took a plain remainder, some characters would occur a quarter more often.
  const [min_key, max_key] = rangeOf(keys, 62);
  t.ok(min_key > 2_774 - 330 && max_key < 2_774 + 330);
  const [least, most] = rangeOf(Array.from({ length: 5_000 }, makeReferralCode), 28);
  t.ok(least > 2_142 - 300 && most < 2_142 + 300);
});

t.test('an address is kept as written and compared in lower case', async (t) => {
  t.same(readAddress('  Ada.Lovelace+Bets@Example.COM '), {
    email: 'Ada.Lovelace+Bets@Example.COM',
    email_key: 'ada.lovelace+bets@example.com',
  });
  t.equal(readAddress('ada@bücher.example')?.email_key, 'ada@xn--bcher-kva.example');
  t.equal(readAddress('jürgen@example.org')?.email_key, 'jürgen@example.org');
  t.same([...adminKeys(['Root@Example.org', 'nonsense'])], ['root@example.org'], 'of admins too');
});

t.test('an address that no mail can reach is refused', async (t) => {
  const bad = [
    '',
    'ada',
    '@example.org',
    'ada@',
    'ada@localhost',
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
    'ada@example.org\nBcc: x@example.org',
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
  const cases: [string | undefined, string | null | undefined][] = [
    [undefined, null],
    ['  ', null],
    [' Ada ', 'Ada'],
    ['x'.repeat(80), 'x'.repeat(80)],
    ['x'.repeat(81), undefined],
    ['Ada\r\nBcc: x', undefined],
    ['Ada\u202e', undefined],
  ];
  for (const [text, name] of cases) t.equal(readHumanName(text), name, JSON.stringify(text));
});

t.test('a token is recognised by its kind and its shape', async (t) => {
  const { token, digest } = makeToken('session');
  t.same(digest, digestSecret(token));
  t.ok(isTokenOf('session', token));
  t.notOk(isTokenOf('reset', token));
  for (const text of ['', `${token}a`, `${token.slice(0, -1)}=`]) {
    t.notOk(isTokenOf('session', text));
  }
});

t.test('a Bearer header gives its token, and anything else nothing', async (t) => {
  t.equal(bearerToken('Bearer abc'), 'abc');
  t.equal(bearerToken('bearer   abc '), 'abc');
  for (const header of ['', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'abc']) {
    t.equal(bearerToken(header), '', header);
  }
});
