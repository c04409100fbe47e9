import { parseOptions } from '@node-rs/argon2';
import { createPasswords, decoy_hash } from '../../../src/features/accounts/sessions.js';
import { isFault } from '../../../src/kit/fault.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { type Client, password, startAccounts, tokenOf } from './world.js';

/** Passwords, and log-ins to one account from many addresses. Each client has its own address. */

const limit = 3;
const forum = await startAccounts(t, { env: { LIMIT_LOGIN_FAILURES: String(limit) } });
const { makeClient, mailsTo } = forum;

const passwords = createPasswords();
const hashOf = async (text: string): Promise<string> => {
  const stored = await passwords.hash(text);
  if (isFault(stored)) throw new Error('refused');
  return stored;
};

t.test('a password is right against its hash only, in whatever Unicode form', async (t) => {
  const stored = await hashOf('Gr\u00fc\u00dfe aus K\u00f6ln');
  t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.equal(await passwords.verify(stored, 'Gr\u00fc\u00dfe aus K\u00f6ln'), true);
  t.equal(await passwords.verify(stored, 'Gru\u0308\u00dfe aus Ko\u0308ln'), true);
  t.equal(await passwords.verify(stored, 'Gr\u00fc\u00dfe aus K\u00f6lm'), false);
  t.equal(await passwords.verify(null, 'Gr\u00fc\u00dfe aus K\u00f6ln'), false);
  t.same(parseOptions(decoy_hash), parseOptions(stored), 'the decoy costs as much');
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

const logIn = (call: Client, email: string, secret = password) =>
  call('POST', '/api/auth/login', { body: { email, password: secret } });

/** Signs a person up, verifies the e-mail address, and returns the client that did so. */
const addPerson = async (email: string): Promise<Client> => {
  const home = makeClient();
  await home('POST', '/api/auth/signup', { body: { email, password } });
  const token = tokenOf((await mailsTo(email))[0]);
  await home('POST', '/api/auth/verify', { body: { token } });
  return home;
};

/** Tries wrong passwords, each from a different address. */
const attack = async (email: string, tries: number) => {
  const answers: Awaited<ReturnType<Client>>[] = [];
  for (let n = 0; n < tries; n += 1) {
    answers.push(await logIn(makeClient(), email, `guess number ${n}`));
  }
  return answers;
};

t.test('guesses from many addresses are stopped, whether there is an account or not', async (t) => {
  const seen = ({ status, body }: Awaited<ReturnType<Client>>): unknown => {
    const { request_id: _, error, ...rest } = body;
    return [status, { ...rest, error: error.replace(/\d+ s/, 'n s') }];
  };
  await addPerson('attacked@people.dev');
  const real = await attack('attacked@people.dev', limit + 2);
  const made_up = await attack('nobody@people.dev', limit + 2);
  t.same(pluck(real, 'status'), [...Array(limit).fill(401), 429, 429]);
  t.same(real.map(seen), made_up.map(seen));
  t.match(real.at(-1)?.headers.get('retry-after'), /^[1-9]\d*$/);
  const right = await logIn(makeClient(), 'attacked@people.dev');
  t.equal(right.status, 429, 'the right password tells nothing either');
});

t.test('many guesses at once are counted before they are looked at', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => logIn(makeClient(), 'crowded@people.dev', 'a wrong password')),
  );
  const statuses = answers.map(({ status }) => status).sort();
  t.same(statuses, [...Array(limit).fill(401), ...Array(8 - limit).fill(429)]);
});

t.test('the owner logs in at a known address, and by a mail from any other', async (t) => {
  const email = 'owner@people.dev';
  const home = await addPerson(email);
  await attack(email, limit + 1);
  t.equal((await logIn(home, email)).status, 200);
  const abroad = makeClient();
  t.equal((await logIn(abroad, email)).status, 429);
  await home('POST', '/api/auth/forgot', { body: { email } });
  const body = { token: tokenOf((await mailsTo(email))[0]), password: 'another long password' };
  t.equal((await abroad('POST', '/api/auth/reset', { body })).status, 200);
  t.equal((await logIn(abroad, email, body.password)).status, 200);
  t.equal((await attack(email, 1))[0]?.status, 429, 'and the attacker stays out');
});

t.test('a known address has the same number of failures for itself', async (t) => {
  const email = 'careless@people.dev';
  const home = await addPerson(email);
  for (let n = 0; n < limit; n += 1) {
    t.equal((await logIn(home, email, 'a wrong password')).status, 401);
  }
  t.equal((await logIn(home, email)).status, 429);
  for (let n = 0; n < limit + 2; n += 1) {
    t.equal((await logIn(makeClient(), email)).status, 200, 'right ones are not counted');
  }
});

t.test('addresses are kept as digests, each once, and not for ever', async (t) => {
  const { sql } = forum.deps;
  const email = 'kept@people.dev';
  await logIn(await addPerson(email), email);
  const count = async () => {
    const rows = await sql`
      select from known_addresses k join humans h on h.id = k.human_id where h.email = ${email}`;
    return rows.length;
  };
  t.equal(await count(), 1);
  await sql`update known_addresses set last_used_at = now() - interval '181 days'`;
  await logIn(makeClient(), email);
  t.equal(await count(), 1, 'the new one alone');
});
