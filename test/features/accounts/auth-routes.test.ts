import {
  link_mails_per_hour,
  session_idle_ms,
  session_touch_ms,
  token_life_ms,
} from '../../../src/features/accounts/rules.js';
import { t } from '../../help/tap.js';
import { type Client, password, startAccounts, tokenOf } from './world.js';

const forum = await startAccounts(t, { env: { ADMIN_EMAILS: 'Boss@Example.org' } });
const { sql } = forum.deps;
const { mailsTo, makeClient } = forum;
let people = 0;
const newEmail = (): string => {
  people += 1;
  return `person${people}@example.org`;
};

const signUp = (call: Client, email: string, secret = password) =>
  call('POST', '/api/auth/signup', { body: { email, password: secret } });
const logIn = (call: Client, email: string, secret = password) =>
  call('POST', '/api/auth/login', { body: { email, password: secret } });
const verify = (call: Client, token: string) =>
  call('POST', '/api/auth/verify', { body: { token } });
const forget = (call: Client, email: string) =>
  call('POST', '/api/auth/forgot', { body: { email } });
const reset = (call: Client, token: string, secret: string) =>
  call('POST', '/api/auth/reset', { body: { token, password: secret } });

const newestToken = async (email: string) => tokenOf((await mailsTo(email))[0]);

/** A person with a verified address and a session. */
const addPerson = async () => {
  const call = makeClient();
  const email = newEmail();
  await signUp(call, email);
  await verify(call, await newestToken(email));
  const { body } = await logIn(call, email);
  const token = body.token as string;
  const read = () => call('GET', '/api/auth/session', { token });
  return { call, email, token, read };
};

const invalid_link = { status: 400, body: { code: 'INVALID_LINK' } };
const invalid_token = { status: 401, body: { code: 'INVALID_TOKEN' } };

t.test('sign-up, the mailed link and log-in make a session', async (t) => {
  const call = makeClient();
  const email = 'Ada.Lovelace@Example.org';
  const body = { email, password, name: ' Ada ' };
  t.equal((await call('POST', '/api/auth/signup', { body })).status, 201);
  const [mail, ...others] = await mailsTo(email);
  t.equal(others.length, 0);
  t.match(mail, { subject: 'Verify your address', text: /Hello Ada,/ });
  t.match(mail?.links[0], /^http:\/\/forum\/auth\/verify\?token=hv_/);
  const early = await logIn(call, email);
  t.match(early, { status: 200, body: { user: { email, email_verified: false } } });
  t.match(await verify(call, tokenOf(mail)), { status: 200, body: { verified: true } });
  const late = await logIn(call, 'ada.lovelace@EXAMPLE.org');
  t.match(late, {
    status: 200,
    body: { token: /^hs_/, user: { type: 'human', name: 'Ada', email_verified: true } },
  });
  const left_ms = Date.parse(late.body.expires_at) - Date.now();
  t.ok(Math.abs(left_ms - token_life_ms.session) < 60_000);
  t.equal(late.headers.get('cache-control'), 'no-store');
  const session = await call('GET', '/api/auth/session', { token: late.body.token });
  t.match(session, { status: 200, body: { user: late.body.user } });
});

t.test('neither passwords nor tokens are stored or logged as they are', async (t) => {
  const { email, token } = await addPerson();
  const mail_token = await newestToken(email);
  const tables = JSON.stringify([
    await sql`select * from humans`,
    await sql`select encode(digest, 'escape'), human_id, kind from human_tokens`,
  ]);
  const log = forum.lines.join('');
  for (const secret of [password, token, mail_token]) {
    t.notOk(tables.includes(secret));
    t.notOk(log.includes(secret));
  }
  const [row] = await sql`select password_hash from humans where email = ${email}`;
  t.match(row?.['password_hash'], /^\$argon2id\$/);
});

t.test('a sign-up that cannot be is refused with its path', async (t) => {
  const bad: readonly (readonly [Record<string, unknown>, string])[] = [
    [{}, 'body.email'],
    [{ email: 'nobody' }, 'body.email'],
    [{ email: `a@${'b'.repeat(250)}.org` }, 'body.email'],
    [{ email: 7 }, 'body.email'],
    [{ email: newEmail(), password: 'x'.repeat(9) }, 'body.password'],
    [{ email: newEmail(), password: 'x'.repeat(1_001) }, 'body.password'],
    [{ email: newEmail(), password: null }, 'body.password'],
    [{ email: newEmail(), name: 'n'.repeat(81) }, 'body.name'],
    [{ email: newEmail(), name: 'a\nb' }, 'body.name'],
  ];
  const before = await sql`select count(*)::int as n from humans`;
  for (const [part, path] of bad) {
    const body = { password, ...part };
    const answer = await makeClient()('POST', '/api/auth/signup', { body });
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, JSON.stringify(part));
    t.equal(answer.body.fields[0].path, path);
  }
  t.same(await sql`select count(*)::int as n from humans`, before);
});

