import type { ServerResponse } from 'node:http';
import { makeMailOpener, readUnsent } from '../../src/features/mail/store.js';
import { redeliver } from '../../src/features/webhooks/delivery-store.js';
import { sendPing } from '../../src/features/webhooks/pinging.js';
import { deleteWebhooks, findTarget, type Owner } from '../../src/features/webhooks/store.js';
import { makeId } from '../../src/kit/ids.js';
import { resetAfter, startHostile } from '../features/webhooks/raw-servers.js';
import {
  addAgent,
  addHuman,
  editHook,
  healthOf,
  makeWorld,
  newAgent,
} from '../features/webhooks/world.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * If a webhook fails for long enough, its owner is warned once, and not before. The tests move
 * stored times to let minutes pass.
 */

const world = await makeWorld(t);
const { sql } = world.deps;
t.beforeEach(world.reset);
const maintenance = { every_ms: 20 };
const wall_ms = 500;
const start = () =>
  world.startSigner({
    maintenance,
    webhooks: world.openWebhooks({ limits: { wall_ms } }),
    sweep_ms: 10,
  });

const newOwner = async (): Promise<Owner> => {
  const owner = newAgent();
  await addAgent(world.deps, owner.id);
  return owner;
};

const passMinutes = (minutes: number) => sql`
  update webhooks
  set
    failing_since = failing_since - ${minutes}::float8 * interval '1 minute',
    warned_at = warned_at - ${minutes}::float8 * interval '1 minute',
    paused_until = paused_until - ${minutes}::float8 * interval '1 minute'`;

const countAttempts = async (): Promise<number> => (await sql`select from attempts`).length;

/** Answers of the receiver: a status, and the details that distinguish kinds of answers. */
const answers = {
  fail: { status: 500, body: 'bytes of the receiver' },
  fine: { status: 204 },
  moved: { status: 302, headers: { Location: 'https://127.0.0.1:1/' } },
  absent: { status: 404 },
  busy: { status: 503, headers: { 'Retry-After': '60' } },
  hangs_up: (response: ServerResponse) => void response.socket?.destroy(),
  is_silent: () => undefined,
} as const;
type Answer = keyof typeof answers;

/** Sends an event, which each webhook attempts once. */
const attempt = async (name: Answer, hooks = 1): Promise<void> => {
  const before = await countAttempts();
  await sql`update webhooks set paused_until = now() where paused_until > now()`;
  world.receiver.script('/', answers[name]);
  // If a kept-alive connection breaks, the call is repeated once on a fresh connection.
  if (name === 'hangs_up') world.receiver.script('/', answers[name]);
  await world.record({});
  await until('an attempt', async () => (await countAttempts()) === before + hooks);
  if (name === 'hangs_up') world.receiver.clear();
  // Postpones retries, so that only the test's own attempts are made.
  await sql`update deliveries set next_at = now() + interval '1 day' where state = 'waiting'`;
};

/** A number lets that many minutes pass. An answer is the answer to one attempt. */
type Steps = readonly (Answer | number)[];
const take = async (steps: Steps): Promise<void> => {
  for (const step of steps) {
    if (typeof step === 'number') await passMinutes(step);
    else await attempt(step);
  }
};

interface Notice {
  readonly kind: string;
  readonly subject_id: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Notices and e-mails about failing webhooks, once every webhook has been checked again. */
const warnings = async () => {
  const { id } = await world.addHook({ events: ['question.closed'] });
  await sql`
    update webhooks set failures = 5, failing_since = now() - interval '1 hour' where id = ${id}`;
  await until('one more look', async () => {
    const [seen] = await sql`select from webhooks where id = ${id} and warned_at is not null`;
    return seen !== undefined;
  });
  await sql`delete from webhooks where id = ${id}`;
  await sql`delete from notifications where subject_id = ${id}`;
  const notices = await sql<Notice[]>`select kind, subject_id, details from notifications`;
  const open = makeMailOpener(world.deps.config);
  const mails = (await readUnsent(sql, 100)).map((mail) => ({
    to: mail.recipient,
    text: open(mail)?.text ?? '',
  }));
  return { notices, mails };
};
const countWarnings = async (): Promise<number> => {
  const { notices, mails } = await warnings();
  return notices.filter(({ kind }) => kind === 'webhook.failing').length + mails.length;
};

const eleven_minutes: Steps = ['fail', 3, 'fail', 3, 'fail', 3, 'fail', 2, 'fail'];

/** Groups of steps, and the number of warnings after each group. */
const rows: readonly (readonly [what: string, ...(readonly [Steps, warnings: number])[]])[] = [
  ['five failures over eleven minutes', [eleven_minutes, 1]],
  [
    'five failures in a minute, and a sixth when ten minutes are over',
    [['fail', 'fail', 'fail', 'fail', 'fail', 1], 0],
    [[4], 0],
    [[5.5, 'fail'], 1],
  ],
  ['four failures over an hour', [['fail', 20, 'fail', 20, 'fail', 20, 'fail'], 0]],
  [
    'a success in between',
    [['fail', 3, 'fail', 3, 'fail', 3, 'fail', 1, 'fine'], 0],
    [[2, 'fail', 3, 'fail', 3, 'fail', 3, 'fail'], 0],
    [[3, 'fail'], 1],
  ],
  [
    'a long row of failures',
    [eleven_minutes, 1],
    [Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? 10 : 'fail')), 1],
  ],
  ['a second row within the hour', [eleven_minutes, 1], [['fine', ...eleven_minutes], 1]],
  ['a second row', [eleven_minutes, 1], [['fine', 60], 1], [eleven_minutes, 2]],
  ['one failure', [['fail', 5, 'fine', 60], 0]],
  ['every kind of failure', [['moved', 3, 'absent', 3, 'hangs_up', 3, 'is_silent', 2, 'fail'], 1]],
  ['failures that ask for time', [['busy', 3, 'busy', 3, 'busy', 3, 'busy', 2, 'busy'], 1]],
];

