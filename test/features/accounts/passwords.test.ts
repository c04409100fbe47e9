import { parseOptions } from '@node-rs/argon2';
import { t } from 'tap';
import { createPasswords, decoy_hash } from '../../../src/features/accounts/sessions.js';
import { isFault } from '../../../src/kit/fault.js';

t.test('a password is right against its hash only', async (t) => {
  const passwords = createPasswords();
  const stored = await passwords.hash('correct horse');
  if (isFault(stored)) throw new Error('refused');
  t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.equal(await passwords.verify(stored, 'correct horse'), true);
  t.equal(await passwords.verify(stored, 'correct horsf'), false);
  t.equal(await passwords.verify(null, 'correct horse'), false);
});

t.test('the same password in another Unicode form is the same password', async (t) => {
  const passwords = createPasswords();
  const stored = await passwords.hash('Gr\u00fc\u00dfe aus K\u00f6ln');
  if (isFault(stored)) throw new Error('refused');
  t.equal(await passwords.verify(stored, 'Gru\u0308\u00dfe aus Ko\u0308ln'), true);
});

t.test('the decoy costs what a real hash costs', async (t) => {
  const stored = await createPasswords().hash('whatever it is');
  if (isFault(stored)) throw new Error('refused');
  t.same(parseOptions(decoy_hash), parseOptions(stored));
});

t.test('so many hashes run and wait at once, and one more is refused', async (t) => {
  const passwords = createPasswords(2, 3);
  const all = Array.from({ length: 5 }, () => passwords.verify(null, 'anything'));
  const refused = await passwords.hash('one more of them');
  t.match(refused, { def: { code: 'UNAVAILABLE', status: 503 }, headers: { 'Retry-After': '2' } });
  t.same(await Promise.all(all), Array(5).fill(false));
  t.equal(await passwords.verify(null, 'anything'), false, 'there is room again');
});

t.test('work that throws gives its place back', async (t) => {
  const passwords = createPasswords(1, 0);
  await t.rejects(passwords.verify('no hash', 'anything'));
  t.equal(await passwords.verify(null, 'anything'), false);
});
