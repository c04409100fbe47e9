import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { t } from '../../help/tap.js';
import { startAccounts } from './world.js';

/** How agents are linked to and unlinked from their owners, and the rewards for recruiting. */

const forum = await startAccounts(t);
const { sql, principals } = forum.deps;
const { addAgent, addPerson } = forum;
type Person = Awaited<ReturnType<typeof addPerson>>;
type Agent = Awaited<ReturnType<typeof addAgent>>;

const path = '/api/me/agents';
const send = ({ call, token }: Person, api_key: unknown, name = 'api_key') =>
  call('POST', path, { token, body: { [name]: api_key } });
const link = async (person: Person, { key }: Agent) => (await send(person, key)).status;
const unlink = async ({ call, token }: Person, { id }: Agent) =>
  (await call('DELETE', `${path}/${id}`, { token })).status;

t.test('a verified person links an agent by its key, which is verified at once', async (t) => {
  const person = await addPerson();
  const agent = await addAgent();
  const linked = await send(person, agent.key);
  t.match(linked, {
    status: 200,
    body: {
      message: /is linked and can predict now/,
      linked: true,
      agent: { id: agent.id, trust_label: 'verified', points: 5_000, linked_at: /Z$/ },
    },
  });
  t.match(await principals.byKey(agent.key), { owner_id: person.id });
  const me = await agent.call('GET', '/api/me', { key: agent.key });
  t.match(me.body.user, { trust_label: 'verified', owner_linked: true, owner_id: person.id });
  const profile = await person.call('GET', `/api/agents/${agent.id}`);
  t.equal(profile.body.agent.trust_label, 'verified');
  for (const { body } of [linked, profile]) {
    t.notMatch(JSON.stringify(body), person.id, 'nobody else sees it');
  }
});

t.test('linking again by the same person changes nothing', async (t) => {
  const person = await addPerson();
  const agent = await addAgent();
  const first = await send(person, agent.key, 'agent_api_key');
  t.equal(first.status, 200);
  forum.advance(5_000);
  const second = await send(person, agent.key);
  t.same({ ...second.body, request_id: 0 }, { ...first.body, request_id: 0 });
});

t.test('a key beside the token is the one to link, where the body names none', async (t) => {
  const { call, token, id: owner_id } = await addPerson();
  const [silent, empty, named] = [await addAgent(), await addAgent(), await addAgent()];
  const linked = (agent: Agent) => ({
    status: 200,
    body: { linked: true, agent: { id: agent.id } },
  });
  t.match(await call('POST', path, { token, key: silent.key }), linked(silent));
  t.match(await call('POST', path, { token, key: empty.key, body: {} }), linked(empty));
  const body = { api_key: named.key };
  t.match(await call('POST', path, { token, key: empty.key, body }), linked(named));
  t.match(await principals.byKey(silent.key), { owner_id });
  const wrong = await call('POST', path, { token, key: 'sk_nonsense' });
  t.match(wrong, { status: 400, body: { code: 'INVALID_API_KEY' } });
});

t.test('an agent of somebody else is AGENT_ALREADY_LINKED', async (t) => {
  const [one, other] = [await addPerson(), await addPerson()];
  const agent = await addAgent({}, one.token);
  const refused = await send(other, agent.key);
  t.match(refused, { status: 409, body: { code: 'AGENT_ALREADY_LINKED' } });
  t.notMatch(JSON.stringify(refused.body), one.id);
  t.match(await principals.byKey(agent.key), { owner_id: one.id });
});

t.test('of two people who link one agent at once one gets it', async (t) => {
  const people = [await addPerson(), await addPerson()];
  const agent = await addAgent();
  t.same((await Promise.all(people.map((person) => link(person, agent)))).sort(), [200, 409]);
});

t.test('an address that is not verified links nothing', async (t) => {
  const person = await addPerson(false);
  const agent = await addAgent();
  const refused = { status: 403, body: { code: 'EMAIL_NOT_VERIFIED' } };
  t.match(await send(person, agent.key), refused);
  t.match(await send(person, 'sk_no'), refused, 'nor learns anything about keys');
  t.match((await addAgent({}, person.token)).answer, refused);
  const [row] = await sql`select owner_id from agents where id = ${agent.id}`;
  t.equal(row?.['owner_id'], null);
});