t.test('passwords of 10 and of 1,000 characters work', async (t) => {
  for (const secret of ['x'.repeat(10), 'x'.repeat(1_000)]) {
    const call = makeClient();
    const email = newEmail();
    t.equal((await signUp(call, email, secret)).status, 201);
    t.equal((await logIn(call, email, secret)).status, 200);
    t.equal((await logIn(call, email, secret.slice(1))).status, 401);
  }
});

const withoutId = ({ status, body, headers }: Awaited<ReturnType<Client>>) => ({
  status,
  body: { ...body, request_id: undefined },
  type: headers.get('content-type'),
});

t.test('no answer tells whether an address has an account', async (t) => {
  const { email } = await addPerson();
  const call = makeClient();
  const pairs = [
    [await signUp(call, newEmail()), await signUp(call, email)],
    [await logIn(call, 'nobody@example.org'), await logIn(call, email, 'wrong password')],
    [await forget(call, 'nobody@example.org'), await forget(call, email)],
  ] as const;
  for (const [unknown, known] of pairs) t.same(withoutId(unknown), withoutId(known));
  t.equal(pairs[0][0].status, 201);
  t.match(pairs[1][0], { status: 401, body: { code: 'INVALID_CREDENTIALS' } });
  t.equal(pairs[2][0].status, 200);
});

t.test('known and unknown addresses take the same password work and floor', async (t) => {
  const { email } = await addPerson();
  const ask = async (method: string, address: string): Promise<number> => {
    const started_ms = performance.now();
    const body = { email: address, password: 'wrong password' };
    await makeClient()('POST', `/api/auth/${method}`, { body });
    return performance.now() - started_ms;
  };
  for (const method of ['login', 'signup', 'forgot']) {
    for (const address of [email, `new-${method}@example.org`]) {
      t.ok((await ask(method, address)) >= 119, `${method} ${address}`);
    }
  }
});

t.test('a second sign-up changes nothing and mails the owner another link', async (t) => {
  const call = makeClient();
  const email = newEmail();
  await signUp(call, email, 'planted by a stranger');
  await signUp(call, email, password);
  const [second, first] = await mailsTo(email);
  t.match(first, { subject: 'Verify your address' });
  t.match(second, { subject: 'You already have an account' });
  t.equal((await logIn(call, email)).status, 401, 'the second password is dropped');
  t.equal((await reset(call, tokenOf(second), password)).status, 200);
  t.match(await logIn(call, email), { status: 200, body: { user: { email_verified: true } } });
  t.equal((await logIn(call, email, 'planted by a stranger')).status, 401);
  t.match(await verify(call, tokenOf(first)), invalid_link);
});

t.test('sign-ups with one address at once make one account', async (t) => {
  const email = newEmail();
  const answers = await Promise.all(Array.from({ length: 6 }, () => signUp(makeClient(), email)));
  t.same(new Set(answers.map(({ status }) => status)), new Set([201]));
  t.equal((await sql`select id from humans where email = ${email}`).length, 1);
});

t.test('a mailed link works until it runs out, and only for its purpose', async (t) => {
  const call = makeClient();
  const email = newEmail();
  await signUp(call, email);
  const token = await newestToken(email);
  for (const bad of ['nonsense', token.slice(0, -1), `hr_${token.slice(3)}`]) {
    t.match(await verify(call, bad), invalid_link, bad);
  }
  t.match(await reset(call, token, password), invalid_link);
  t.equal((await verify(call, token)).status, 200);
  t.equal((await verify(call, token)).status, 200, 'opened twice, as mail programs do');
  forum.advance(token_life_ms.verify - 1_000);
  t.equal((await verify(makeClient(), token)).status, 200);
  forum.advance(1_001);
  t.match(await verify(makeClient(), token), invalid_link);
});

t.test('a session ends by log-out, and another one of the same person does not', async (t) => {
  const { call, email, token, read } = await addPerson();
  const other = (await logIn(call, email)).body.token;
  t.equal((await call('POST', '/api/auth/logout', { token })).status, 200);
  t.match(await read(), invalid_token);
  t.equal((await call('GET', '/api/auth/session', { token: other })).status, 200);
});

t.test('a session ends 24 hours after its last use', async (t) => {
  const { read } = await forum.addPerson();
  for (const use of ['the first', 'the second']) {
    forum.advance(session_idle_ms - 1);
    t.equal((await read()).status, 200, use);
  }
  forum.advance(session_idle_ms);
  t.match(await read(), invalid_token);
});

