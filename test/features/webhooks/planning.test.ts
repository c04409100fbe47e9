import fc from 'fast-check';
import {
  type FilterMembers,
  passesFilter,
  readFilter,
} from '../../../src/features/events/filter.js';
import { streamKey } from '../../../src/features/events/log-entry.js';
import { planDeliveries, readPlannedOffset } from '../../../src/features/webhooks/index.js';
import { runsOf } from '../../../src/features/webhooks/planning.js';
import { insertWebhook } from '../../../src/features/webhooks/store.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { anyBody, anyEventNames, anyNarrowing, anyPlace } from '../../help/filters.js';
import { range } from '../../help/hub.js';
import { makeLogWriter } from '../../help/log.js';
import { openParts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { pillars } from '../../help/taxonomy.js';
import { until } from '../../help/until.js';
import { addAgent, makeWorld, newAgent } from './world.js';

/** Signers as a consumer group of the log's stream, and planning without the stream. */

const world = await makeWorld(t);
const { sql, redis, config } = world.deps;
t.beforeEach(world.reset);

const wanted = { event: 'question.created' };
/** With these intervals, the sweeper and the late planning do not run again during a test. */
const stream_only = { sweep_ms: 600_000, late_ms: 600_000 };

const openLog = () => makeLogWriter(sql, redis, config.REDIS_PREFIX);
const key = streamKey(config.REDIS_PREFIX);

const groupOf = async (): Promise<Record<string, unknown> | undefined> => {
  const groups = await redis.xinfo('GROUPS', key).catch(() => []);
  const [fields] = groups as unknown[][];
  if (fields === undefined) return undefined;
  return Object.fromEntries(
    fields.flatMap((name, n) => (n % 2 === 0 ? [[name, fields[n + 1]]] : [])),
  );
};

const plannedUpTo = (offset: number) =>
  until(`planned up to ${offset}`, async () => (await readPlannedOffset(sql)) === offset);

const offsetsOf = async (webhook_id: string): Promise<readonly number[]> =>
  (await world.deliveries())
    .filter((one) => one.webhook_id === webhook_id)
    .map((one) => one.event_offset);

t.test('offsets are planned in runs of those that follow each other', async (t) => {
  t.same(runsOf([]), []);
  t.same(runsOf([3, 1, 2, 5, 8, 7]), [
    { first: 1, last: 3 },
    { first: 5, last: 5 },
    { first: 7, last: 8 },
  ]);
});

t.test('what comes over the stream is planned, acknowledged and sent at once', async (t) => {
  const log = openLog();
  const hook = await world.addHook();
  await world.startSigner(stream_only);
  await log.write(1);
  for (let n = 1; n <= 3; n += 1) {
    await log.write(1, wanted);
    await world.receiver.waitFor('/', n);
  }
  await world.settled(3, 'delivered');
  t.same(await offsetsOf(hook.id), [2, 3, 4]);
  await plannedUpTo(4);
  await until('all is acknowledged', async () => (await groupOf())?.['pending'] === 0);
  t.same(await sql`select from planned_ranges`, [], 'what touches is one');
});

t.test('without a webhook the stream is not read, and a first one misses nothing', async (t) => {
  const log = openLog();
  await world.startSigner();
  await log.write(5);
  await plannedUpTo(5);
  t.equal((await groupOf())?.['entries-read'] ?? 0, 0, 'nothing was handed out');
  const hook = await world.addHook();
  await log.write(2, wanted);
  await world.settled(2, 'delivered');
  t.same(await offsetsOf(hook.id), [6, 7]);
  await sql`delete from webhooks`;
  await log.write(3, wanted);
  await plannedUpTo(10);
  await until('the stream is not kept for it', async () => {
    return (await groupOf())?.['last-delivered-id'] === '10-0';
  });
  const again = await world.addHook();
  await log.write(1, wanted);
  await until('it is delivered', async () => (await offsetsOf(again.id)).length === 1);
  t.same(await offsetsOf(again.id), [11]);
  t.same(await sql`select from planned_ranges`, []);
});

t.test('signers share the stream: nothing is sent twice, and limits hold for all', async (t) => {
  const log = openLog();
  const owner = newAgent();
  for (const path of ['/1', '/2', '/3']) await world.addHook({ path, owner });
  await world.addHook({ path: '/4' });
  await log.write(1, wanted);
  await Promise.all([world.startSigner(), world.startSigner(), world.startSigner()]);
  for (let n = 0; n < 12; n += 1) await log.write(20, wanted);
  await world.settled(4 * 241, 'delivered');
  const seen = world.receiver.received.map((one) => `${one.path} ${one.headers['webhook-id']}`);
  t.equal(seen.length, 4 * 241);
  t.equal(new Set(seen).size, 4 * 241);
  for (const path of ['/1', '/2', '/3', '/4']) t.ok(world.receiver.load(path).most <= 2, path);
  await plannedUpTo(241);
});

t.test('ranges beyond a hole wait for it, and are not planned again', async (t) => {
  const log = openLog();
  const hook = await world.addHook();
  await log.record(6, wanted);
  await log.append(4, 6);
  await redis.xgroup('CREATE', key, 'signers', '0-0');
  const signer = await world.startSigner({ late_ms: 600_000 });
  await until('the end is planned', async () => (await offsetsOf(hook.id)).length === 3);
  t.equal(await readPlannedOffset(sql), 0);
  t.match(await sql`select first_offset, last_offset from planned_ranges`, [
    { first_offset: 4, last_offset: 6 },
  ]);
  await world.settled(3, 'delivered');
  await signer.stop();
  // This delivery would come back if its event were planned again.
  await sql`delete from deliveries where event_offset = 5`;
  await redis.del(key);
  await world.startSigner({ late_ms: 0 });
  await plannedUpTo(6);
  t.same(await offsetsOf(hook.id), [1, 2, 3, 4, 6]);
  t.same(await sql`select from planned_ranges`, []);
});

t.test('group, stream and all of Redis may go: everything is planned once', async (t) => {
  const log = openLog();
  const hook = await world.addHook();
  await world.startSigner({ late_ms: 500 });
  await log.write(5, wanted);
  await world.settled(5, 'delivered');
  await redis.xgroup('DESTROY', key, 'signers');
  await log.write(5, wanted);
  await world.settled(10, 'delivered');
  await redis.del(key);
  await log.record(5, wanted);
  await world.settled(15, 'delivered');
  // The stream is back, but its end is lost before any signer has read it.
  await log.append(11, 13);
  await log.record(5, wanted);
  await world.settled(20, 'delivered');
  await log.append(14, 20);
  await log.write(5, wanted);
  await world.settled(25, 'delivered');
  t.same(await offsetsOf(hook.id), range(1, 25));
  t.equal(world.receiver.received.length, 25, 'nothing is sent twice');
});

t.test('the portion of a reader that died is taken over', async () => {
  const log = openLog();
  await world.addHook();
  await log.write(3, wanted);
  await redis.xgroup('CREATE', key, 'signers', '0-0');
  await redis.xreadgroup('GROUP', 'signers', 'dead', 'STREAMS', key, '>');
  // To Postgres no event looks late, so only the group can show that one was not planned.
  await sql`update events set recorded_at = now() + interval '1 hour'`;
  await world.startSigner({ late_ms: 100 });
  await world.settled(3, 'delivered');
  await until('all is acknowledged', async () => (await groupOf())?.['pending'] === 0);
});

t.test('a webhook gets what comes after it was made, however late that is planned', async (t) => {
  const log = openLog();
  const early = await world.addHook({ path: '/early' });
  await log.record(2, wanted);
  const late = await world.addHook({ path: '/late' });
  await log.record(2, wanted);
  await sql`update webhooks set active = false where id = ${late.id}`;
  await log.record(1, wanted);
  await world.startSigner({ late_ms: 0 });
  await plannedUpTo(5);
  t.same(await offsetsOf(early.id), [1, 2, 3, 4, 5]);
  t.same(await offsetsOf(late.id), [3, 4, 5]);
  await world.settled(8, 'delivered', 'skipped_disabled');
  t.equal(world.receiver.of('/late').length, 0, 'what is off gets rows that can be replayed');
});

t.test('a stream that is ahead of the log plans nothing of what is not there yet', async (t) => {
  const log = openLog();
  const hook = await world.addHook();
  await log.write(2, wanted);
  await redis.xadd(key, '9-0', 'h', 'of another life', 'b', '');
  await world.startSigner({ late_ms: 100 });
  await world.settled(2, 'delivered');
  t.equal(await readPlannedOffset(sql), 2);
  await log.record(8, wanted);
  await world.settled(10, 'delivered');
  t.same(await offsetsOf(hook.id), range(1, 10));
});

t.test('events of days ago are planned like those of today', async () => {
  const log = openLog();
  await world.addHook();
  await log.record(4, wanted);
  await sql`
    update events
    set recorded_on = recorded_on - 3, recorded_at = recorded_at - interval '3 days'
    where "offset" <= 2`;
  await world.startSigner({ late_ms: 0 });
  await world.settled(4, 'delivered');
});

t.test('an event goes to each active webhook that asked for it and to no other', async (t) => {
  await world.addHook({ path: '/a', events: ['question.created', 'question.closed'] });
  await world.addHook({ path: '/b', events: ['question.closed'] });
  await world.addHook({ path: '/c', events: ['question.resolved'] });
  const off = await world.addHook({ path: '/d' });
  await sql`update webhooks set active = false where id = ${off.id}`;
  await world.record({}, { event: 'question.closed' });
  const planned = (await world.deliveries()).map((one) => `${one.state} ${one.webhook_id}`);
  t.equal(planned.length, 4);
  t.ok(planned.includes(`skipped_disabled ${off.id}`), 'kept, so that it can be replayed');
  await world.startSigner();
  await world.settled(4, 'delivered', 'skipped_disabled');
  const paths = world.receiver.received.map((one) => `${one.path} ${one.headers['x-svc-event']}`);
  t.same(paths.sort(), ['/a question.closed', '/a question.created', '/b question.closed']);
});

t.test('a reply goes only to the author and to the human who owns the author', async (t) => {
  const human = makeId();
  const author = newAgent();
  await addAgent(world.deps, author.id, human);
  const events = ['comment.reply'];
  await world.addHook({ path: '/author', owner: author, events });
  await world.addHook({ path: '/owner', owner: { kind: 'human', id: human }, events });
  await world.addHook({ path: '/stranger', events });
  await world.addHook({ path: '/human', owner: { kind: 'human', id: makeId() }, events });
  await world.record({ event: 'comment.reply', audience_id: author.id });
  await world.startSigner();
  await world.settled(2, 'delivered');
  t.same(world.receiver.received.map((one) => one.path).sort(), ['/author', '/owner']);
});

t.test('an offset is planned once, whatever became of its deliveries', async (t) => {
  await world.addHook();
  await world.record({}, {}, {});
  await sql`delete from deliveries where event_offset = 2`;
  await sql.begin((tx) => planDeliveries(tx, { first: 1, last: 3 }));
  t.same(
    (await world.deliveries()).map((one) => one.event_offset),
    [1, 3],
  );
});

t.test('deliveries are planned of exactly what passes the same filter on a socket', async (t) => {
  const { deps, stores } = await openParts(t);
  const log = makeLogWriter(deps.sql, deps.redis, stores.redis_prefix);
  const anyHook = fc.record({
    events: anyEventNames,
    filter: fc.record(anyNarrowing, { requiredKeys: [] }),
  });
  const hooks: { id: string; wanted: FilterMembers }[] = [];
  for (const { events, filter: given } of fc.sample(anyHook, 80)) {
    const filter = readFilter(given, { pillars, path: 'body.filter' });
    if (isFault(filter)) throw new Error(filter.message);
    const id = makeId();
    await insertWebhook(deps.sql, {
      id,
      owner: { kind: 'agent', id: makeId() },
      url: 'https://a.example.org',
      events,
      secret_sealed: Buffer.from('secret'),
      filter: filter?.shown,
    });
    hooks.push({ id, wanted: { ...filter?.shown, events } });
  }
  for (const [place, body] of fc.sample(fc.tuple(anyPlace, anyBody), 150)) {
    await log.record(1, { ...place, ...body, audience_id: null });
  }
  await deps.sql.begin((tx) => planDeliveries(tx, { first: 1, last: 150 }));
  for (const { id, wanted } of hooks) {
    const rows = await deps.sql<{ event_offset: number }[]>`
      select event_offset from deliveries where webhook_id = ${id} order by event_offset`;
    t.strictSame(
      pluck(rows, 'event_offset'),
      log.entries.filter((entry) => passesFilter(wanted, { ...entry })).map(({ offset }) => offset),
      JSON.stringify(wanted),
    );
  }
});