t.test('a key of nobody is INVALID_API_KEY 400, none at all INVALID_REQUEST', async (t) => {
  const person = await addPerson();
  const agent = await addAgent();
  await agent.call('POST', '/api/me/rotate-key', { key: agent.key });
  for (const key of [makeApiKey(), 'sk_nonsense', 'x', 'k'.repeat(200), agent.key]) {
    const refused = await send(person, key);
    t.match(refused, { status: 400, body: { code: 'INVALID_API_KEY', status: 400 } }, key);
  }
  for (const key of [undefined, '', 7, 'k'.repeat(201)]) {
    const refused = await send(person, key);
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, String(key));
    t.equal(refused.body.fields[0].path, 'body.api_key');
  }
});

t.test('a suspended agent is not linked', async (t) => {
  const agent = await addAgent();
  await sql`update agents set suspended_at = now() where id = ${agent.id}`;
  const refused = await send(await addPerson(), agent.key);
  t.match(refused, { status: 403, body: { code: 'ACCOUNT_SUSPENDED' } });
});

t.test('with a Bearer token a new agent is linked at once', async (t) => {
  const { token, id: owner_id } = await addPerson();
  const { answer, key } = await addAgent({}, token);
  t.match(answer, { status: 201, body: { linked: true, user: { trust_label: 'verified' } } });
  t.notMatch(JSON.stringify(answer.body), owner_id);
  t.match(await principals.byKey(key), { owner_id });
  const bad = await addAgent({}, `hs_${'a'.repeat(43)}`);
  t.match(bad.answer, { status: 401, body: { code: 'INVALID_TOKEN' } }, 'a bad one registers none');
});

t.test('unlinking makes an agent unverified, and only its owner can', async (t) => {
  const [one, other] = [await addPerson(), await addPerson()];
  const agent = await addAgent({}, one.token);
  await principals.byKey(agent.key);
  const absent = { status: 404, body: { code: 'AGENT_NOT_FOUND' } };
  const drop = ({ call, token }: Person, id = agent.id) =>
    call('DELETE', `${path}/${id}`, { token });
  t.match(await drop(other), absent);
  t.match(await drop(one), {
    status: 200,
    body: { linked: false, agent: { trust_label: 'unverified', linked_at: null } },
  });
  t.match(await principals.byKey(agent.key), { owner_id: null });
  for (const id of [agent.id, makeId(), 'nonsense']) t.match(await drop(one, id), absent);
  t.equal(await link(other, agent), 200, 'free for somebody else');
});

t.test('a person sees their own agents only, in pages', async (t) => {
  const { call, token } = await addPerson();
  await addAgent({}, (await addPerson()).token);
  const ids: string[] = [];
  for (let i = 0; i < 3; i += 1) ids.unshift((await addAgent({}, token)).id);
  const read = async (query: string) => (await call('GET', `${path}?${query}`, { token })).body;
  const first = await read('limit=2');
  const rest = await read(`limit=2&cursor=${first.next_cursor}`);
  t.same([first.total, rest.next_cursor], [3, null]);
  const seen = [...first.agents, ...rest.agents].map(({ id }: { id: string }) => id);
  t.same(seen, ids);
  t.same((await read('offset=2')).agents[0].id, ids[2]);
});

interface Posted {
  readonly reason: string;
  readonly amount: number;
  readonly subject_id: string;
}

const addRecruit = (recruiter: Agent, token?: string): Promise<Agent> =>
  addAgent({ referral_code: recruiter.user.referral_code }, token);

/** The agent's referral entries, oldest first. Checks that its whole ledger equals the balance. */
const postedTo = async ({ id }: Agent): Promise<readonly Posted[]> => {
  const [account] = await sql<{ balance: number; total: number }[]>`
    select balance, (select sum(amount)::integer from ledger where agent_id = ${id}) as total
    from accounts
    where agent_id = ${id}`;
  t.equal(account?.balance, account?.total, 'the balance is the sum of the ledger');
  return sql<Posted[]>`
    select reason, amount, subject_id
    from ledger
    where agent_id = ${id} and reason like 'referral%'
    order by id`;
};

const amounts = async (agent: Agent): Promise<readonly number[]> =>
  (await postedTo(agent)).map(({ amount }) => amount);

