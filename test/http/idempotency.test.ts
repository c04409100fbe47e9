import { pino } from 'pino';
import { openSql, type Sql } from '../../src/db/client.js';
import {
  type CallToClaim,
  ClaimLostError,
  createIdempotency,
  createIdempotencySweep,
  type Idempotency,
  isKept,
  storeInTransaction,
} from '../../src/http/idempotency.js';
import { type Claim, reply } from '../../src/http/route.js';
import { common_faults, refuse } from '../../src/kit/fault.js';
import { makeId } from '../../src/kit/ids.js';
import { type Answered, type CallOptions, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * `Idempotency-Key` over HTTP: replayed answers, refusals, and cases that leave a key free. Then
 * claims and stored answers on their own: leases, fences, seals and expiry.
 */

const app = await startApp(t, { roles: ['api'], env: { LIMIT_KEY: '1000000' } });
const second = await startApp(t, { roles: ['api'], stores: app.stores });

const post = (path: string, key: string, send: CallOptions = {}): Promise<Answered> =>
  app.call('POST', path, { ...send, headers: { 'idempotency-key': key, ...send.headers } });
const register = (key: string, name: string) =>
  post('/api/register', key, { body: { name, model: 'gpt-4o' } });
const isReplay = ({ headers }: Answered): boolean => headers.get('idempotency-replayed') === 'true';

const open = (name: string): Sql => {
  const sql = openSql({ url: app.stores.database_url, pool: 4, prepare: true, name });
  t.teardown(() => sql.end({ timeout: 1 }));
  return sql;
};
const blocker = open('blocker');
/** Runs `work` while a call that changes the agent has to wait. */
const whileLocked = (agent: { readonly id: string }, work: () => Promise<void>) =>
  blocker.begin(async (tx) => {
    await tx`select from agents where id = ${agent.id} for update`;
    await work();
  });

let used = 0;
const newName = (): string => {
  used += 1;
  return `Named ${used}`;
};
const countAgents = async (name: string): Promise<number> => {
  const [row] = await app.sql`select count(*)::int as n from agents where name = ${name}`;
  return Number(row?.['n']);
};

t.test('the same request again gets the first answer and has no second effect', async (t) => {
  const [name, key] = [newName(), makeId()];
  const first = await register(key, name);
  t.equal(first.status, 201);
  t.notOk(isReplay(first));
  const again = await register(key, name);
  t.equal(again.status, 201);
  t.ok(isReplay(again));
  t.same(again.body, first.body);
  t.equal(again.headers.get('cache-control'), 'no-store');
  t.not(again.headers.get('x-request-id'), first.headers.get('x-request-id'));
  t.equal(await countAgents(name), 1);
  t.match(await app.call('GET', '/api/me', { key: again.body.api_key }), { status: 200 });
});

t.test('another body, route or path under the key is a mismatch', async (t) => {
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const [one, two] = [await makeOpenQuestion(app, { publish: false }), makeId()];
  const used_key = makeId();
  const publish = (id: string, send: CallOptions = { body: {} }) =>
    post(`/api/admin/questions/${id}/publish`, used_key, { admin: true, ...send });
  t.match(await publish(one), { status: 200 });
  const mismatch = { status: 422, body: { code: 'IDEMPOTENCY_MISMATCH', retryable: false } };
  t.match(await publish(two), mismatch);
  t.match(await publish(one, { body: { a: 1 } }), mismatch);
  t.match(
    await post(`/api/admin/questions/${one}/close`, used_key, { admin: true, body: {} }),
    mismatch,
  );
  t.match(await publish(one), { status: 200 });
  const elsewhere = await post('/api/me/rotate-key', used_key, { key, body: {} });
  t.match(elsewhere, { status: 200 }, 'the key of another caller is another key');
});

t.test('a key has 1 to 255 printable ASCII characters', async (t) => {
  t.match(await register('k'.repeat(255), newName()), { status: 201 });
  t.match(await register(' ! ~', newName()), { status: 201 });
  // At the end of a value, uWS strips such bytes like spaces, so they cannot be detected there.
  for (const wrong of ['', 'k'.repeat(256), 'caf\u00e9s', 'a\tb']) {
    const name = newName();
    t.match(await register(wrong, name), {
      status: 400,
      body: { code: 'INVALID_REQUEST', fields: [{ path: 'header.idempotency-key' }] },
    });
    t.equal(await countAgents(name), 0);
  }
});

t.test('only POST and PATCH look at the header', async (t) => {
  const { key } = await makeAgent(app);
  const headers = { 'idempotency-key': 'caf\u00e9s' };
  t.match(await app.call('GET', '/api/me', { key, headers }), { status: 200 });
  const body = { bio: 'I read tide tables.' };
  t.match(await app.call('PATCH', '/api/me', { key, headers, body }), {
    status: 400,
    body: { code: 'INVALID_REQUEST' },
  });
  const [row] =
    await app.sql`select count(*)::int as n from idempotency where key = ${'caf\u00e9s'}`;
  t.equal(row?.['n'], 0);
});

t.test('while the first is worked on, the same request is told to come back', async (t) => {
  const agent = await makeAgent(app);
  const key = makeId();
  const send = { key: agent.key, body: {} };
  const rotate = () => post('/api/me/rotate-key', key, send);
  let first: Promise<Answered> = Promise.reject(new Error('not asked'));
  first.catch(() => undefined);
  await whileLocked(agent, async () => {
    first = rotate();
    await until('the first waits for the row', async () => {
      const waiting = await app.sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'update agents'`;
      return waiting.length > 0;
    });
    const meanwhile = await rotate();
    t.match(meanwhile, { status: 409, body: { code: 'IDEMPOTENCY_IN_PROGRESS', retryable: true } });
    t.equal(meanwhile.headers.get('retry-after'), '1');
    const other = await post('/api/me/rotate-key', key, { key: agent.key, body: { a: 1 } });
    t.match(other, { status: 422, body: { code: 'IDEMPOTENCY_MISMATCH' } });
  });
  const answered = await first;
  t.equal(answered.status, 200);
  t.notOk(isReplay(answered));
});

t.test('many at once through two processes have one effect', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const [name, key] = [newName(), makeId()];
    const options = { body: { name, model: 'm' }, headers: { 'idempotency-key': key } };
    const apps = Array.from({ length: 8 }, () => [app, second]).flat();
    const answers = await Promise.all(
      apps.map((one) => one.call('POST', '/api/register', options)),
    );
    t.equal(await countAgents(name), 1);
    const done = answers.filter(({ status }) => status === 201);
    t.ok(done.length >= 1);
    t.equal(done.filter((one) => !isReplay(one)).length, 1);
    t.equal(new Set(done.map(({ body }) => body.api_key)).size, 1);
    for (const { status, body } of answers) {
      if (status !== 201)
        t.match({ status, body }, { status: 409, body: { code: 'IDEMPOTENCY_IN_PROGRESS' } });
    }
  }
});

t.test('a request that is not right leaves the key free, a judgement does not', async (t) => {
  const [name, key] = [newName(), makeId()];
  t.match(await register(key, 'x'), { status: 400 });
  const broken = { body: '{', headers: { 'content-type': 'application/json' } };
  t.match(await post('/api/register', key, broken), { status: 400 });
  t.match(await register(key, name), { status: 201 }, 'mended under the same key');
  const judged = makeId();
  t.match(await register(judged, name), { status: 409, body: { code: 'DUPLICATE_NAME' } });
  await app.sql`update agents set name_key = name_key || ' gone' where name = ${name}`;
  const again = await register(judged, name);
  t.match(again, { status: 409, body: { code: 'DUPLICATE_NAME' } });
  t.ok(isReplay(again));
  t.equal(again.body.request_id, again.headers.get('x-request-id'));
  t.match(await register(makeId(), name), { status: 201 }, 'a new key is judged anew');
});

t.test('an outage and a used-up limit leave the key free', async (t) => {
  const agent = await makeAgent(app);
  const key = makeId();
  const rotate = () => post('/api/me/rotate-key', key, { key: agent.key, body: {} });
  await whileLocked(agent, async () => {
    t.match(await rotate(), { status: 503 }, 'the lock is not given within its second');
  });
  const done = await rotate();
  t.match(done, { status: 200 });
  t.notOk(isReplay(done));

  const env = { LIMIT_REGISTER: '1' };
  const narrow = await startApp(t, { roles: ['api'], stores: app.stores, env });
  const options = (used_key: string) => ({
    body: { name: newName(), model: 'm' },
    headers: { 'idempotency-key': used_key },
  });
  await app.call('POST', '/api/register', options(makeId()));
  const refused = options(makeId());
  t.match(await narrow.call('POST', '/api/register', refused), { status: 429 });
  const later = await app.call('POST', '/api/register', refused);
  t.match(later, { status: 201 });
  t.notOk(isReplay(later));
});

t.test('a key that was replaced still gets the answer with the new one, and no more', async (t) => {
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const rotate = (key: string, body: unknown = {}) =>
    post('/api/me/rotate-key', key, { key: agent.key, body });
  const key = makeId();
  const first = await rotate(key);
  t.equal(first.status, 200);
  t.match(await app.call('GET', '/api/me', { key: agent.key }), { status: 401 });
  const again = await rotate(key);
  t.ok(isReplay(again));
  t.same(again.body, first.body);
  t.equal(again.headers.get('cache-control'), 'no-store');
  t.match(await rotate(makeId()), { status: 401 }, 'another Idempotency-Key');
  t.match(await rotate(key, { a: 1 }), { status: 401 }, 'another body');
  t.match(await post('/api/webhooks', key, { key: agent.key, body: {} }), { status: 401 });
  const by_new = await post('/api/me/rotate-key', key, { key: first.body.api_key, body: {} });
  t.ok(isReplay(by_new), 'the caller is the same with the new key');
  t.same(by_new.body, first.body);
  await app.sql`update idempotency set created_at = created_at - interval '10 min' where key = ${key}`;
  t.match(await rotate(key), { status: 401, body: { code: 'INVALID_API_KEY' } });
});

const log = pino({ level: 'silent' });
const secret_key = 'a-secret-key-of-these-tests-0123456789';
const { sql } = app;
// Leases expire only when a test ends them.
const lease_ms = 3_600_000;
const own = createIdempotency({ sql, secret_key, log, lease_ms });
const other = createIdempotency({ sql: open('other'), secret_key, log, lease_ms });
await sql`create table effects (name text primary key)`;

const call = (more: Partial<CallToClaim> = {}): CallToClaim => {
  used += 1;
  return {
    scope: 'agent:a',
    key: `key ${used}`,
    route: 'makeToy',
    target: '/api/toys?',
    raw_body: Buffer.from('{"a":1}'),
    credential: null,
    ...more,
  };
};

const mustClaim = async (by: Idempotency, asked: CallToClaim): Promise<Claim> => {
  const claimed = await by.claim(asked);
  if (claimed.kind !== 'claimed') throw new Error(`the claim is ${claimed.kind}`);
  return claimed.claim;
};

const endLease = ({ key }: CallToClaim) =>
  sql`update idempotency set lease_until = now() - interval '1 ms' where key = ${key}`;
const age = ({ key }: CallToClaim, by: string) =>
  sql`update idempotency set created_at = now() - ${by}::interval where key = ${key}`;
const answer = reply(201, { api_key: 'sk_secret_of_the_answer', n: 1 }, { Location: '/x' });
const keepIt = (claim: Claim) => sql.begin((tx) => storeInTransaction(tx, [{ claim, answer }]));

t.test('a key is claimed once, and its answer is replayed to the same request', async (t) => {
  const asked = call();
  const claim = await mustClaim(own, asked);
  t.same(await other.claim(asked), { kind: 'running' });
  await keepIt(claim);
  t.same(await other.claim(asked), { kind: 'replay', answer });
  t.same(await own.claim(asked), { kind: 'replay', answer });
});

t.test('another route, target or body under the key is a mismatch, at any time', async (t) => {
  const asked = call();
  const others = [
    { ...asked, route: 'makeOtherToy' },
    { ...asked, target: '/api/toys?a=1' },
    { ...asked, raw_body: Buffer.from('{"a":2}') },
  ];
  const claim = await mustClaim(own, asked);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'while it runs');
  await endLease(asked);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'left behind');
  await keepIt(claim);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'when it is done');
});

t.test('a call that outlived its lease loses its effect to the one that took over', async (t) => {
  const asked = call();
  const asleep = await mustClaim(own, asked);
  await endLease(asked);
  const awake = await mustClaim(other, asked);
  const late = sql.begin(async (tx) => {
    await tx`insert into effects values ('twice')`;
    await storeInTransaction(tx, [{ claim: asleep, answer }]);
  });
  await t.rejects(late, ClaimLostError);
  t.equal((await sql`select from effects where name = 'twice'`).length, 0);
  await own.release(asleep);
  await own.storeAfter(asleep, reply(200, { wrong: true }));
  t.same(await own.claim(asked), { kind: 'running' }, 'and it cannot free or answer it');
  await keepIt(awake);
  t.same(await own.claim(asked), { kind: 'replay', answer });
});

t.test('a batch in which one claim is lost keeps nothing', async (t) => {
  const [a, b] = [call(), call()];
  const held = await mustClaim(own, a);
  const lost = await mustClaim(own, b);
  await endLease(b);
  await mustClaim(other, b);
  const batch = sql.begin((tx) =>
    storeInTransaction(tx, [
      { claim: held, answer },
      { claim: lost, answer },
    ]),
  );
  await t.rejects(batch, ClaimLostError);
  t.same(await own.claim(a), { kind: 'running' });
  await sql.begin((tx) => storeInTransaction(tx, []));
});

t.test('a transaction that is rolled back keeps no answer; one run again keeps it', async (t) => {
  const asked = call();
  const claim = await mustClaim(own, asked);
  const failed = sql.begin(async (tx) => {
    await storeInTransaction(tx, [{ claim, answer }]);
    throw new Error('after all not');
  });
  await t.rejects(failed, /after all not/);
  t.same(await own.claim(asked), { kind: 'running' });
  await keepIt(claim);
  await keepIt(claim);
  t.same(await own.claim(asked), { kind: 'replay', answer });
});

t.test('a released key is free for any request; a stored answer is not released', async (t) => {
  const asked = call();
  await own.release(await mustClaim(own, asked));
  const claim = await mustClaim(own, { ...asked, raw_body: Buffer.from('mended') });
  await keepIt(claim);
  await own.release(claim);
  await own.storeAfter(claim, reply(200, { wrong: true }));
  t.same(await own.claim({ ...asked, raw_body: Buffer.from('mended') }), {
    kind: 'replay',
    answer,
  });
});

t.test('what is kept is sealed, and opens under its own name only', async (t) => {
  const [asked, copy] = [call(), call()];
  await keepIt(await mustClaim(own, asked));
  await keepIt(await mustClaim(own, copy));
  const rows = await sql<{ answer: Uint8Array; digest: Uint8Array }[]>`
    select answer, digest from idempotency where key in (${asked.key}, ${copy.key})`;
  t.equal(rows.length, 2);
  for (const row of rows) t.notOk(Buffer.from(row.answer).includes('sk_secret'));
  t.notOk(Buffer.from(rows[0]?.answer ?? []).equals(Buffer.from(rows[1]?.answer ?? [])));
  await sql`
    update idempotency
    set answer = (select answer from idempotency where key = ${asked.key})
    where key = ${copy.key}`;
  t.same(await own.claim(copy), { kind: 'mismatch' }, 'an answer of another key');
  const stranger = createIdempotency({ sql, secret_key: `${secret_key}!`, log });
  t.same(await stranger.claim(asked), { kind: 'mismatch' }, 'another SECRET_KEY');
});

t.test('a call that ended its credentials is found by them, for ten minutes', async (t) => {
  const key = '0190c4de-7e1b-7000-8000-0123456789ab';
  const asked = call({ key, credential: 'sk_old' });
  t.equal(await own.findEnded(asked), null);
  const claim = await mustClaim(own, asked);
  t.equal(await own.findEnded(asked), null, 'not while it runs');
  await keepIt(claim);
  const repeat = { ...asked, scope: '' };
  t.same(await other.findEnded(repeat), answer);
  t.equal(await own.findEnded({ ...repeat, credential: 'sk_other' }), null);
  await age(asked, '9 minutes 59 seconds');
  t.same(await own.findEnded(repeat), answer);
  await age(asked, '10 minutes');
  t.equal(await own.findEnded(repeat), null);
  const short = call({ key: '1234567890123456789', credential: 'sk_old' });
  await keepIt(await mustClaim(own, short));
  t.equal(await own.findEnded(short), null, 'a key that somebody could guess');
});

t.test('answers are forgotten after a day, claimed anew or swept', async (t) => {
  const [young, old, reused] = [call(), call(), call()];
  for (const one of [young, old, reused]) await keepIt(await mustClaim(own, one));
  await age(young, '23 hours 59 minutes');
  await age(old, '24 hours');
  await age(reused, '24 hours');
  await mustClaim(own, { ...reused, raw_body: Buffer.from('something else') });
  const sweep = createIdempotencySweep(sql, log);
  await sweep.start();
  const keysLeft = async () => {
    const rows = await sql<{ key: string }[]>`
      select key from idempotency where key in (${young.key}, ${old.key}, ${reused.key})`;
    return rows.map((row) => row.key).sort();
  };
  await until('the old one is swept', async () => (await keysLeft()).length === 2);
  await sweep.stop();
  t.same(await keysLeft(), [young.key, reused.key].sort());
  t.same(await own.claim(young), { kind: 'replay', answer });
});

t.test('success and judgements of the state of things are kept, and nothing else', async (t) => {
  t.ok(isKept(reply(201, {})));
  const kept = Object.values(common_faults).filter((def) => isKept(refuse(def)));
  t.same(
    kept.map(({ code }) => code).sort(),
    [
      'ACCOUNT_SUSPENDED',
      'AGENTS_ONLY',
      'AGENT_NOT_LINKED',
      'CROSS_ORIGIN',
      'EMAIL_NOT_VERIFIED',
      'HUMANS_ONLY',
      'IDEMPOTENCY_IN_PROGRESS',
      'NOT_FOUND',
    ].sort(),
  );
});