for (const [what, ...parts] of rows) {
  t.test(`warnings after ${what}`, async (t) => {
    const hook = await world.addHook({ owner: await newOwner() });
    await start();
    for (const [steps, count] of parts) {
      await take(steps);
      t.equal(await countWarnings(), count, JSON.stringify(steps).slice(0, 80));
    }
    t.match(await healthOf(world, hook), { active: true });
  });
}

t.test('answers that break after 200 are no failures', async (t) => {
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const hostile = await startHostile(t, pair, { '/': resetAfter('HTTP/1.1 200 OK\r\n') });
  const hook = await world.addHook({ owner: await newOwner(), url: hostile.url('/') });
  await start();
  for (let n = 0; n < 10; n += 1) {
    await world.record({});
    await world.settled(n + 1, 'delivered');
    await passMinutes(2);
  }
  t.equal(await countWarnings(), 0);
  t.match(await healthOf(world, hook), { failures: 0 });
});

t.test('two webhooks that fail are told apart, and one that works is not named', async (t) => {
  const owner = await newOwner();
  const failing = [await world.addHook({ owner }), await world.addHook({ owner })];
  await world.addHook({ owner, path: '/well' });
  await start();
  for (const step of eleven_minutes) {
    if (typeof step === 'number') {
      await passMinutes(step);
      continue;
    }
    world.receiver.script('/', answers.fail);
    await attempt('fail', 3);
  }
  const { notices } = await warnings();
  t.same(
    notices.map(({ subject_id }) => subject_id).toSorted(),
    failing.map(({ id }) => id).toSorted(),
  );
});

t.test('the owner of an agent gets no mail, nor does anybody after it was unlinked', async (t) => {
  const [owner, human] = [newAgent(), makeId()];
  await addAgent(world.deps, owner.id, human);
  await world.addHook({ owner });
  await start();
  await take(eleven_minutes.slice(0, -1));
  await sql`update agents set owner_id = null, linked_at = null where id = ${owner.id}`;
  await take(['fail']);
  const { notices, mails } = await warnings();
  t.equal(notices.length, 1);
  t.same(mails, []);
});

t.test('a person gets one mail, which says what failed and quotes nothing', async (t) => {
  const [human, stranger] = [makeId(), makeId()];
  await addHuman(world.deps, human);
  await sql`
    insert into humans (id, email, email_key, password_hash)
    values (${stranger}, 'c@d.dev', 'c@d.dev', '-')`;
  const path = '/?%3Cb%3Ex%3C/b%3E';
  const url = world.receiver.url(path);
  const hook = await world.addHook({ owner: { kind: 'human', id: human }, url });
  await start();
  for (const step of eleven_minutes) {
    if (typeof step === 'number') await passMinutes(step);
    world.receiver.script(path, answers.fail);
    if (typeof step !== 'number') await attempt('fail');
  }
  const { notices, mails } = await warnings();
  t.same(notices, []);
  t.equal(mails.length, 1);
  const [{ to, text } = { to: '', text: '' }] = mails;
  t.equal(to, 'a@b.dev');
  t.ok(text.includes(url), 'it names the address');
  t.match(text, /The last 5 attempts .* failed.*The receiver answered 500\./s);
  for (const hidden of [hook.secret, 'bytes of the receiver', '"event"', 'c@d.dev']) {
    t.notOk(text.includes(hidden), hidden);
  }
});

t.test('a notice says what failed last', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  await take([...eleven_minutes.slice(0, -1), 'is_silent']);
  const { notices } = await warnings();
  t.match(notices, [
    {
      kind: 'webhook.failing',
      subject_id: hook.id,
      details: { webhook_id: hook.id, failures: 5, reason: 'The answer took too long.' },
    },
  ]);
});

