import { t } from 'tap';
import { openSql } from '../../src/db/client.js';
import { makeId } from '../../src/kit/ids.js';
import { type Answered, type CallOptions, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { until } from '../help/until.js';

/** `Idempotency-Key` at the door: what is replayed, what is refused, and what leaves a key free. */

const app = await startApp(t, { roles: ['api'], env: { LIMIT_KEY: '1000000' } });
const second = await startApp(t, { roles: ['api'], stores: app.stores });

const post = (path: string, key: string, send: CallOptions = {}): Promise<Answered> =>
  app.call('POST', path, { ...send, headers: { 'idempotency-key': key, ...send.headers } });
const register = (key: string, name: string) =>
  post('/api/register', key, { body: { name, model: 'gpt-4o' } });
const isReplay = ({ headers }: Answered): boolean => headers.get('idempotency-replayed') === 'true';

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
  // At the very end of a value uWS takes such bytes for blanks, and nobody can tell any more.
  for (const wrong of ['', 'k'.repeat(256), 'caf\u00e9s', 'a\tb']) {
    const name = newName();
    t.match(await register(wrong, name), {
      status: 400,
      body: { code: 'INVALID_REQUEST', fields: [{ path: 'header.idempotency-key' }] },
    });
    t.equal(await countAgents(name), 0);
  }
});

t.test('only POST looks at the header', async (t) => {
  const { key } = await makeAgent(app);
  const headers = { 'idempotency-key': 'caf\u00e9s' };
  t.match(await app.call('GET', '/api/me', { key, headers }), { status: 200 });
  const body = { bio: 'I read tide tables.' };
  t.match(await app.call('PATCH', '/api/me', { key, headers, body }), { status: 200 });
  const [row] =
    await app.sql`select count(*)::int as n from idempotency where key = ${'caf\u00e9s'}`;
  t.equal(row?.['n'], 0);
});

t.test('while the first is worked on, the same request is told to come back', async (t) => {
  const agent = await makeAgent(app);
  const key = makeId();
  const send = { key: agent.key, body: {} };
  const rotate = () => post('/api/me/rotate-key', key, send);
  const blocker = openSql({
    url: app.stores.database_url,
    pool: 1,
    prepare: true,
    name: 'blocker',
  });
  t.teardown(() => blocker.end({ timeout: 1 }));
  let first: Promise<Answered> = Promise.reject(new Error('not asked'));
  first.catch(() => undefined);
  await blocker.begin(async (tx) => {
    await tx`select from agents where id = ${agent.id} for update`;
    first = rotate();
    await until('the first waits for the row', async () => {
      const waiting = await app.sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'update agents'`;
      return waiting.length > 0;
    });
    const meanwhile = await rotate();
    t.match(meanwhile, {
      status: 409,
      body: { code: 'IDEMPOTENCY_IN_PROGRESS', retryable: true },
    });
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
    const options = {
      body: { name, model: 'm' },
      headers: { 'idempotency-key': key },
    };
    const doors = Array.from({ length: 8 }, () => [app, second]).flat();
    const answers = await Promise.all(
      doors.map((door) => door.call('POST', '/api/register', options)),
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
  t.match(
    await post('/api/register', key, {
      body: '{',
      headers: { 'content-type': 'application/json' },
    }),
    { status: 400 },
  );
  t.match(await register(key, name), { status: 201 }, 'mended under the same key');
  const judged = makeId();
  const taken = await register(judged, name);
  t.match(taken, { status: 409, body: { code: 'DUPLICATE_NAME' } });
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
  const blocker = openSql({
    url: app.stores.database_url,
    pool: 1,
    prepare: true,
    name: 'blocker',
  });
  t.teardown(() => blocker.end({ timeout: 1 }));
  await blocker.begin(async (tx) => {
    await tx`select from agents where id = ${agent.id} for update`;
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

t.test('a short key does not bring back what credentials that ended have got', async (t) => {
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const rotate = () => post('/api/me/rotate-key', 'rotate-1', { key: agent.key, body: {} });
  t.match(await rotate(), { status: 200 });
  t.match(await rotate(), { status: 401, body: { code: 'INVALID_API_KEY' } });
});
