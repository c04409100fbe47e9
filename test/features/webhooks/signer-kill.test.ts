import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeId } from '../../../src/kit/ids.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { allow, until } from '../../help/until.js';
import { makeWorld, type World } from './world.js';

const child_file = fileURLToPath(new URL('./signer-child.js', import.meta.url));

const startVictim = ({ deps: { config } }: World, env: NodeJS.ProcessEnv = {}) =>
  spawn(process.execPath, [child_file], {
    stdio: 'inherit',
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: config.DATABASE_URL,
      REDIS_URL: config.REDIS_URL,
      REDIS_PREFIX: config.REDIS_PREFIX,
      SECRET_KEY: config.SECRET_KEY,
      WEBHOOK_ALLOW_CIDRS: config.WEBHOOK_ALLOW_CIDRS.join(','),
      WEBHOOK_CA_FILE: config.WEBHOOK_CA_FILE,
      ...env,
    },
  });

/** Simulates passing time: the dead signer counts as gone, and its claims have expired. */
const passTime = async ({ deps: { sql } }: World): Promise<void> => {
  await sql`update signers set seen_at = seen_at - interval '1 minute'`;
  await sql`
    update deliveries set lease_until = now() - interval '1 second' where state = 'sending'`;
};

t.test(
  'kill -9 between the answer and the settling: delivered again, same webhook-id',
  async (t) => {
    const world = await makeWorld(t);
    const { sql } = world.deps;
    await world.addHook({ path: '/' });
    const [event_id] = await world.record({});

    // While this transaction locks the table of attempts, no delivery can be settled.
    let letGo = (): void => undefined;
    const held = sql.begin(async (tx) => {
      await tx`lock table attempts in access exclusive mode`;
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
    });
    const victim = startVictim(world);
    await world.receiver.waitFor('/', 1);
    await until('the settling waits', async () => {
      const waiting = await sql`
      select from pg_stat_activity
      where application_name = 'prediction-forum victim' and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    // Without this, a statement that the signer already sent would run once the lock is free.
    await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where application_name = 'prediction-forum victim'`;
    letGo();
    await held;
    t.match(await world.deliveries(), [{ state: 'sending', attempts: 0 }]);
    t.same(await world.attempts(event_id as string), []);

    await passTime(world);
    await world.startSigner();
    await world.settled(1, 'delivered');
    const ids = world.receiver.received.map((one) => one.headers['webhook-id']);
    t.same(ids, [event_id, event_id]);
    t.match(await world.attempts(event_id as string), [{ attempt: 1, status: 204 }]);
  },
);

t.test(
  'kill -9 under load: every event arrives, and only calls in flight arrive twice',
  async (t) => {
    const world = await makeWorld(t);
    for (const path of ['/1', '/2', '/3', '/4']) await world.addHook({ path });
    const events = Array.from({ length: 100 }, () => ({}));
    await world.record(...events);
    const victim = startVictim(world);
    await until('some calls', () => world.receiver.received.length >= 50);
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    await passTime(world);
    await world.startSigner();
    await world.settled(400, 'delivered');
    const seen = world.receiver.received.map((one) => `${one.path} ${one.headers['webhook-id']}`);
    t.equal(new Set(seen).size, 400);
    t.ok(seen.length <= 400 + 4 * 34, `${seen.length} calls for 400 deliveries`);
  },
);

t.test(
  'a signer that stands still during a call: no failed attempt, and sent again at once',
  async (t) => {
    const world = await makeWorld(t);
    await world.addHook({ path: '/' });
    const victim = startVictim(world, { LEASE_MS: '60000' });
    t.teardown(() => victim.kill('SIGKILL'));
    let woken_ms = 0;
    world.receiver.script('/', (response) => {
      victim.kill('SIGSTOP');
      response.writeHead(204).end();
      setTimeout(() => {
        woken_ms = performance.now();
        victim.kill('SIGCONT');
      }, 2_500);
    });
    const [event_id] = await world.record({});
    await world.settled(1, 'delivered');
    t.ok(performance.now() - woken_ms < allow(2_000), 'the next attempt would be after 4 s');
    t.match(await world.attempts(event_id as string), [{ attempt: 1, status: 204 }]);
  },
);

t.test('what a dead signer had leased goes at once to the one in its slot', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  world.hold('/');
  await world.record({});
  const victim = startVictim(world, { LEASE_MS: '60000', SLOT: 'host/3' });
  await world.receiver.waitFor('/', 1);
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  const from_ms = performance.now();
  const other = await world.startSigner({ slot: 'host/4' });
  await world.startSigner({ slot: 'host/3' });
  await world.settled(1, 'delivered');
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms < allow(3_000), `after ${Math.round(passed_ms)} ms, not 6 s`);
  await other.stop();
});

const order = 'question';
/** Offsets in the order of their first arrival. */
const firstArrivals = ({ receiver }: World): readonly number[] => [
  ...new Set(receiver.received.map(({ headers }) => Number(headers['x-svc-offset']))),
];
const ofOneQuestion = (count: number) => {
  const question_id = makeId();
  return Array.from({ length: count }, () => ({ question_id }));
};

t.test('a webhook with an order stays in order when its signer is killed', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ order });
  world.hold('/');
  await world.record(...ofOneQuestion(10));
  const victim = startVictim(world);
  await world.receiver.waitFor('/', 1);
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  t.equal(world.receiver.received.length, 1, 'the others waited');
  await passTime(world);
  await world.startSigner();
  await world.settled(10, 'delivered');
  t.same(
    firstArrivals(world),
    Array.from({ length: 10 }, (_, n) => n + 1),
  );
  t.equal(world.receiver.received.length, 11, 'only the call in flight was made again');
});

t.test('a signer that wakes up does not undo what another did meanwhile', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ order });
  const victim = startVictim(world);
  t.teardown(() => victim.kill('SIGKILL'));
  world.receiver.script('/', (response) => {
    victim.kill('SIGSTOP');
    response.writeHead(500).end();
  });
  const ids = await world.record(...ofOneQuestion(5));
  await world.receiver.waitFor('/', 1);
  await passTime(world);
  const other = await world.startSigner();
  await world.settled(5, 'delivered');
  await other.stop();
  t.same(firstArrivals(world), [1, 2, 3, 4, 5]);
  t.equal(world.receiver.received.length, 6);

  victim.kill('SIGCONT');
  await world.record({});
  const all = await world.settled(6, 'delivered');
  t.same(pluck(all, 'attempts'), [1, 1, 1, 1, 1, 1]);
  t.match(await world.attempts(ids[0]), [{ attempt: 1, status: 204 }]);
  t.equal((await world.attempts(ids[0])).length, 1, 'its own failure is not noted');
  t.equal(world.receiver.received.length, 7, 'nothing was sent again');
});

t.test('a call that a killed signer had under way is made again by another one', async (t) => {
  const world = await makeWorld(t);
  await world.addHook();
  world.hold('/', 2);
  await world.record({}, {});
  const victim = startVictim(world, { LEASE_MS: '60000' });
  await world.receiver.waitFor('/', 2);
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  const from_ms = performance.now();
  await world.startSigner();
  await world.record({});
  await world.settled(3, 'delivered');
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms < allow(10_000), `after ${Math.round(passed_ms)} ms, not after its lease`);
  const ids = world.receiver.received.map(({ headers }) => headers['webhook-id']);
  t.same([ids.length, new Set(ids).size], [5, 3]);
});