t.test('the warning comes on the first day, and switching off is told by itself', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  await take(eleven_minutes);
  await take(Array(15).fill('fail'));
  t.equal(await countWarnings(), 1);
  await passMinutes(5 * 24 * 60);
  await until('it is switched off', async () => !(await healthOf(world, hook)).active);
  const { notices } = await warnings();
  t.same(notices.map(({ kind }) => kind).toSorted(), ['webhook.disabled', 'webhook.failing']);

  await editHook(world, hook, { active: true });
  await take(eleven_minutes.slice(0, -1));
  t.equal(await countWarnings(), 1, 'switched on again, it begins anew');
  await take(['fail']);
  t.equal(await countWarnings(), 2);
});

t.test('probes of a webhook that is left alone count, and warn once', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  world.receiver.script('/', ...Array<typeof answers.fail>(40).fill(answers.fail));
  await world.record(...Array(20).fill({}));
  await until('it is left alone', async () => (await healthOf(world, hook)).trips > 0);
  await sql`update deliveries set next_at = now() + interval '1 day' where state = 'waiting'`;
  t.equal(await countWarnings(), 0);
  await passMinutes(11);
  await until('a probe fails', async () => (await healthOf(world, hook)).trips > 1);
  t.equal(await countWarnings(), 1);
});

t.test('two signers warn once', async (t) => {
  await world.addHook({ owner: await newOwner() });
  await start();
  await start();
  await take(['fail', 4, 'fail', 4, 'fail', 3, 'fail']);
  world.receiver.script('/', answers.fail, answers.fail);
  await world.record({}, {});
  await until('both', async () => (await countAttempts()) === 6);
  t.equal(await countWarnings(), 1);
});

t.test('a webhook that is deleted or switched off in the middle of a call is silent', async (t) => {
  const owner = await newOwner();
  const [gone, off] = [await world.addHook({ owner }), await world.addHook({ owner })];
  await start();
  for (let n = 0; n < 4; n += 1) {
    world.receiver.script('/', answers.fail);
    await attempt('fail', 2);
    await passMinutes(3);
  }
  const held = world.hold('/', 2);
  await world.record({});
  await until('both are called', () => held.length === 2);
  await sql.begin((tx) => deleteWebhooks(tx, gone.owner, gone.id));
  await editHook(world, off, { active: false });
  for (const response of held) response.writeHead(500).end();
  await until('both are settled', async () => {
    const left = await sql`select from deliveries where state = 'sending'`;
    return left.length === 0;
  });
  t.equal(await countWarnings(), 0);
  await editHook(world, off, { active: true });
  await take(['fail', 1, 'fail', 'fail', 1, 'fail']);
  t.equal(await countWarnings(), 0, 'it begins anew');
  await take([9, 'fail']);
  t.equal(await countWarnings(), 1);
});

t.test('another url begins anew', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  await take(['fail', 3, 'fail', 3, 'fail', 3, 'fail', 2]);
  await editHook(world, hook, { url: world.receiver.url('/other') });
  world.receiver.script('/other', answers.fail);
  await take(['fail']);
  t.equal(await countWarnings(), 0);
  t.match(await healthOf(world, hook), { failures: 1 });
});

t.test('a redelivery that succeeds ends the row', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  await take(eleven_minutes);
  t.equal(await countWarnings(), 1);
  const [first] = await world.deliveries();
  await redeliver(sql, hook.id, first?.id ?? '');
  await until('it is delivered', async () => (await healthOf(world, hook)).failures === 0);
  await take(['fail', 4, 'fail', 4, 'fail', 4, 'fail']);
  t.equal(await countWarnings(), 1);
});

t.test('one event with an order that fails five times warns', async (t) => {
  await world.addHook({ owner: await newOwner(), order: 'question' });
  await start();
  world.receiver.script('/', ...Array<typeof answers.fail>(5).fill(answers.fail));
  const question_id = makeId();
  await world.record({ question_id }, { question_id });
  for (let n = 1; n <= 5; n += 1) {
    await until(`attempt ${n}`, async () => (await countAttempts()) === n);
    await passMinutes(3);
    if (n < 5) await world.makeDue();
  }
  t.equal(await countWarnings(), 1);
  t.match(await world.deliveries(), [
    { state: 'waiting', attempts: 5 },
    { state: 'pending', attempts: 0 },
  ]);
});

t.test('pings do not count', async (t) => {
  const hook = await world.addHook({ owner: await newOwner() });
  await start();
  const target = await findTarget(sql, hook.owner, hook.id);
  if (target === undefined) throw new Error('there is no such webhook');
  for (let n = 0; n < 10; n += 1) {
    world.receiver.script('/', answers.fail);
    t.match(await sendPing(world.webhooks, target, new Date()), { delivered: false, status: 500 });
    await passMinutes(2);
  }
  t.equal(await countWarnings(), 0);
  t.match(await healthOf(world, hook), { failures: 0 });
});
