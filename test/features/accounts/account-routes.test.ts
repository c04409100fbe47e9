import { link_mails_per_hour } from '../../../src/features/accounts/rules.js';
import { t } from '../../help/tap.js';
import { untilLocked } from '../../help/until-locked.js';
import { type Client, password, startAccounts, tokenOf } from './world.js';

/** People manage their own accounts and agents, and cannot touch other people's. */

const forum = await startAccounts(t);
const { sql } = forum.deps;
const { mailsTo, makeClient } = forum;
let people = 0;

const logIn = (call: Client, email: string, secret = password) =>
  call('POST', '/api/auth/login', { body: { email, password: secret } });

/** A person with a password, a verified address and a session. */
const addPerson = async () => {
  const call = makeClient();
  people += 1;
  const email = `owner${people}@example.org`;
  await call('POST', '/api/auth/signup', { body: { email, password, name: 'Ada' } });
  const mail_token = tokenOf((await mailsTo(email))[0]);
  await call('POST', '/api/auth/verify', { body: { token: mail_token } });
  const token = (await logIn(call, email)).body.token as string;
  const session = await call('GET', '/api/auth/session', { token });
  return { call, email, token, id: session.body.user.id as string };
};
type Person = Awaited<ReturnType<typeof addPerson>>;

const changePassword = ({ call, token }: Person, current_password: string, next: string) =>
  call('POST', '/api/me/account/password', { token, body: { current_password, password: next } });
const isIn = async (token: string) =>
  (await makeClient()('GET', '/api/auth/session', { token })).status === 200;

t.test('a name is changed and taken away, and one that cannot be is refused', async (t) => {
  const { call, token } = await addPerson();
  const rename = (name: unknown) => call('PATCH', '/api/me/account', { token, body: { name } });
  t.match(await rename(' Grace  '), { status: 200, body: { user: { name: 'Grace' } } });
  for (const name of ['n'.repeat(81), 'a\nb', 7]) {
    const refused = { status: 400, body: { fields: [{ path: 'body.name' }] } };
    t.match(await rename(name), refused, String(name));
  }
  t.match((await call('GET', '/api/auth/session', { token })).body.user, { name: 'Grace' });
  t.match(await rename(null), { body: { user: { name: null } } });
});

t.test('a new password needs the old one and ends all other sessions and links', async (t) => {
  const person = await addPerson();
  const { call, email, token } = person;
  const other = (await logIn(call, email)).body.token as string;
  await call('POST', '/api/auth/forgot', { body: { email } });
  const reset_token = tokenOf((await mailsTo(email))[0]);
  t.match(await changePassword(person, 'wrong password', 'a new password'), {
    status: 403,
    body: { code: 'WRONG_PASSWORD', fields: [{ path: 'body.current_password' }] },
  });
  t.match(await changePassword(person, password, 'x'.repeat(9)), { status: 400 });
  t.ok(await isIn(other));
  t.equal((await changePassword(person, password, 'a new password')).status, 200);
  t.ok(await isIn(token));
  t.notOk(await isIn(other));
  t.equal((await logIn(makeClient(), email)).status, 401);
  t.equal((await logIn(makeClient(), email, 'a new password')).status, 200);
  const late = { token: reset_token, password: 'another password' };
  t.match(await makeClient()('POST', '/api/auth/reset', { body: late }), {
    body: { code: 'INVALID_LINK' },
  });
});

t.test('wrong passwords of a session count as failed log-ins', async (t) => {
  const person = await addPerson();
  const limit = forum.deps.config.LIMIT_LOGIN_FAILURES;
  const guess = () => changePassword({ ...person, call: makeClient() }, 'a guess', 'new password');
  for (let i = 0; i < limit; i += 1) t.equal((await guess()).status, 403);
  t.match(await guess(), { status: 429, body: { code: 'RATE_LIMITED' } });
  t.equal((await changePassword(person, password, 'a new password')).status, 200, 'at home');
});

t.test('sessions are listed, and end one by one or all but this one', async (t) => {
  const { call, email, token, id } = await addPerson();
  const others = [await logIn(call, email), await logIn(call, email)].map(({ body }) => body.token);
  const list = async () => (await call('GET', '/api/me/sessions', { token })).body;
  const { total, sessions } = await list();
  t.equal(total, 3);
  t.equal(sessions.filter(({ current }: { current: boolean }) => current).length, 1);
  t.match(Object.keys(sessions[0]), ['id', 'created_at', 'last_used_at', 'expires_at', 'current']);
  const end = (session_id: string, who = token) =>
    call('DELETE', `/api/me/sessions/${session_id}`, { token: who });
  const stranger = await addPerson();
  const absent = { status: 404, body: { code: 'SESSION_NOT_FOUND' } };
  t.match(await end(sessions[0].id, stranger.token), absent);
  t.equal((await list()).total, 3);
  const other = sessions.find(({ current }: { current: boolean }) => !current);
  t.match(await end(other.id), { status: 200, body: { ended: 1 } });
  t.match(await end(other.id), absent);
  t.equal((await list()).total, 2);
  t.match(await call('DELETE', '/api/me/sessions', { token }), { status: 200, body: { ended: 1 } });
  t.same(await Promise.all([token, ...others].map(isIn)), [true, false, false]);
  const [row] = await sql`select count(*)::int as n from revocations`;
  t.ok(row?.['n'] >= 2, 'what the sessions opened is closed');
  t.ok(await isIn(stranger.token));
  t.ok(id);
});

