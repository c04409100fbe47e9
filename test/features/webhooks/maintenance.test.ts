import { makeMailOpener, readUnsent } from '../../../src/features/mail/store.js';
import { startReplay } from '../../../src/features/webhooks/delivery-store.js';
import { stepReplay } from '../../../src/features/webhooks/planning-store.js';
import { deleteWebhooks } from '../../../src/features/webhooks/store.js';
import { firstIdAt, makeId } from '../../../src/kit/ids.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  addAgent,
  addHuman,
  editHook,
  type Hook,
  healthOf,
  makeWorld,
  many,
  newAgent,
} from './world.js';

/** Maintenance of deliveries, apart from sending: switching off, gaps, replays, removal. */

const world = await makeWorld(t, { env: { WEBHOOK_KEEP_DAYS: '8' } });
const { sql } = world.deps;
t.beforeEach(world.reset);
const maintenance = { every_ms: 20 };

const statesOf = async ({ id }: Hook): Promise<Record<string, number>> => {
  const rows = await sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from deliveries where webhook_id = ${id} group by 1`;
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
};

const setActive = (hook: Hook, active: boolean) => editHook(world, hook, { active });

const countRows = async (table: 'deliveries' | 'attempts' | 'webhook_leavings') =>
  (await sql`select from ${sql(table)}`).length;

/** Adds any number of deliveries, for events that were never recorded. */
const fill = ({ id }: Hook, count: number) => sql`
  insert into deliveries (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
  select ${id}, e.id, delivery_id(${id}, e.id), e.n, '2026-01-02', 'pending', now()
  from (select gen_random_uuid() as id, n from generate_series(1, ${count}::int) n) e`;

const gapsOf = ({ id }: Hook) => sql<
  { first: number; last: number; count: number; reason: string }[]
>`
  select event_offset as first, gap_until_offset as last, gap_count as count, gap_reason as reason
  from deliveries
  where webhook_id = ${id} and state = 'gap'
  order by event_offset`;

t.test('switching off skips a long queue, and nothing of it is sent later', async (t) => {
  const hook = await world.addHook();
  await fill(hook, 5_000);
  await setActive(hook, false);
  t.same(await statesOf(hook), { skipped_disabled: 5_000 });
  // Planning that began before the switch-off still adds some deliveries.
  await fill(hook, 5);
  const signer = await world.startSigner({ maintenance });
  await until('these too', async () => (await statesOf(hook))['pending'] === undefined);
  await setActive(hook, true);
  await world.record({});
  await world.receiver.waitFor('/', 1);
  await signer.stop();
  t.equal(world.receiver.received.length, 1);
});

t.test('deleting is one short step, and nothing is left in the end', async (t) => {
  const hook = await world.addHook();
  const other = await world.addHook({ path: '/other' });
  await fill(hook, 12_000);
  await sql`
    insert into attempts (webhook_id, event_id, attempt, at, latency_ms)
    select webhook_id, event_id, 1, now(), 5 from deliveries`;
  await fill(other, 3);
  t.equal(await sql.begin((tx) => deleteWebhooks(tx, hook.owner, hook.id)), 1);
  await setActive(other, false);
  await world.startSigner({ maintenance });
  await until('only the other is left', async () => (await countRows('deliveries')) === 3);
  t.equal(await countRows('attempts'), 0);
  t.equal(await countRows('webhook_leavings'), 1, 'remembered for a while');
  // Planning that began before the deletion still adds some deliveries.
  await fill(hook, 5);
  await until('these too', async () => (await countRows('deliveries')) === 3);
  await sql`update webhook_leavings set deleted_at = now() - interval '11 minutes'`;
  await until('forgotten', async () => (await countRows('webhook_leavings')) === 0);
});

t.test('a backlog is cut at its bound, and one row says what was left out', async (t) => {
  const [slow, full, short] = [await world.addHook(), await world.addHook(), await world.addHook()];
  await sql`update webhooks set paused_until = now() + interval '1 day', trips = 1`;
  const backlog = { most: 20, age_hours: 24 };
  await sql`update log_head set "offset" = 60`;
  await fill(slow, 30);
  await fill(full, 20);
  await fill(short, 1);
  await sql`
    update deliveries set state = 'waiting', attempts = 1
    where webhook_id = ${slow.id} and event_offset in (1, 29)`;
  await world.startSigner({ maintenance: { ...maintenance, backlog } });
  await until('it is cut', async () => (await gapsOf(slow)).length === 1);
  // The twenty oldest deliveries stay, and so does one that was already tried.
  t.same(await gapsOf(slow), [{ first: 21, last: 30, count: 9, reason: 'backlog' }]);
  t.same(await statesOf(slow), { pending: 19, waiting: 2, gap: 1 });

  await sql`
    insert into deliveries (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
    select ${slow.id}, e.id, delivery_id(${slow.id}, e.id), e.n, '2026-01-02', 'pending', now()
    from (select gen_random_uuid() as id, n from generate_series(41, 45) n) e`;
  await until('the gap grows', async () => (await gapsOf(slow))[0]?.count === 14);
  t.same(await gapsOf(slow), [{ first: 21, last: 45, count: 14, reason: 'backlog' }]);
  t.same(await statesOf(full), { pending: 20 }, 'at the bound nothing is left out');
  t.same(await statesOf(short), { pending: 1 });
});

t.test('what waited a day for a first attempt is left out, also while switched off', async (t) => {
  const [stuck, off] = [await world.addHook(), await world.addHook()];
  await sql`update webhooks set paused_until = now() + interval '1 day', trips = 1`;
  await fill(stuck, 6);
  await fill(off, 6);
  await setActive(off, false);
  await sql`
    update deliveries
    set queued_at = now() - case
      when event_offset <= 4 then interval '25 hours' else interval '23 hours'
    end`;
  await sql`update deliveries set next_at = queued_at`;
  await sql`update deliveries set replays = 1 where event_offset = 2`;
  await world.startSigner({ maintenance });
  for (const hook of [stuck, off]) {
    await until('it is left out', async () => (await gapsOf(hook)).length === 1);
    t.same(await gapsOf(hook), [{ first: 1, last: 4, count: 3, reason: 'age' }]);
  }
  t.same(await statesOf(stuck), { pending: 3, gap: 1 });
  t.same(await statesOf(off), { skipped_disabled: 3, gap: 1 });
});

t.test('a step of a replay has taken effect when it ends', async (t) => {
  const hook = await world.addHook();
  await world.record(...many(3));
  await sql`update deliveries set state = 'delivered', delivered_at = now()`;
  await sql.begin((tx) => startReplay(tx, hook.id, { after: 1, until: 3 }));
  await stepReplay(sql, hook.id);
  const [replay] =
    await sql`select queued, next_offset, done_at is not null as is_done from webhook_replays`;
  t.match(replay, { queued: 2, next_offset: 4, is_done: true });
  t.same(await statesOf(hook), { delivered: 1, pending: 2 });
});

t.test('a replay sends again what is wanted of its offsets, and closes gaps inside', async (t) => {
  const hook = await world.addHook();
  const other = await world.addHook({ path: '/other' });
  const ids = await world.record(...many(4), { event: 'question.closed' }, ...many(3));
  await world.startSigner({ maintenance });
  await world.settled(14, 'delivered');
  // Simulates that the third delivery was left out, and that the fourth ran out of attempts.
  await sql`delete from deliveries where webhook_id = ${hook.id} and event_offset = 3`;
  await sql`
    update deliveries set state = 'exhausted', attempts = 10, delivered_at = null
    where webhook_id = ${hook.id} and event_offset = 4`;
  const gap = makeId();
  await sql`
    insert into deliveries
      (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, gap_until_offset,
        gap_count, gap_reason)
    values (${hook.id}, ${gap}, ${gap}, 3, '2026-01-02', 'gap', now(), 3, 1, 'age')`;
  await sql`
    insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (${hook.id}, ${makeId()}, 1, 2, 6)`;
  await until('the replay is done', async () => {
    const [row] = await sql`select done_at from webhook_replays`;
    return row?.['done_at'] !== null;
  });
  // The replay sends offsets 2, 3, 4 and 6. The webhook did not subscribe to the event at 5.
  await world.receiver.waitFor('/', 7 + 4);
  await world.settled(14, 'delivered');
  const seen = world.receiver.of('/').map((one) => one.headers['webhook-id'] as string);
  const again = seen.slice(7).sort();
  t.same(again, [ids[1], ids[2], ids[3], ids[5]].sort());
  t.equal(world.receiver.of('/other').length, 7, 'nobody else hears of it');
  const rows = await sql<{ event_offset: number; replays: number; attempts: number }[]>`
    select event_offset, replays, attempts from deliveries
    where webhook_id = ${hook.id} and replays > 0 order by event_offset`;
  t.match(
    rows,
    [2, 3, 4, 6].map((event_offset) => ({ event_offset, replays: 1, attempts: 1 })),
  );
  const [replay] = await sql`select queued, next_offset from webhook_replays`;
  t.match(replay, { queued: 4, next_offset: 7 });
  t.match(await statesOf(other), { delivered: 7 });
});

t.test('a replay of more than a queue holds goes on as the queue empties', async (t) => {
  const hook = await world.addHook();
  await setActive(hook, false);
  await world.record(...many(1_100));
  await setActive(hook, true);
  await sql`
    insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (${hook.id}, ${makeId()}, 0, 1, 1100)`;
  // Nothing is delivered. The queue fills up to its limit, which it exceeds by at most one step.
  const held = world.hold('/', 4);
  await world.startSigner({ maintenance });
  await world.receiver.waitFor('/', 2);
  await until('the replay waits', async () => {
    const [row] = await sql`select next_offset from webhook_replays where done_at is null`;
    return row?.['next_offset'] === 1_001;
  });
  await until('all arrive', async () => {
    for (const response of held.splice(0)) response.writeHead(204).end();
    const { delivered } = await statesOf(hook);
    return delivered === 1_100;
  });
  t.equal(new Set(world.receiver.of('/').map((one) => one.headers['webhook-id'])).size, 1_100);
});

t.test('what is over and old is removed, what is queued is not', async (t) => {
  const hook = await world.addHook();
  await setActive(hook, false);
  const [old_day, kept_day] = [9, 7].map((days) => new Date(Date.now() - days * 86_400_000));
  const add = async (at: Date | undefined, state: string, queued: Date | undefined = at) => {
    const event_id = makeId();
    const id = `${firstIdAt(at?.getTime() ?? 0).slice(0, 13)}${event_id.slice(13)}`;
    await sql`
      insert into deliveries
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, queued_at, attempts)
      values
        (${hook.id}, ${id}, delivery_id(${hook.id}, ${id}), 1, '2026-01-02', ${state}, now(),
          ${queued ?? null}, 1)`;
    return id;
  };
  const gone = [await add(old_day, 'exhausted'), await add(old_day, 'skipped_disabled')];
  const kept = [
    await add(kept_day, 'exhausted'),
    await add(old_day, 'exhausted', kept_day),
    await add(kept_day, 'skipped_disabled'),
  ];
  await world.startSigner({ maintenance });
  await until('the old ones are gone', async () => (await countRows('deliveries')) === 3);
  t.same((await world.deliveries()).map((one) => one.event_id).sort(), kept.sort());
  t.notOk(gone.some((id) => kept.includes(id)));
  const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  const [next] = await sql`
    select count(*)::int as count from pg_inherits
    where inhparent = 'attempts'::regclass and inhrelid::regclass::text >= ${`attempts_${today}`}
      and inhrelid::regclass::text <> 'attempts_default'`;
  t.ok(next?.['count'] >= 3, 'days to come have theirs');
});

t.test('any number of processes may do it', async () => {
  const hook = await world.addHook();
  const first = await world.startSigner({ maintenance });
  await world.startSigner({ maintenance });
  await fill(hook, 1_500);
  await first.stop();
  await setActive(hook, false);
  await until('all is skipped', async () => {
    const { pending = 0, sending = 0 } = await statesOf(hook);
    return pending + sending === 0;
  });
});

t.test('410 to two events switches a webhook off, to one again and again does not', async (t) => {
  const once = await world.addHook({ path: '/once' });
  const twice = await world.addHook({ path: '/twice' });
  const gone = many(3).map(() => ({ status: 410 }));
  world.receiver.script('/once', ...gone);
  world.receiver.script('/twice', ...gone);
  await world.startSigner({ maintenance });
  await world.record({});
  await until('three attempts at each', async () => {
    await sql`
      update deliveries set next_at = now() where state = 'waiting' and attempts < 3`;
    const all = await world.deliveries();
    return all.every((one) => one.attempts === 3 && one.state === 'waiting');
  });
  t.match(await healthOf(world, once), { active: true, failures: 3, gone: 1 });
  t.match(await healthOf(world, twice), { active: true, failures: 3, gone: 1 });

  world.receiver.script('/twice', { status: 410 });
  await world.record({});
  await until('it is switched off', async () => !(await healthOf(world, twice)).active);
  t.match((await healthOf(world, twice)).disabled_reason, /410 Gone to two events/);
  t.match(await healthOf(world, once), { active: true, gone: 0 }, 'a success forgives');
  await until('its queue is skipped', async () =>
    (await world.deliveries())
      .filter((one) => one.webhook_id === twice.id)
      .every((one) => one.state === 'skipped_disabled'),
  );
});

t.test('5 days without success, 20 failures, 3 events: off, with reason and notice', async (t) => {
  const owner = newAgent();
  await addAgent(world.deps, owner.id);
  const setHealth = (hook: Hook, days: number, failures: number, events: number) => sql`
    update webhooks
    set
      failing_since = now() - ${days}::float8 * interval '1 day',
      failures = ${failures},
      failed_events = ${Array.from({ length: events }, () => makeId())}::uuid[]
    where id = ${hook.id}`;
  const cases = [
    [4.9, 20, 3, true],
    [5.1, 19, 3, true],
    [5.1, 20, 2, true],
    [5.1, 20, 3, false],
  ] as const;
  const hooks = [];
  for (const [days, failures, events] of cases) {
    const hook = await world.addHook({ owner });
    await setHealth(hook, days, failures, events);
    hooks.push(hook);
  }
  await world.startSigner({ maintenance });
  const last = hooks.at(-1) as Hook;
  await until('the last is switched off', async () => !(await healthOf(world, last)).active);
  for (const [index, [, , , active]] of cases.entries()) {
    t.equal((await healthOf(world, hooks[index] as Hook)).active, active, String(cases[index]));
  }
  const { disabled_reason } = await healthOf(world, last);
  t.match(disabled_reason, /^No delivery succeeded for 5 days: 20 attempts failed/);
  const notices = await sql`
    select agent_id, kind, subject_id, details from notifications where kind = 'webhook.disabled'`;
  t.match(notices, [
    {
      agent_id: owner.id,
      kind: 'webhook.disabled',
      subject_id: last.id,
      details: { webhook_id: last.id, reason: disabled_reason },
    },
  ]);
  t.equal(notices.length, 1);
});

t.test('an owner is told once when failures begin to repeat, and again of others', async (t) => {
  const owner = newAgent();
  await addAgent(world.deps, owner.id);
  const human = makeId();
  await addHuman(world.deps, human);
  const [hook, fresh, few] = [
    await world.addHook({ owner }),
    await world.addHook({ owner }),
    await world.addHook({ owner }),
  ];
  const of_person = await world.addHook({ owner: { kind: 'human', id: human } });
  const fail = ({ id }: Hook, minutes: number, failures: number) => sql`
    update webhooks
    set failing_since = now() - ${minutes}::int * interval '1 minute', failures = ${failures}
    where id = ${id}`;
  await fail(hook, 11, 5);
  await fail(of_person, 30, 9);
  await fail(fresh, 9, 5);
  await fail(few, 60, 4);
  const told = () => sql<{ subject_id: string; details: object }[]>`
    select subject_id, details from notifications
    where kind = 'webhook.failing' and agent_id = ${owner.id}`;
  await world.startSigner({ maintenance });
  await until('the owner is told', async () => (await told()).length > 0);
  await until('the person is told', async () => {
    const mails = await readUnsent(sql, 10);
    const texts = mails.map((mail) => makeMailOpener(world.deps.config)(mail)?.text ?? '');
    return texts.some((text) => /The last 9 attempts to call/.test(text));
  });
  t.match(await told(), [{ subject_id: hook.id, details: { webhook_id: hook.id, failures: 5 } }]);
  // `hook` keeps failing and gets no second notice within the hour. `fresh` now gets its first.
  await fail(hook, 20, 8);
  await fail(fresh, 10, 5);
  await until('the owner is told of another', async () => (await told()).length > 1);
  const subjects = async () => (await told()).map(({ subject_id }) => subject_id).toSorted();
  t.same(await subjects(), [hook.id, fresh.id].toSorted());
  await sql`update webhooks set warned_at = now() - interval '61 minutes' where id = ${hook.id}`;
  await until('the owner is told again', async () => (await told()).length > 2);
  t.same(await subjects(), [hook.id, hook.id, fresh.id].toSorted());
});

t.test('a person whose webhook is switched off gets a mail', async (t) => {
  const human = makeId();
  await addHuman(world.deps, human);
  const hook = await world.addHook({ owner: { kind: 'human', id: human } });
  await sql`
    update webhooks
    set failing_since = now(), failures = 2, gone_events = array[${makeId()}, ${makeId()}]::uuid[]`;
  await world.startSigner({ maintenance });
  await until('it is switched off', async () => !(await healthOf(world, hook)).active);
  const mails = await readUnsent(sql, 10);
  t.match(mails, [{ recipient: 'a@b.dev' }]);
  const [mail] = mails;
  const opened = mail === undefined ? null : makeMailOpener(world.deps.config)(mail);
  t.match(opened?.text, /410 Gone to two events/);
  t.same(await sql`select from notifications`, []);
});
