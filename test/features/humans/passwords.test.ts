import { parseOptions } from '@node-rs/argon2';
import { t } from 'tap';
import { createGate, createPasswords, decoy_hash } from '../../../src/features/humans/passwords.js';
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

t.test('the gate runs so many at once, lets so many wait, and refuses one more', async (t) => {
  const gate = createGate(2, 3);
  let running = 0;
  let most = 0;
  const open: (() => void)[] = [];
  const work = (): Promise<string> =>
    gate.run(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => open.push(resolve));
      running -= 1;
      return 'done';
    }) as Promise<string>;
  const all = Array.from({ length: 5 }, work);
  const refused = await work();
  t.match(refused, { def: { code: 'UNAVAILABLE', status: 503 }, headers: { 'Retry-After': '2' } });
  for (let i = 0; i < 5; i += 1) {
    while (open.length === 0) await new Promise((resolve) => setImmediate(resolve));
    open.shift()?.();
  }
  t.same(await Promise.all(all), Array(5).fill('done'));
  t.equal(most, 2);
  const later = work();
  while (open.length === 0) await new Promise((resolve) => setImmediate(resolve));
  open.shift()?.();
  t.equal(await later, 'done', 'there is room again');
});

t.test('work that throws gives its place back', async (t) => {
  const gate = createGate(1, 0);
  await t.rejects(gate.run(() => Promise.reject(new Error('broken'))));
  t.equal(await gate.run(async () => 'fine'), 'fine');
});
