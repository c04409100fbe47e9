import { createUsage } from '../../../src/features/usage/index.js';
import { createLimiter } from '../../../src/http/limits.js';
import { reply } from '../../../src/http/route.js';
import { common_faults, refuse } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { openParts, type PartsOptions } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';

/** How the calls of agents are counted: in each process, and together in Redis. */

const stores = await openStores(t);

const open = async (options: PartsOptions = {}) => {
  const parts = await openParts(t, { stores, ...options });
  const { config, redis, log } = parts.deps;
  const limiter = createLimiter({ redis, prefix: config.REDIS_PREFIX, processes: 1, log });
  t.teardown(() => limiter.stop());
  return { ...parts, usage: createUsage(parts.deps, limiter) };
};
type Opened = Awaited<ReturnType<typeof open>>;

const route = { id: 'predict', method: 'POST' } as const;
const callerOf = (id: string) =>
  ({ kind: 'agent', id, name: 'A', model: 'm', model_family: 'gpt', owner_id: null }) as const;
const limited = refuse(common_faults.RATE_LIMITED);
const callsOf = async ({ usage }: Opened, id: string) => (await usage.read([id]))[0]?.calls;

t.test('calls of two processes are counted together, and the later one is the last', async (t) => {
  const [one, other] = [await open(), await open()];
  const id = makeId();
  other.advance(5_000);
  const later = other.deps.clock().toISOString();
  other.usage.note(callerOf(id), route, limited);
  t.match(await callsOf(other, id), { count: 1, errors: 1 });
  one.usage.note(callerOf(id), route, reply(201, {}));
  one.usage.note(callerOf(id), route, refuse(common_faults.INVALID_REQUEST));
  const calls = await callsOf(one, id);
  t.match(calls, {
    count: 3,
    errors: 2,
    last: { at: later, method: 'POST', route: 'predict', status: 429 },
    last_error: { at: later, code: 'RATE_LIMITED' },
  });
  t.same(calls?.errors_by_code.map(({ code }) => code).toSorted(), [
    'INVALID_REQUEST',
    'RATE_LIMITED',
  ]);
});

t.test(
  'counts end after a day, the last call is remembered, and old hours are deleted',
  async (t) => {
    const forum = await open();
    const id = makeId();
    const note = () => forum.usage.note(callerOf(id), route, limited);
    note();
    const { since } = (await callsOf(forum, id)) ?? {};
    t.equal(since, forum.deps.clock().toISOString());
    forum.advance(23 * 3_600_000);
    t.match(await callsOf(forum, id), { since, count: 1, errors: 1 });
    forum.advance(3_600_000);
    const old = await callsOf(forum, id);
    t.match(old, { count: 0, errors: 0, errors_by_code: [], last: { status: 429 } });
    t.match(old?.since, /:00:00\.000Z$/, 'the oldest hour that is counted');
    note();
    t.match(await callsOf(forum, id), { count: 1, errors: 1 });
    const key = `${forum.deps.config.REDIS_PREFIX}:{calls:${id}}`;
    // The fields are since, last, error, and the calls and errors of one hour.
    t.equal(await forum.deps.redis.hlen(key), 5);
    const left_s = await forum.deps.redis.ttl(key);
    t.ok(left_s > 6 * 86_400 && left_s <= 7 * 86_400, `${left_s} s`);
  },
);

t.test('refused items of a batch are errors, its other items and replies are none', async (t) => {
  const forum = await open();
  const id = makeId();
  const results = [{ code: 'A' }, {}, { code: 'B' }, { code: 'A' }];
  forum.usage.note(callerOf(id), route, reply(200, { placed: 1, refused: 3, results }));
  for (const body of [undefined, 'text', { results: [] }, { refused: 0 }, null]) {
    forum.usage.note(callerOf(id), route, reply(200, body));
  }
  t.match(await callsOf(forum, id), {
    count: 6,
    errors: 3,
    errors_by_code: [
      { code: 'A', count: 2 },
      { code: 'B', count: 1 },
    ],
    last_error: { code: 'A' },
  });
});

t.test('people, admins and strangers are not counted', async (t) => {
  const forum = await open();
  const id = makeId();
  const human = { kind: 'human', id, email_verified: true, is_admin: false } as const;
  for (const caller of [
    { ...human, expires_at: new Date() },
    { kind: 'admin' },
    { kind: 'anonymous' },
  ] as const) {
    forum.usage.note(caller, route, limited);
  }
  t.match(await callsOf(forum, id), { since: null, count: 0, last: null });
});

t.test('what a process counted is kept when it stops', async (t) => {
  const [one, other] = [await open(), await open()];
  const id = makeId();
  await one.usage.service.start();
  one.usage.note(callerOf(id), route, limited);
  await one.usage.service.stop();
  t.match(await callsOf(other, id), { count: 1 });
});

t.test('without Redis limits are still told, and calls are not known', async (t) => {
  const forum = await open({ redis_url: 'redis://127.0.0.1:1' });
  const ids = Array.from({ length: 100 }, () => makeId());
  forum.usage.note(callerOf(ids[0] ?? ''), route, limited);
  const begin = performance.now();
  const read = await forum.usage.read(ids);
  t.ok(performance.now() - begin < 2_000);
  t.equal(read.length, 100);
  for (const { calls, limits } of read) {
    t.equal(calls, null);
    t.match(limits[1], { name: 'predictions', limit: 120, left: 120, reset_seconds: 0 });
  }
});