t.test('a session ends after 30 days however often it is used', async (t) => {
  const { read } = await forum.addPerson();
  const step_ms = session_idle_ms / 2;
  for (let at_ms = step_ms; at_ms < token_life_ms.session; at_ms += step_ms) {
    forum.advance(step_ms);
    t.equal((await read()).status, 200);
  }
  forum.advance(step_ms);
  t.equal((await read()).status, 401);
});

t.test('the last use is written at most once a minute', async (t) => {
  const { id, read } = await forum.addPerson();
  const lastUse = async (): Promise<number> => {
    const [row] = await sql<{ at: Date }[]>`
      select last_used_at as at from human_tokens
      where human_id = ${id} and kind = 'session'`;
    return row?.at.getTime() ?? 0;
  };
  const first = await lastUse();
  forum.advance(session_touch_ms - 1);
  await read();
  t.equal(await lastUse(), first);
  forum.advance(1);
  await read();
  t.equal(await lastUse(), first + session_touch_ms);
});

t.test('a reset sets the password, ends every session and works once', async (t) => {
  const { call, email, read } = await addPerson();
  await forget(call, email);
  const mail_token = await newestToken(email);
  const short = await reset(call, mail_token, 'x'.repeat(9));
  t.match(short, { status: 400, body: { code: 'INVALID_REQUEST' } });
  t.equal((await reset(call, mail_token, 'a new password')).status, 200);
  t.match(await read(), invalid_token);
  t.equal((await logIn(call, email)).status, 401);
  t.equal((await logIn(call, email, 'a new password')).status, 200);
  t.match(await reset(call, mail_token, 'another password'), invalid_link);
});

t.test('of two resets by one link at once one wins, and after an hour none', async (t) => {
  const { call, email } = await addPerson();
  await forget(call, email);
  const token = await newestToken(email);
  const answers = await Promise.all(
    ['first password', 'other password'].map((secret) => reset(call, token, secret)),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, 400]);
  await forget(call, email);
  const late = await newestToken(email);
  forum.advance(token_life_ms.reset);
  t.match(await reset(call, late, 'a new password'), invalid_link);
});

t.test('one address gets so many reset mails an hour and no more', async (t) => {
  const { email } = await addPerson();
  const ask = () => forget(makeClient(), email);
  for (let i = 0; i < link_mails_per_hour; i += 1) await ask();
  t.equal((await mailsTo(email)).length, 1 + link_mails_per_hour);
  t.equal((await ask()).status, 200);
  t.equal((await mailsTo(email)).length, 1 + link_mails_per_hour);
  forum.advance(3_600_000);
  await ask();
  t.equal((await mailsTo(email)).length, 2 + link_mails_per_hour);
});

t.test('an address of ADMIN_EMAILS is an admin once it is verified', async (t) => {
  const call = makeClient();
  await signUp(call, 'boss@example.org');
  const early = await logIn(call, 'boss@example.org');
  t.match(early.body.user, { email_verified: false, is_admin: false });
  t.match(await forum.deps.sessions.byToken(early.body.token), { is_admin: false });
  await verify(call, tokenOf((await mailsTo('boss@example.org'))[0]));
  t.match(await forum.deps.sessions.byToken(early.body.token), { is_admin: true });
  t.match((await logIn(call, 'boss@example.org')).body.user, { is_admin: true });
});

t.test('an address logs in ten times a minute, and the eleventh waits', async (t) => {
  const call = makeClient();
  for (let i = 0; i < 10; i += 1) {
    t.equal((await verify(call, 'nonsense')).status, 400);
  }
  for (const path of ['signup', 'login', 'forgot', 'reset', 'verify']) {
    const body = { email: 'a@b.example', password, token: 'x' };
    const refused = await call('POST', `/api/auth/${path}`, { body });
    t.match(refused, { status: 429, body: { code: 'RATE_LIMITED' } }, path);
  }
});

t.test('a busy password queue answers UNAVAILABLE and not an error', async (t) => {
  const call = makeClient();
  const { passwords } = forum.deps.sessions;
  let is_busy = true;
  // Keeps two password checks running and fifty waiting until the sign-up below is answered.
  const keepBusy = async (): Promise<void> => {
    while (is_busy) await passwords.verify(null, 'anything');
  };
  const crowd = Array.from({ length: 52 }, keepBusy);
  t.match(await signUp(call, newEmail()), { status: 503, body: { code: 'UNAVAILABLE' } });
  is_busy = false;
  await Promise.all(crowd);
  t.equal((await signUp(call, newEmail())).status, 201);
});
