import { Redis } from 'ioredis';
import { t } from 'tap';
import { createPrincipals, type PrincipalOptions } from '../../../src/features/agents/live.js';
import { registerAgent } from '../../../src/features/agents/registration.js';
import { digestKey, makeApiKey } from '../../../src/features/agents/rules.js';
import { replaceKey } from '../../../src/features/agents/store.js';
import type { Deps } from '../../../src/kit/deps.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { readChanges } from '../../../src/kit/pg/changes-store.js';
import { openParts, type Parts } from '../../help/parts.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { openStores, type Teardown } from '../../help/stores.js';
import { until } from '../../help/until.js';

const stores = await openStores(t);
let agents = 0;

const addOwner = async ({ deps }: Parts): Promise<string> => {
  const id = makeId();
  await deps.sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    values (${id}, ${`${id}@example.com`}, ${`${id}@example.com`}, 'none', now())`;
  return id;
};

const addAgent = async (parts: Parts, linked = true) => {
  agents += 1;
  const name = `Principal ${agents}`;
  const owner_id = linked ? await addOwner(parts) : null;
  const body = { name, model: 'gpt-5' };
  const added = await registerAgent(parts.deps, body, { owner_id });
  if (isFault(added)) throw new Error(added.message);
  return added;
};

/** One process: deps of its own and principals that listen. */
const startProcess = async (t: Teardown, options: PrincipalOptions = {}) => {
  const parts = await openParts(t, { stores });
  const principals = createPrincipals(parts.deps, options);
  t.teardown(() => principals.stop());
  await principals.start();
  await until('the subscription is trusted', () => principals.stats.trusted);
  return { parts, principals };
};

/** Where only a purge may tell: Postgres is asked at the start and then no more. */
const deaf: PrincipalOptions = { changes_every_ms: 600_000 };

/** Counts what `deps.sql` is asked from now on; what it answers can be held up. */
const countQueries = (deps: Deps) => {
  const { sql } = deps;
  const queries = { sql, made: 0, answered: 0, held: null as Promise<void> | null };
  const counted = new Proxy(sql, {
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
  Object.assign(deps, { sql: counted });
  return queries;
};

t.test('a linked agent is read once and then answered without a promise', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const first = principals.byKey(api_key);
  t.ok(first instanceof Promise);
  t.match(await first, { kind: 'agent', id: agent.id, name: agent.name, model: 'gpt-5' });
  const second = principals.byKey(api_key);
  t.notOk(second instanceof Promise);
  t.equal(second, await first);
  t.equal(principals.stats.loads, 1);
});

t.test(
  'an agent that is not linked is read every time, so that linking works at once',
  async (t) => {
    const { parts, principals } = await startProcess(t);
    const { agent, api_key } = await addAgent(parts, false);
    t.match(await principals.byKey(api_key), { owner_id: null });
    const owner_id = await addOwner(parts);
    await parts.deps.sql`
    update agents set owner_id = ${owner_id}, linked_at = now() where id = ${agent.id}`;
    t.match(await principals.byKey(api_key), { owner_id });
  },
);

t.test('unknown, replaced and malformed keys are refused alike and not sooner', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const fresh = makeApiKey();
  await replaceKey(parts.deps.sql, {
    id: agent.id,
    old_digest: digestKey(api_key),
    new_digest: digestKey(fresh),
  });
  const loads_before = principals.stats.loads;
  const malformed = [`${fresh.slice(0, -1)}!`, 'sk_short', '', `sk_${'a'.repeat(49)}`, `${fresh}0`];
  for (const key of [makeApiKey(), api_key, ...malformed]) {
    const started_ms = performance.now();
    const answer = await principals.byKey(key);
    const ms = performance.now() - started_ms;
    t.match(answer, { def: { code: 'INVALID_API_KEY', status: 401 } }, key);
    t.same(answer, await principals.byKey('sk_no'), 'the same answer');
    t.ok(ms >= 24, `${ms} ms`);
  }
  t.equal(principals.stats.loads - loads_before, 2, 'malformed keys reach no store');
  t.match(await principals.byKey(fresh), { id: agent.id });
});

t.test('a suspended agent is refused, and again when it was cached before', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  await principals.byKey(api_key);
  await parts.deps.sql`update agents set suspended_at = now() where id = ${agent.id}`;
  await principals.purge(agent.id);
  t.match(await principals.byKey(api_key), { def: { code: 'ACCOUNT_SUSPENDED', status: 403 } });
  await parts.deps.sql`update agents set suspended_at = null where id = ${agent.id}`;
  t.match(await principals.byKey(api_key), { kind: 'agent', id: agent.id });
});

t.test('a replaced key stops within a second in every process', async (t) => {
  const one = await startProcess(t, deaf);
  const other = await startProcess(t, deaf);
  const { agent, api_key } = await addAgent(one.parts);
  await other.principals.byKey(api_key);
  t.notOk(other.principals.byKey(api_key) instanceof Promise, 'cached in the other process');
  const new_digest = digestKey(makeApiKey());
  await replaceKey(one.parts.deps.sql, { id: agent.id, old_digest: undefined, new_digest });
  const readWatch = startStopwatch();
  await one.principals.purge(agent.id);
  await until('refused', async () => isFault(await other.principals.byKey(api_key)));
  t.ok(readWatch() < 1_000);
});

t.test('a key replaced while the new one is cached already stops all the same', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  await principals.byKey(api_key);
  const fresh = makeApiKey();
  await replaceKey(parts.deps.sql, {
    id: agent.id,
    old_digest: undefined,
    new_digest: digestKey(fresh),
  });
  await principals.byKey(fresh);
  t.match(await principals.byKey(api_key), { def: { code: 'INVALID_API_KEY' } });
});

t.test('a purge that could not be published reaches the others later', async (t) => {
  const other = await startProcess(t, deaf);
  const parts = await openParts(t, { stores });
  const principals = createPrincipals(parts.deps, deaf);
  t.teardown(() => principals.stop());
  await principals.start();
  const { agent, api_key } = await addAgent(parts);
  await other.principals.byKey(api_key);
  const new_digest = digestKey(makeApiKey());
  await replaceKey(parts.deps.sql, { id: agent.id, old_digest: undefined, new_digest });
  parts.deps.redis.disconnect(true);
  await principals.purge(agent.id);
  await until('refused', async () => isFault(await other.principals.byKey(api_key)), 3_000);
  t.pass('refused in the other process');
});

t.test('without Redis an entry lives for a second', async (t) => {
  const parts = await openParts(t, { stores, redis_url: 'redis://127.0.0.1:1' });
  const principals = createPrincipals(parts.deps);
  t.teardown(() => principals.stop());
  await principals.start();
  t.notOk(principals.stats.trusted);
  const { api_key } = await addAgent(parts);
  const started_ms = performance.now();
  const readWatch = startStopwatch();
  await principals.byKey(api_key);
  t.notOk(principals.byKey(api_key) instanceof Promise, 'kept for the moment');
  await until('read again', async () => {
    await principals.byKey(api_key);
    return principals.stats.loads === 2;
  });
  const ms = performance.now() - started_ms;
  t.ok(ms >= 990 && readWatch() < 2_000, `${ms} ms`);
});

t.test('with a trusted subscription an entry lives longer than that', async (t) => {
  const { parts, principals } = await startProcess(t, { ...deaf, life_ms: 1_500 });
  const { api_key } = await addAgent(parts);
  const started_ms = performance.now();
  const first = await principals.byKey(api_key);
  await until('read again', async () => {
    await principals.byKey(api_key);
    return principals.stats.loads === 2;
  });
  t.ok(performance.now() - started_ms >= 1_490);
  t.equal(await principals.byKey(api_key), first, 'the same object, since nothing has changed');
  await parts.deps.sql`update agents set model = 'another one'`;
  await until('read once more', async () => {
    await principals.byKey(api_key);
    return principals.stats.loads === 3;
  });
  t.match(await principals.byKey(api_key), { model: 'another one' });
});

t.test('a subscription that was away comes back with an empty cache', async (t) => {
  const { parts, principals } = await startProcess(t, deaf);
  const { agent, api_key } = await addAgent(parts);
  await principals.byKey(api_key);
  t.equal(principals.stats.size, 1);
  const new_digest = digestKey(makeApiKey());
  await replaceKey(parts.deps.sql, { id: agent.id, old_digest: undefined, new_digest });
  const admin = new Redis(stores.redis_url.replace(/^unix:/, ''));
  t.teardown(() => admin.disconnect());
  // The change above was published to nobody: only the gap can reveal it.
  const clients = String(await admin.client('LIST', 'TYPE', 'PUBSUB')).split('\n');
  const own = clients.filter((line) => line.includes(`name=${stores.redis_prefix}:purge `));
  t.ok(own.length > 0, 'the subscription is found');
  for (const line of own) await admin.client('KILL', 'ID', String(/id=(\d+)/.exec(line)?.[1]));
  await until('trust is lost or the cache is empty', () => principals.stats.size === 0);
  await until('trusted again', () => principals.stats.trusted);
  t.match(await principals.byKey(api_key), { def: { code: 'INVALID_API_KEY' } });
});

t.test('a look-up that a purge overtakes is not kept', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const { sql } = parts.deps;
  let lookUp: unknown;
  await sql.begin(async (tx) => {
    await tx`lock table agents in access exclusive mode`;
    lookUp = principals.byKey(api_key);
    await principals.purge(agent.id);
  });
  t.match(await lookUp, { id: agent.id });
  t.equal(principals.stats.size, 0);
  await principals.byKey(api_key);
  t.equal(principals.stats.size, 1);
});

t.test('the cache holds its maximum and lets the oldest go at one more', async (t) => {
  const { parts, principals } = await startProcess(t, { most_entries: 2 });
  const keys: string[] = [];
  for (let i = 0; i < 3; i += 1) keys.push((await addAgent(parts)).api_key);
  await principals.byKey(keys[0] as string);
  await principals.byKey(keys[1] as string);
  t.equal(principals.stats.size, 2);
  t.notOk(principals.byKey(keys[0] as string) instanceof Promise);
  await principals.byKey(keys[2] as string);
  t.equal(principals.stats.size, 2);
  t.notOk(principals.byKey(keys[2] as string) instanceof Promise);
  const again = principals.byKey(keys[0] as string);
  t.ok(again instanceof Promise, 'the oldest went');
  await again;
});

t.test('many agents are looked up together, each for itself', async (t) => {
  const { parts, principals } = await startProcess(t);
  const added = await Promise.all(Array.from({ length: 40 }, () => addAgent(parts)));
  const queries = countQueries(parts.deps);
  const callers = await Promise.all(
    [...added.map(({ api_key }) => api_key), makeApiKey()].map((key) => principals.byKey(key)),
  );
  t.same(
    callers.map((caller) => (isFault(caller) ? caller.def.code : caller.id)),
    [...added.map(({ agent }) => agent.id), 'INVALID_API_KEY'],
  );
  t.equal(queries.made, 1);
});

t.test('who asks after a purge does not get what was read before it', async (t) => {
  const { parts, principals } = await startProcess(t);
  const { agent, api_key } = await addAgent(parts);
  const queries = countQueries(parts.deps);
  let letGo = (): void => undefined;
  queries.held = new Promise((resolve) => {
    letGo = resolve;
  });
  const before = principals.byKey(api_key);
  await until('read', () => queries.answered === 1);
  queries.held = null;
  await queries.sql`update agents set suspended_at = now() where id = ${agent.id}`;
  await principals.purge(agent.id);
  const after = principals.byKey(api_key);
  letGo();
  t.match(await before, { id: agent.id }, 'it was asked for before');
  t.match(await after, { def: { code: 'ACCOUNT_SUSPENDED' } });
  t.match(await principals.byKey(api_key), { def: { code: 'ACCOUNT_SUSPENDED' } });
});

t.test('a change that nobody announced is found in Postgres within seconds', async (t) => {
  const { parts, principals } = await startProcess(t);
  const told: string[] = [];
  const other = createPrincipals(parts.deps, { onPurge: (id) => told.push(id) });
  t.teardown(() => other.stop());
  await other.start();
  const [one, two, unchanged] = [
    await addAgent(parts),
    await addAgent(parts),
    await addAgent(parts),
  ];
  for (const { api_key } of [one, two, unchanged]) await principals.byKey(api_key);
  const readWatch = startStopwatch();
  await parts.deps.sql`update agents set suspended_at = now() where id = ${one.agent.id}`;
  const new_digest = digestKey(makeApiKey());
  await replaceKey(parts.deps.sql, { id: two.agent.id, old_digest: undefined, new_digest });
  await until('both are refused', async () => {
    const answers = [await principals.byKey(one.api_key), await principals.byKey(two.api_key)];
    return answers.every(isFault);
  });
  t.ok(readWatch() < 3_000);
  t.match(await principals.byKey(one.api_key), { def: { code: 'ACCOUNT_SUSPENDED' } });
  t.notOk(principals.byKey(unchanged.api_key) instanceof Promise, 'the third is still known');
  await until('who asked to be told has been', () => told.includes(one.agent.id));
  t.notOk(told.includes(unchanged.agent.id));
});

t.test('a change is found however long its transaction took', async (t) => {
  const told: string[] = [];
  const onPurge = (id: string): void => void told.push(id);
  const { parts, principals } = await startProcess(t, { changes_every_ms: 20, onPurge });
  const { agent, api_key } = await addAgent(parts);
  const { sql } = parts.deps;
  await sql.begin(async (tx) => {
    await tx`update agents set suspended_at = now() where id = ${agent.id}`;
    // Others commit meanwhile, and are found; this one is not to be seen yet.
    const between = await addAgent(parts);
    await principals.byKey(between.api_key);
    await sql`update agents set suspended_at = now() where id = ${between.agent.id}`;
    await until('the later one is found', async () =>
      isFault(await principals.byKey(between.api_key)),
    );
    const after = await addAgent(parts);
    await principals.byKey(after.api_key);
    await sql`update agents set suspended_at = now() where id = ${after.agent.id}`;
    await until('the next as well', async () => isFault(await principals.byKey(after.api_key)));
    t.match(await principals.byKey(api_key), { id: agent.id });
  });
  await until('found', async () => isFault(await principals.byKey(api_key)));
  t.equal(principals.stats.size, 0);
  t.equal(told.length, 3, 'each is told once');
});

/** Who changed; among them may be others, where a transaction of somebody else takes long. */
const changedSince = async ({ deps }: Parts, since: string): Promise<string[]> =>
  (await readChanges(deps.sql, 'agents', since)).changed.map(({ id }) => id);

t.test('what a profile says beside that changes nothing here', async (t) => {
  const { parts, principals } = await startProcess(t, { changes_every_ms: 20 });
  const { agent, api_key } = await addAgent(parts);
  const { sql } = parts.deps;
  await principals.byKey(api_key);
  await sql`update agents set bio = 'Reads tide tables.' where id = ${agent.id}`;
  const { next } = await readChanges(sql, 'agents', null);
  const other = await addAgent(parts);
  await sql`update agents set model = 'gpt-6' where id = ${other.agent.id}`;
  const changed = await changedSince(parts, next);
  t.ok(changed.includes(other.agent.id));
  t.notOk(changed.includes(agent.id));
  t.notOk(principals.byKey(api_key) instanceof Promise);
});

t.test('a number of another server says nothing', async (t) => {
  const { parts } = await startProcess(t);
  const { agent } = await addAgent(parts);
  const { sql } = parts.deps;
  const { next } = await readChanges(sql, 'agents', null);
  const far = String(BigInt(next) + 1_000_000_000n);
  await sql`update agents set changed_in = ${far}::xid8 where id = ${agent.id}`;
  t.notOk((await changedSince(parts, next)).includes(agent.id));
});