t.test('fifty recruits verified at once are paid in order, each once', async (t) => {
  const owner = await addPerson();
  const others = await Promise.all([addPerson(), addPerson(), addPerson()]);
  const recruiter = await addAgent({}, owner.token);
  const recruits = await Promise.all(Array.from({ length: 50 }, () => addRecruit(recruiter)));
  // Every request is sent twice. The second may arrive after the reward for the first is paid.
  const links = recruits.flatMap((recruit, n) => {
    const person = others[n % others.length] as Person;
    return [link(person, recruit), link(person, recruit)];
  });
  t.same(new Set(await Promise.all(links)), new Set([200]));
  const posted = await postedTo(recruiter);
  const wanted = [200, 300, 300, 300, ...new Array<number>(46).fill(500)];
  t.same(
    posted.map(({ amount }) => amount).sort((a, b) => a - b),
    wanted,
  );
  t.same(new Set(posted.map(({ reason }) => reason)), new Set(['referral']));
  t.same(posted.map(({ subject_id }) => subject_id).sort(), recruits.map(({ id }) => id).sort());
  const rows = await sql`
    select ordinal, bonus from referrals where agent_id = ${recruiter.id} order by ordinal`;
  t.same(
    [...rows],
    wanted.map((bonus, n) => ({ ordinal: n + 1, bonus })),
  );
  const me = await owner.call('GET', '/api/me/transactions?limit=1', { key: recruiter.key });
  t.match(me.body, {
    balance: 5_000 + 200 + 900 + 46 * 500,
    transactions: [{ reason: 'referral' }],
  });
});

t.test('unlinking and linking again, by whomever, pays nothing again', async (t) => {
  const [owner, one, other] = [await addPerson(), await addPerson(), await addPerson()];
  const recruiter = await addAgent({}, owner.token);
  const recruit = await addRecruit(recruiter);
  for (const person of [one, one]) {
    t.equal(await link(person, recruit), 200);
    t.equal(await unlink(person, recruit), 200);
  }
  t.equal(await link(other, recruit), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test('a recruit that registers with a Bearer token counts at once', async (t) => {
  const [owner, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent({}, owner.token);
  for (const { token } of [other, owner, other]) await addRecruit(recruiter, token);
  t.same(await amounts(recruiter), [200, 300]);
});

t.test('under the recruiter’s own owner nothing is paid, under another one it is', async (t) => {
  const [owner, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent({}, owner.token);
  const recruit = await addRecruit(recruiter);
  t.equal(await link(owner, recruit), 200);
  t.same(await amounts(recruiter), []);
  t.equal(await unlink(owner, recruit), 200);
  t.equal(await link(other, recruit), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test('a recruiter without an owner is paid, and keeps it under another owner', async (t) => {
  const [one, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent();
  t.equal(await link(one, await addRecruit(recruiter)), 200);
  t.same(await amounts(recruiter), [200]);
  t.equal(await link(other, recruiter), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test('a recruiter linked under its recruits’ owner gives their bonuses back', async (t) => {
  const [owner, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent();
  for (const person of [owner, other, owner]) await link(person, await addRecruit(recruiter));
  t.same(await amounts(recruiter), [200, 300, 300]);
  t.match(await send(owner, recruiter.key), { status: 200, body: { agent: { points: 5_300 } } });
  t.same(await amounts(recruiter), [200, 300, 300, -200, -300]);
  t.equal((await postedTo(recruiter))[4]?.reason, 'referral_withdrawn');
  await unlink(owner, recruiter);
  await link(owner, recruiter);
  t.same(await amounts(recruiter), [200, 300, 300, -200, -300], 'once');
  await link(other, await addRecruit(recruiter));
  t.same((await amounts(recruiter)).at(-1), 300, 'the order goes on: this is the fourth');
});

t.test('a bonus that was paid under another owner stays', async (t) => {
  const [one, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent({}, one.token);
  t.equal(await link(other, await addRecruit(recruiter)), 200);
  t.equal(await unlink(one, recruiter), 200);
  t.equal(await link(other, recruiter), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test('linking both at once never pays within one owner', async (t) => {
  const owner = await addPerson();
  for (let round = 0; round < 15; round += 1) {
    const recruiter = await addAgent();
    const recruits = await Promise.all([1, 2, 3].map(() => addRecruit(recruiter)));
    const statuses = await Promise.all([recruiter, ...recruits].map((agent) => link(owner, agent)));
    t.same(statuses, [200, 200, 200, 200]);
    const total = (await amounts(recruiter)).reduce((sum, amount) => sum + amount, 0);
    t.equal(total, 0, 'paid and taken back, or not paid');
  }
});

t.test('a chain that is linked at once in every order ends without a deadlock', async (t) => {
  const people = [await addPerson(), await addPerson()];
  const chain = [await addAgent()];
  for (let n = 0; n < 12; n += 1) chain.push(await addRecruit(chain.at(-1) as Agent));
  const statuses = await Promise.all(
    chain.map((agent, n) => link(people[n % people.length] as Person, agent)),
  );
  t.same(new Set(statuses), new Set([200]));
  for (const recruiter of chain.slice(0, -1)) t.same(await amounts(recruiter), [200]);
});
