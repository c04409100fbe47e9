import { createHash } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import {
  cleanModel,
  cleanName,
  digestKey,
  isWellFormedKey,
  makeApiKey,
  makeReferralCode,
  parseRoles,
} from '../../../src/features/accounts/agent-rules.js';

const keyOf = (raw: string): string => {
  const clean = cleanName(raw);
  if (!('name_key' in clean)) throw new Error(`${JSON.stringify(raw)}: ${clean.message}`);
  return clean.name_key;
};

t.test('a name is trimmed, brought to NFC and 2 to 50 characters long', (t) => {
  t.same(cleanName('  Ada Bot '), { name: 'Ada Bot', name_key: 'ada bot' });
  t.same(cleanName('Cafe\u0301'), { name: 'Café', name_key: 'café' });
  t.ok('name' in cleanName('ab'));
  t.ok('name' in cleanName('a'.repeat(50)));
  t.ok('name' in cleanName('🦉'.repeat(50)), 'characters are code points');
  for (const raw of ['', ' ', 'a', ' a ', 'a'.repeat(51), '🦉'.repeat(51), 'e\u0301']) {
    t.match(cleanName(raw), { path: 'body.name', message: /2 to 50 characters/ });
  }
  t.end();
});

t.test('a name with characters that nobody sees is refused', (t) => {
  const unseen = [
    '\u0000',
    '\t',
    '\n',
    '\u007f',
    '\u0085',
    '\u00ad',
    '\u034f',
    '\u061c',
    '\u115f',
    '\u200b',
    '\u200c',
    '\u200d',
    '\u200e',
    '\u200f',
    '\u2028',
    '\u2029',
    '\u202a',
    '\u202e',
    '\u2060',
    '\u2066',
    '\u2069',
    '\u2800',
    '\u3164',
    '\ufe0f',
    '\ufeff',
    '\uffa0',
    '\ue000',
    '\ud800',
    '\u{e0041}',
    '\u{e0100}',
    '\u{f0000}',
  ];
  for (const char of unseen) {
    const hex = char.codePointAt(0)!.toString(16);
    t.match(cleanName(`ad${char}min`), { path: 'body.name', message: /invisible/ }, hex);
    t.match(cleanModel(`gpt${char}4`), { path: 'body.model', message: /invisible/ }, hex);
  }
  t.end();
});

t.test('names that differ in case, width, blanks or composition only have one key', (t) => {
  const same = [
    ['Oracle', 'ORACLE'],
    ['Oracle', 'oRaClE'],
    ['Café', 'CAFE\u0301'],
    ['Straße', 'STRASSE'],
    ['ΟΔΥΣΣΕΥΣ', 'οδυσσευς'],
    ['Oracle', '\uff2fracle'],
    ['Oracle', '𝐎𝐫𝐚𝐜𝐥𝐞'],
    ['ﬁnch', 'Finch'],
    ['Ada Bot', 'Ada\u00a0Bot'],
    ['Ada Bot', 'Ada  Bot'],
    ['Kelvin', '\u212Aelvin'],
    ['mississippi', 'miſſiſſippi'],
    ['Бот', 'БОТ'],
  ];
  for (const [a, b] of same) t.equal(keyOf(a!), keyOf(b!), `${a} = ${b}`);
  t.not(keyOf('Ada Bot'), keyOf('AdaBot'));
  t.not(keyOf('agent-1'), keyOf('agent-2'));
  t.end();
});

t.test('a clean name is a fixed point, and so is its key', (t) => {
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
  t.end();
});

t.test('a model is required and has at most 100 characters', (t) => {
  t.same(cleanModel(' gpt-4o '), { model: 'gpt-4o' });
  t.same(cleanModel('m'.repeat(100)), { model: 'm'.repeat(100) });
  for (const raw of ['', ' \t ']) t.match(cleanModel(raw), { code: 'MODEL_REQUIRED' });
  const long = cleanModel('m'.repeat(101));
  t.match(long, { path: 'body.model', message: /at most 100/ });
  t.notHas(long, { code: 'MODEL_REQUIRED' });
  t.end();
});

t.test('roles come from a comma-separated string or a list, each once', (t) => {
  t.same(parseRoles('predictor, Scout,,predictor '), { roles: ['predictor', 'scout'] });
  t.same(parseRoles(['guardian', 'debater']), { roles: ['guardian', 'debater'] });
  for (const raw of [undefined, '', ' , ', []]) t.same(parseRoles(raw), { roles: ['predictor'] });
  for (const raw of ['king', 'predictor,king', ['scout', 'king']]) {
    t.match(parseRoles(raw), { path: 'body.role', message: /king is not a role; take predictor/ });
  }
  t.end();
});

t.test('a key has its shape, carries a right checksum and is never the same twice', (t) => {
  const keys = new Set<string>();
  for (let i = 0; i < 2_000; i += 1) {
    const key = makeApiKey();
    if (!/^sk_[0-9A-Za-z]{49}$/.test(key) || !isWellFormedKey(key)) t.fail(key);
    keys.add(key);
  }
  t.equal(keys.size, 2_000);
  const key = makeApiKey();
  t.same(digestKey(key), createHash('sha256').update(key).digest());
  t.end();
});

t.test('one wrong, missing, added or swapped character makes a key malformed', (t) => {
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
  t.end();
});

t.test('the characters of keys and codes are drawn evenly', (t) => {
  const count = (texts: string[]): number[] => {
    const counts = new Map<string, number>();
    for (const char of texts.join('')) counts.set(char, (counts.get(char) ?? 0) + 1);
    return [...counts.values()];
  };
  const keys = count(Array.from({ length: 4_000 }, () => makeApiKey().slice(3, 46)));
  t.equal(keys.length, 62);
  // 172,000 draws: 2,774 expected of each with a deviation of 52; a bias of a quarter, as the
  // plain remainder has, is far outside.
  t.ok(Math.min(...keys) > 2_774 - 330 && Math.max(...keys) < 2_774 + 330);
  const codes = count(Array.from({ length: 5_000 }, makeReferralCode));
  t.equal(codes.length, 28);
  t.ok(Math.min(...codes) > 2_142 - 300 && Math.max(...codes) < 2_142 + 300);
  t.end();
});
