import { replaceKey } from '../../../src/features/accounts/agents-store.js';
import { createPrincipals } from '../../../src/features/accounts/principals-store.js';
import { registerAgent } from '../../../src/features/accounts/registration.js';
import { digestSecret, makeApiKey } from '../../../src/features/accounts/rules.js';
import { createRevocationWatch } from '../../../src/features/events/sockets.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { range } from '../../help/hub.js';
import { openParts, type Parts } from '../../help/parts.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { openStores, type Teardown } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

const stores = await openStores(t);

const addOwner = async ({ deps }: Parts): Promise<string> => {
  const id = makeId();
  await deps.sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    values (${id}, ${`${id}@example.com`}, ${`${id}@example.com`}, 'none', now())`;
  return id;
};

const addAgent = async (parts: Parts, linked = true) => {
  const owner_id = linked ? await addOwner(parts) : null;
  const body = { name: `Principal ${makeId().slice(-12)}`, model: 'gpt-5' };
  const added = await parts.deps.sql.begin((tx) =>
    registerAgent(tx, body, { owner_id, at: parts.deps.clock() }),
  );
  if (isFault(added)) throw new Error(added.message);
  return added;
};

const setSuspended = ({ deps }: Parts, id: string, at: Date | null) =>
  deps.sql`update agents set suspended_at = ${at} where id = ${id}`;

/** One process: its parts, its principals, and its queries to Postgres, which can be delayed. */
const startProcess = async (t: Teardown) => {
  const parts = await openParts(t, { stores });
  const queries = { made: 0, answered: 0, held: null as Promise<void> | null };
  const sql = new Proxy(parts.deps.sql, {
    apply(target, self, args) {
      queries.made += 1;
      const { held } = queries;
      const asked: Promise<unknown> = Reflect.apply(target as never, self, args);
      return asked.then(async (rows) => {
        queries.answered += 1;
        await held;
        return rows;
      });
    },
  });
  /** Delays the answers to queries sent from now on, until the returned function is called. */
  const holdUp = (): (() => void) => {
    let release = (): void => undefined;
    queries.held = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  };
  const principals = createPrincipals({ sql });
  principals.confirm(new Set(), performance.now());
  const { deps } = parts;
  const watch = createRevocationWatch(deps, {
    onRead: principals.confirm,
    onRevoked: () => undefined,
  });
  await watch.start();
  t.teardown(() => watch.stop());
  return { parts, queries, holdUp, principals };
};

t.test('a linked agent is read once and then answered without a promise', async (t) => {
  const { parts, queries, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const first = principals.byKey(api_key);
  t.ok(first instanceof Promise);
  t.match(await first, { kind: 'agent', id: agent.id, name: agent.name, model: 'gpt-5' });
  const second = principals.byKey(api_key);
  t.notOk(second instanceof Promise);
  t.equal(second, await first);
  t.equal(queries.made, 1);
});

t.test('an agent that is not linked is never cached, so that linking works at once', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts, false);
  t.match(await principals.byKey(api_key), { owner_id: null });
  const owner_id = await addOwner(parts);
  await parts.deps.sql`
    update agents set owner_id = ${owner_id}, linked_at = now() where id = ${agent.id}`;
  t.match(await principals.byKey(api_key), { owner_id });
});

t.test('unknown, replaced and malformed keys are refused alike and not sooner', async (t) => {
  const { parts, queries, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const fresh = makeApiKey();
  await replaceKey(parts.deps.sql, agent.id, {
    old_digest: digestSecret(api_key),
    new_digest: digestSecret(fresh),
  });
  const malformed = [`${fresh.slice(0, -1)}!`, 'sk_short', '', `sk_${'a'.repeat(49)}`, `${fresh}0`];
  for (const key of [makeApiKey(), api_key, ...malformed]) {
    const started_ms = performance.now();
    const answer = await principals.byKey(key);
    const ms = performance.now() - started_ms;
    t.match(answer, { def: { code: 'INVALID_API_KEY', status: 401 } }, key);
    t.same(answer, await principals.byKey('sk_no'), 'the same answer');
    t.ok(ms >= 24, `${ms} ms`);
  }
  t.equal(queries.made, 2, 'malformed keys reach no store');
  t.match(await principals.byKey(fresh), { id: agent.id });
});

t.test('a suspended agent stops within a second in each process, at once in its own', async (t) => {
  const one = await startProcess(t);
  const other = await startProcess(t);
  const { agent, api_key } = await addAgent(one.parts);
  for (const { principals } of [one, other]) await principals.byKey(api_key);
  t.notOk(other.principals.byKey(api_key) instanceof Promise, 'cached in the other process');
  await setSuspended(one.parts, agent.id, new Date());
  const readWatch = startStopwatch();
  one.principals.forget(agent.id);
  const refused = { def: { code: 'ACCOUNT_SUSPENDED', status: 403 } };
  t.match(await one.principals.byKey(api_key), refused);
  await until('refused', async () => isFault(await other.principals.byKey(api_key)));
  t.ok(readWatch() < 1_100);
  t.match(await other.principals.byKey(api_key), refused);
  await setSuspended(one.parts, agent.id, null);
  t.match(await other.principals.byKey(api_key), { kind: 'agent', id: agent.id });
});

t.test('what changes of an agent is seen within a second', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { sql } = parts.deps;
  const { agent, api_key } = await addAgent(parts);
  const owner_id = await addOwner(parts);
  for (const change of [
    { name: `Renamed ${makeId().slice(-12)}` },
    { model: 'claude-5' },
    { model_family: 'claude' },
    { owner_id },
  ]) {
    await principals.byKey(api_key);
    t.notOk(principals.byKey(api_key) instanceof Promise, 'cached');
    await sql`update agents set ${sql(change)} where id = ${agent.id}`;
    await until(`${Object.keys(change)}`, async () => {
      const who = await principals.byKey(api_key);
      return Object.entries(change).every(([name, value]) => Object(who)[name] === value);
    });
  }
});

t.test('without a reading of what changed, nothing that is cached is believed', async (t) => {
  const parts = await openParts(t, { stores });
  const principals = createPrincipals(parts.deps);
  const { api_key } = await addAgent(parts);
  await principals.byKey(api_key);
  const second = principals.byKey(api_key);
  t.ok(second instanceof Promise, 'before the first one');
  await second;
  principals.confirm(new Set(), performance.now());
  await principals.byKey(api_key);
  t.notOk(principals.byKey(api_key) instanceof Promise);
  principals.confirm(null, performance.now());
  const missed = principals.byKey(api_key);
  t.ok(missed instanceof Promise, 'changes may have been missed');
  await missed;
  t.notOk(principals.byKey(api_key) instanceof Promise);
  principals.confirm(new Set(), performance.now() - 1_000);
  const again = principals.byKey(api_key);
  t.ok(again instanceof Promise, 'the last one is a second old');
  await again;
});

t.test('what was read while it changed is not kept', async (t) => {
  const { parts, queries, holdUp, principals } = await startProcess(t);
  const { api_key } = await addAgent(parts);
  const release = holdUp();
  const early = principals.byKey(api_key);
  await until('it is read', () => queries.answered === 1);
  queries.held = null;
  principals.confirm(new Set([digestSecret(api_key).toString('hex')]), performance.now());
  release();
  await early;
  const late = principals.byKey(api_key);
  t.ok(late instanceof Promise);
  await late;
  t.equal(queries.made, 2);
});

t.test('keys asked for in one turn are read by one query, each answer in its place', async (t) => {
  const { parts, queries, principals } = await startProcess(t);
  const added = await Promise.all(range(1, 30).map(() => addAgent(parts)));
  const answers = await Promise.all(
    [...added.map(({ api_key }) => api_key), makeApiKey()].map((key) => principals.byKey(key)),
  );
  t.ok(queries.made <= 2, `${queries.made} queries`);
  t.ok(isFault(answers.pop() as never), 'one that is not there');
  t.strictSame(
    answers.map((who) => (isFault(who) ? null : who.id)),
    added.map(({ agent }) => agent.id),
  );
});

t.test('a key that is asked for after a change does not get what was read before it', async (t) => {
  const { parts, queries, holdUp, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const release = holdUp();
  const before = principals.byKey(api_key);
  await until('the row is read', () => queries.answered === 1);
  queries.held = null;
  await setSuspended(parts, agent.id, new Date());
  principals.forget(agent.id);
  const after = principals.byKey(api_key);
  release();
  t.match(await before, { id: agent.id });
  t.match(await after, { def: { code: 'ACCOUNT_SUSPENDED' } });
  t.match(await principals.byKey(api_key), { def: { code: 'ACCOUNT_SUSPENDED' } });
});

t.test('without Postgres a reading fails, and the next one is made anew', async (t) => {
  const { parts, queries, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  queries.held = Promise.reject(new Error('No answer.'));
  queries.held.catch(() => undefined);
  await t.rejects(async () => principals.byKey(api_key), { message: 'No answer.' });
  queries.held = null;
  t.match(await principals.byKey(api_key), { id: agent.id });
});
