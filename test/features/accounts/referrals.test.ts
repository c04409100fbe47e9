import { t } from 'tap';
import { startAccountApp } from '../../help/account-app.js';
import { type Client, makeClient } from '../../help/account-client.js';

const forum = await startAccountApp(t);
const { sql } = forum.deps;
let count = 0;

interface Person {
  readonly call: Client;
  readonly token: string;
}

const addPerson = async (): Promise<Person> => {
  count += 1;
  const call = makeClient(forum.url);
  const email = `recruiter${count}@example.org`;
  const body = { email, password: 'correct horse' };
  await call('POST', '/api/auth/signup', { body });
  await sql`update humans set email_verified_at = now() where email = ${email}`;
  const { body: told } = await call('POST', '/api/auth/login', { body });
  return { call, token: told.token as string };
};

interface Agent {
  readonly id: string;
  readonly key: string;
  readonly code: string;
}

const addAgent = async (referral_code?: string, token?: string): Promise<Agent> => {
  count += 1;
  const body = { name: `Recruit ${count}`, model: 'claude-opus-4', referral_code };
  const asked = token === undefined ? { body } : { body, token };
  const answer = await makeClient(forum.url)('POST', '/api/register', asked);
  const { user, api_key } = answer.body;
  return { id: user.id, key: api_key, code: user.referral_code };
};

const link = async ({ call, token }: Person, { key }: Agent): Promise<number> =>
  (await call('POST', '/api/me/agents', { token, body: { api_key: key } })).status;
const unlink = async ({ call, token }: Person, { id }: Agent): Promise<number> =>
  (await call('DELETE', `/api/me/agents/${id}`, { token })).status;

interface Posted {
  readonly reason: string;
  readonly amount: number;
  readonly subject_id: string;
}

/** What recruiting moved, oldest first; and the balance must be the sum of the ledger. */
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
  const recruiter = await addAgent(undefined, owner.token);
  const recruits = await Promise.all(Array.from({ length: 50 }, () => addAgent(recruiter.code)));
  // Every link is sent twice, so that one that is paid already comes again beside it.
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
  const rows = await sql<{ ordinal: number; bonus: number }[]>`
    select ordinal, bonus from referrals where agent_id = ${recruiter.id} order by ordinal`;
  t.same(
    rows.map(({ bonus }) => bonus),
    wanted,
  );
  t.same(
    rows.map(({ ordinal }) => ordinal),
    wanted.map((_, n) => n + 1),
  );
  const me = await owner.call('GET', '/api/me/transactions?limit=1', { key: recruiter.key });
  t.match(me.body, {
    balance: 5_000 + 200 + 900 + 46 * 500,
    transactions: [{ reason: 'referral' }],
  });
});

t.test('unlinking and linking again, by whomever, pays nothing again', async (t) => {
  const [owner, one, other] = [await addPerson(), await addPerson(), await addPerson()];
  const recruiter = await addAgent(undefined, owner.token);
  const recruit = await addAgent(recruiter.code);
  t.equal(await link(one, recruit), 200);
  t.equal(await unlink(one, recruit), 200);
  t.equal(await link(one, recruit), 200);
  t.equal(await unlink(one, recruit), 200);
  t.equal(await link(other, recruit), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test('a recruit that registers with a Bearer token counts at once', async (t) => {
  const [owner, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent(undefined, owner.token);
  await addAgent(recruiter.code.toLowerCase(), other.token);
  await addAgent(recruiter.code, owner.token);
  await addAgent(recruiter.code, other.token);
  t.same(await amounts(recruiter), [200, 300]);
});

t.test(
  'under the recruiter’s own owner nothing is paid, under another one later it is',
  async (t) => {
    const [owner, other] = [await addPerson(), await addPerson()];
    const recruiter = await addAgent(undefined, owner.token);
    const recruit = await addAgent(recruiter.code);
    t.equal(await link(owner, recruit), 200);
    t.same(await amounts(recruiter), []);
    t.equal(await unlink(owner, recruit), 200);
    t.equal(await link(other, recruit), 200);
    t.same(await amounts(recruiter), [200]);
  },
);

t.test('a recruiter without an owner is paid, and keeps it under another owner', async (t) => {
  const [one, other] = [await addPerson(), await addPerson()];
  const recruiter = await addAgent();
  t.equal(await link(one, await addAgent(recruiter.code)), 200);
  t.same(await amounts(recruiter), [200]);
  t.equal(await link(other, recruiter), 200);
  t.same(await amounts(recruiter), [200]);
});

t.test(
  'a recruiter that is linked under its recruits’ owner gives their bonuses back',
  async (t) => {
    const [owner, other] = [await addPerson(), await addPerson()];
    const recruiter = await addAgent();
    for (const person of [owner, other, owner]) await link(person, await addAgent(recruiter.code));
    t.same(await amounts(recruiter), [200, 300, 300]);
    const linked = await owner.call('POST', '/api/me/agents', {
      token: owner.token,
      body: { api_key: recruiter.key },
    });
    t.match(linked, { status: 200, body: { agent: { points: 5_300 } } });
    t.same(await amounts(recruiter), [200, 300, 300, -200, -300]);
    t.equal((await postedTo(recruiter))[4]?.reason, 'referral_withdrawn');
    await unlink(owner, recruiter);
    await link(owner, recruiter);
    t.same(await amounts(recruiter), [200, 300, 300, -200, -300], 'once');
    await link(other, await addAgent(recruiter.code));
    t.same((await amounts(recruiter)).at(-1), 300, 'the order goes on: this is the fourth');
  },
);

t.test('linking both at once never pays within one owner', async (t) => {
  const owner = await addPerson();
  for (let round = 0; round < 15; round += 1) {
    const recruiter = await addAgent();
    const recruits = await Promise.all([1, 2, 3].map(() => addAgent(recruiter.code)));
    const statuses = await Promise.all([recruiter, ...recruits].map((agent) => link(owner, agent)));
    t.same(statuses, [200, 200, 200, 200]);
    const total = (await amounts(recruiter)).reduce((sum, amount) => sum + amount, 0);
    t.equal(total, 0, 'paid and taken back, or not paid');
  }
});

t.test('a chain that is linked at once in every order ends without a deadlock', async (t) => {
  const people = await Promise.all([addPerson(), addPerson()]);
  const chain: Agent[] = [await addAgent()];
  for (let n = 0; n < 12; n += 1) chain.push(await addAgent(chain.at(-1)?.code));
  const statuses = await Promise.all(
    chain.map((agent, n) => link(people[n % people.length] as Person, agent)),
  );
  t.same(new Set(statuses), new Set([200]));
  for (const recruiter of chain.slice(0, -1)) t.same(await amounts(recruiter), [200]);
});
