import { test } from 'tap';
import { makeMailOpener, readUnsent } from '../../../src/features/accounts/mail-store.js';
import { makeId } from '../../../src/kit/ids.js';
import { until } from '../../help/until.js';
import { type Hook, makeWorld, newAgent, type World } from './world.js';

/** Webhooks that fail: the breaker, and switching off. */

const many = (count: number) => Array.from({ length: count }, () => ({}));
const failing = (count: number) => many(count).map(() => ({ status: 500 }));
const maintenance = { every_ms: 20 };

interface Health {
  readonly active: boolean;
  readonly disabled_reason: string | null;
  readonly failures: number;
  readonly trips: number;
  readonly pause_s: number | null;
  readonly failed: number;
  readonly gone: number;
}

const healthOf = async ({ deps }: World, { id }: Hook): Promise<Health> => {
  const [row] = await deps.sql<Health[]>`
    select
      active, disabled_reason, failures, trips,
      extract(epoch from paused_until - now())::float8 as pause_s,
      cardinality(failed_events) as failed, cardinality(gone_events) as gone
    from webhooks
    where id = ${id}`;
  if (row === undefined) throw new Error('there is no such webhook');
  return row;
};

const endPause = ({ deps }: World) =>
  deps.sql`update webhooks set paused_until = now() where trips > 0`;

test('a webhook that fails ten times is left alone, then probed with one call', async (t) => {
  const world = await makeWorld(t);
  const hook = await world.addHook({ path: '/bad' });
  await world.addHook({ path: '/good' });
  world.receiver.script('/bad', ...failing(11));
  await world.record(...many(30));
  const signer = await world.startSigner();
  await world.receiver.waitFor('/good', 30);
  await until('the breaker is open', async () => (await healthOf(world, hook)).trips === 1);
  await until('nothing is in flight', async () =>
    (await world.deliveries()).every((one) => one.state !== 'sending'),
  );
  // Two calls are in flight at once, so that the eleventh may have begun when the tenth failed.
  const calls = world.receiver.of('/bad').length;
  t.ok(calls === 10 || calls === 11, `${calls} calls`);
  const open = await healthOf(world, hook);
  t.ok((open.pause_s ?? 0) <= 30, String(open.pause_s));
  t.equal(open.failures, calls);
  const left = (await world.deliveries()).filter((one) => one.webhook_id === hook.id);
  t.equal(left.filter((one) => one.state === 'pending' && one.claims === 0).length, 30 - calls);

  // The receiver is well from now on, but for one call.
  if (calls === 10) await endPause(world);
  else {
    world.receiver.script('/bad', { status: 500 });
    await endPause(world);
  }
  await until('a probe failed', async () => (await healthOf(world, hook)).trips === 2);
  t.equal(world.receiver.of('/bad').length, calls + 1, 'one call and no more');
  const again = await healthOf(world, hook);
  t.ok((again.pause_s ?? 0) > 20 && (again.pause_s ?? 0) <= 60, String(again.pause_s));

  await endPause(world);
  await until('the rest arrives', () => world.receiver.of('/bad').length >= 30);
  await world.makeDue();
  await world.settled(60, 'delivered');
  const well = await healthOf(world, hook);
  t.match(well, { trips: 0, pause_s: null, failures: 0, failed: 0, active: true });
  await signer.stop();
});

test('410 to two events switches a webhook off, to one event again and again does not', async (t) => {
  const world = await makeWorld(t);
  const once = await world.addHook({ path: '/once' });
  const twice = await world.addHook({ path: '/twice' });
  const gone = many(3).map(() => ({ status: 410 }));
  world.receiver.script('/once', ...gone);
  world.receiver.script('/twice', ...gone);
  await world.startSigner({ maintenance });
  await world.record({});
  await until('three attempts at each', async () => {
    await world.deps.sql`
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

const addAgent = async ({ deps }: World, id: string): Promise<void> => {
  await deps.sql`
    insert into agents
      (id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
        referral_code, key_digest)
    values
      (${id}, 'owner', 'owner', 'm', 'other', 'data_driven', 'moderate', '{predictor}', 'CODE',
        ${Buffer.alloc(32)})`;
};

test('5 days without success, 20 failures and 3 events: off, with a reason and a notice', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  const owner = newAgent();
  await addAgent(world, owner.id);
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
  const notices = await sql`select agent_id, kind, subject_id, details from notifications`;
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

test('a person whose webhook is switched off gets a mail', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  const human = makeId();
  await sql`
    insert into humans (id, email, email_key, password_hash)
    values (${human}, 'a@b.dev', 'a@b.dev', '-')`;
  const hook = await world.addHook({ owner: { kind: 'human', id: human } });
  await sql`
    update webhooks
    set failing_since = now(), failures = 2, gone_events = array[${makeId()}, ${makeId()}]::uuid[]`;
  await world.startSigner({ maintenance });
  await until('it is switched off', async () => !(await healthOf(world, hook)).active);
  const mails = await readUnsent(sql, 10);
  t.match(mails, [{ recipient: 'a@b.dev' }]);
  const [mail] = mails;
  const said = mail === undefined ? null : makeMailOpener(world.deps.config)(mail);
  t.match(said?.text, /410 Gone to two events/);
  t.same(await sql`select from notifications`, []);
});

test('a healthy webhook is not written to', async (t) => {
  const world = await makeWorld(t);
  const hook = await world.addHook();
  const versionOf = async () =>
    (await world.deps.sql`select xmin::text as version from webhooks where id = ${hook.id}`)[0];
  const before = await versionOf();
  await world.record(...many(20));
  await world.startSigner({ maintenance });
  await world.settled(20, 'delivered');
  t.same(await versionOf(), before);
});