t.test(
  'the first mail is sent again, so many times an hour, with one answer for all',
  async (t) => {
    const email = 'unverified@example.org';
    await makeClient()('POST', '/api/auth/signup', { body: { email, password } });
    const resend = (to: string) =>
      makeClient()('POST', '/api/auth/resend', { body: { email: to } });
    const { status, body } = await resend(email);
    const unknown = await resend('nobody@example.org');
    t.same([unknown.status, unknown.body.message], [status, body.message]);
    t.equal(status, 200);
    for (let i = 0; i < link_mails_per_hour; i += 1) await resend(email);
    const mails = await mailsTo(email);
    t.equal(mails.length, link_mails_per_hour);
    t.equal((await mailsTo('nobody@example.org')).length, 0);
    const token = tokenOf(mails[0]);
    t.equal((await makeClient()('POST', '/api/auth/verify', { body: { token } })).status, 200);
    t.equal((await resend(email)).status, 200);
    t.match((await mailsTo(email))[0], { subject: 'Your address is already verified' });
  },
);

t.test('deleting an account erases the person and leaves the record of its agents', async (t) => {
  const person = await addPerson();
  const { call, email, token, id } = person;
  const other = (await logIn(call, email)).body.token as string;
  const agent = await forum.addAgent({}, token);
  await sql`
    insert into webhooks (id, owner_kind, owner_id, slot, url, events, secret_sealed, after_offset)
    values (${id}, 'human', ${id}, 1, 'https://example.org/', '{question.created}', '\\x00', 0)`;
  const remove = (secret: string) =>
    call('POST', '/api/me/account/delete', { token, body: { password: secret } });
  t.match(await remove('wrong password'), { status: 403, body: { code: 'WRONG_PASSWORD' } });
  t.ok(await isIn(token));
  t.match(await remove(password), { status: 200, body: { unlinked: [agent.id] } });
  t.same(await Promise.all([token, other].map(isIn)), [false, false]);
  t.match(await agent.call('GET', '/api/me', { key: agent.key }), {
    status: 200,
    body: { user: { owner_linked: false, trust_label: 'unverified' } },
  });
  const left = await sql`
    select
      (select count(*)::int from humans where id = ${id} or email = ${email}) as people,
      (select count(*)::int from mails where recipient = ${email}) as mails,
      (select count(*)::int from webhooks where owner_id = ${id}) as webhooks,
      (select count(*)::int from human_tokens where human_id = ${id}) as tokens,
      (select count(*)::int from known_addresses where human_id = ${id}) as addresses`;
  t.match(left[0], { people: 0, mails: 0, webhooks: 0, tokens: 0, addresses: 0 });
  t.equal((await logIn(makeClient(), email)).status, 401);
  const again = await makeClient()('POST', '/api/auth/signup', { body: { email, password } });
  t.equal(again.status, 201, 'the address is free again');
});

t.test(
  'an agent that is linked while its account is deleted is refused, and stays as it was',
  async (t) => {
    const { call, token, id } = await addPerson();
    const agent = await forum.addAgent({});
    let linking: ReturnType<Client> | undefined;
    await sql.begin(async (tx) => {
      await tx`select from humans where id = ${id} for update`;
      linking = call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
      await untilLocked('the link', tx);
      await tx`delete from humans where id = ${id}`;
    });
    t.match(await linking, { status: 401, body: { code: 'INVALID_TOKEN' } });
    t.match((await agent.call('GET', '/api/me', { key: agent.key })).body.user, {
      owner_linked: false,
    });
  },
);

t.test('an owner gets a new key for its agent, and nobody else does', async (t) => {
  const owner = await addPerson();
  const stranger = await addPerson();
  const agent = await forum.addAgent({}, owner.token);
  const path = `/api/me/agents/${agent.id}`;
  const absent = { status: 404, body: { code: 'AGENT_NOT_FOUND' } };
  t.match(await stranger.call('POST', `${path}/rotate-key`, { token: stranger.token }), absent);
  t.match(await stranger.call('GET', path, { token: stranger.token }), absent);
  t.match(await owner.call('GET', path, { token: owner.token }), {
    status: 200,
    body: { agent: { id: agent.id, points: 5_000 } },
  });
  t.equal((await agent.call('GET', '/api/me', { key: agent.key })).status, 200);
  const rotated = await owner.call('POST', `${path}/rotate-key`, { token: owner.token });
  t.match(rotated, { status: 200, body: { api_key: /^sk_/ } });
  t.equal((await agent.call('GET', '/api/me', { key: agent.key })).status, 401);
  const { api_key } = rotated.body;
  t.equal((await agent.call('GET', '/api/me', { key: api_key })).body.user.id, agent.id);
});
