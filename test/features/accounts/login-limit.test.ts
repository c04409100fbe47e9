import { t } from 'tap';
import { startAccountApp } from '../../help/account-app.js';
import { type Client, makeClient, type Told } from '../../help/account-client.js';

/** Passwords tried on one account from many addresses; each client here has one of its own. */

const limit = 3;
const forum = await startAccountApp(t, { env: { LIMIT_LOGIN_FAILURES: String(limit) } });
const password = 'correct horse battery';

const mailTo = async (email: string): Promise<string> => {
  const { body } = await makeClient(forum.url)('GET', '/dev/outbox');
  const mail = (body as { to: string; links: string[] }[]).find(({ to }) => to === email);
  return new URL(mail?.links[0] ?? '').searchParams.get('token') ?? '';
};
const logIn = (call: Client, email: string, secret = password): Promise<Told> =>
  call('POST', '/api/auth/login', { body: { email, password: secret } });

/** Verified and logged in at the client's address. */
const addPerson = async (email: string): Promise<Client> => {
  const home = makeClient(forum.url);
  await home('POST', '/api/auth/signup', { body: { email, password } });
  await home('POST', '/api/auth/verify', { body: { token: await mailTo(email) } });
  return home;
};

/** Wrong passwords, each from another address. */
const attack = async (email: string, tries: number): Promise<Told[]> => {
  const answers: Told[] = [];
  for (let n = 0; n < tries; n += 1) {
    answers.push(await logIn(makeClient(forum.url), email, `guess number ${n}`));
  }
  return answers;
};
const seen = ({ status, body }: Told): unknown => {
  const { request_id: _, error, ...rest } = body;
  return [status, { ...rest, error: error.replace(/\d+ s/, 'n s') }];
};

t.test('guesses from many addresses are stopped, whether there is an account or not', async (t) => {
  await addPerson('attacked@people.dev');
  const real = await attack('attacked@people.dev', limit + 2);
  const made_up = await attack('nobody@people.dev', limit + 2);
  t.same(
    real.map(({ status }) => status),
    [...Array(limit).fill(401), 429, 429],
  );
  t.same(real.map(seen), made_up.map(seen));
  t.match(real.at(-1)?.headers.get('retry-after'), /^[1-9]\d*$/);
  const right = await logIn(makeClient(forum.url), 'attacked@people.dev');
  t.equal(right.status, 429, 'the right password tells nothing either');
});

t.test('many guesses at once are counted before they are looked at', async (t) => {
  await addPerson('crowded@people.dev');
  const clients = Array.from({ length: 8 }, () => makeClient(forum.url));
  const answers = await Promise.all(
    clients.map((call) => logIn(call, 'crowded@people.dev', 'a wrong password')),
  );
  t.equal(answers.filter(({ status }) => status === 401).length, limit);
  t.equal(answers.filter(({ status }) => status === 429).length, 8 - limit);
});

t.test('the owner logs in at a known address, and by a mail from any other', async (t) => {
  const email = 'owner@people.dev';
  const home = await addPerson(email);
  await attack(email, limit + 1);
  t.equal((await logIn(home, email)).status, 200);
  const abroad = makeClient(forum.url);
  t.equal((await logIn(abroad, email)).status, 429);
  await home('POST', '/api/auth/forgot', { body: { email } });
  const body = { token: await mailTo(email), password: 'another long password' };
  t.equal((await abroad('POST', '/api/auth/reset', { body })).status, 200);
  t.equal((await logIn(abroad, email, body.password)).status, 200);
  t.equal((await attack(email, 1))[0]?.status, 429, 'and the attacker stays out');
});

t.test('a known address has the same number of failures for itself', async (t) => {
  const home = await addPerson('careless@people.dev');
  for (let n = 0; n < limit; n += 1) {
    t.equal((await logIn(home, 'careless@people.dev', 'a wrong password')).status, 401);
  }
  t.equal((await logIn(home, 'careless@people.dev')).status, 429);
  t.equal((await logIn(makeClient(forum.url), 'careless@people.dev')).status, 200);
});

t.test('log-ins that are right are not counted', async (t) => {
  const email = 'traveller@people.dev';
  await addPerson(email);
  for (let n = 0; n < limit + 2; n += 1) {
    t.equal((await logIn(makeClient(forum.url), email)).status, 200);
  }
});

t.test('addresses are kept as digests, each once, and not for ever', async (t) => {
  const { sql } = forum.deps;
  const email = 'kept@people.dev';
  const home = await addPerson(email);
  await logIn(home, email);
  const read = () => sql<{ digest: Buffer }[]>`
    select k.digest from known_addresses k join humans h on h.id = k.human_id
    where h.email = ${email}`;
  t.equal((await read()).length, 1);
  await sql`update known_addresses set last_used_at = now() - interval '181 days'`;
  await logIn(makeClient(forum.url), email);
  t.equal((await read()).length, 1, 'the new one alone');
});
