import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { startHookApp } from '../features/webhooks/app.js';
import { makeIsSigned } from '../features/webhooks/http-verifying.js';
import { startApp } from '../help/app.js';
import { pluck } from '../help/pluck.js';
import type { Received } from '../help/receiver.js';
import { makeAgent, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';

/** Webhook secrets: each one signs until the time that was announced when it was replaced. */

const { app, receiver, human, readHead, begin } = await startHookApp(t);
type Call = Awaited<ReturnType<typeof begin>>['call'];

const standardOf = (secret: string, { headers, body }: Received): string => {
  const stamp = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const hmac = createHmac('sha256', Buffer.from(secret, 'ascii')).update(stamp).update(body);
  return `v1,${hmac.digest('base64')}`;
};
const olderOf = (secret: string, { body }: Received): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/** Checks that a delivery is signed with exactly these secrets, given newest first. */
const isSignedBy = (t: Tap, one: Received, secrets: readonly string[], what: string): void => {
  const { headers } = one;
  const [newest = '', oldest] = [secrets[0], secrets.at(-1) ?? ''];
  const all = secrets.map((secret) => standardOf(secret, one)).join(' ');
  t.equal(headers['webhook-signature'], all, what);
  t.equal(headers['x-svc-signature'], olderOf(oldest, one), `${what}: the oldest`);
  const next = secrets.length > 1 ? olderOf(newest, one) : undefined;
  t.equal(headers['x-svc-signature-next'], next, `${what}: the newest`);
};
type Tap = Pick<typeof t, 'equal'>;

/** Runs `cause` and returns the delivery that follows. */
const nextOf = async (cause: () => Promise<unknown>): Promise<Received> => {
  const before = receiver.of('/').length;
  await cause();
  return (await receiver.waitFor('/', before + 1))[before] as Received;
};
const nextEvent = (): Promise<Received> => nextOf(() => makeOpenQuestion(app));

const passHours = (hours: number) => app.sql`
  update webhook_old_secrets set until = until - ${hours}::float8 * interval '1 hour'`;

const rotateIn =
  (call: Call, id: string) =>
  async (overlap_hours: number): Promise<string> => {
    const { status, body } = await call('POST', `/${id}/rotate-secret`, { overlap_hours });
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body.secret;
  };

/** A new agent's webhook whose secret was rotated. Returns its secrets, oldest first. */
const rotated = async (...hours: readonly number[]) => {
  const made = await begin();
  const { id, secret } = await made.create();
  const rotate = rotateIn(made.call, id);
  const secrets = [secret as string];
  for (const one of hours) secrets.push(await rotate(one));
  /** The secrets with these numbers. */
  const pick = (...numbers: readonly number[]) => numbers.map((n) => secrets[n] ?? '');
  return { ...made, id, rotate, secrets, pick };
};

/**
 * The overlaps of rotations made one right after another, and the secrets that sign after some
 * hours. Secret 0 is the first.
 */
const promises: readonly (readonly [
  overlaps: readonly number[],
  ...later: readonly (readonly [hours: number, signing: readonly number[]])[],
])[] = [
  [[], [0, [0]]],
  [[24], [0, [1, 0]]],
  [[0], [0, [1]]],
  [
    [24, 1],
    [0, [2, 1, 0]],
    [2, [2, 0]],
    [25, [2]],
  ],
  [
    [1, 168],
    [2, [2, 1]],
    [169, [2]],
  ],
  [
    [24, 0],
    [0, [2, 0]],
  ],
  [
    [0, 0],
    [0, [2]],
  ],
  [Array(10).fill(168), [0, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]]],
  [
    [5, 4, 3, 2, 1],
    [0, [5, 4, 3, 2, 1, 0]],
    [1.5, [5, 3, 2, 1, 0]],
    [2.5, [5, 2, 1, 0]],
    [3.5, [5, 1, 0]],
    [4.5, [5, 0]],
    [5.5, [5]],
  ],
  [[1], [59 / 60, [1, 0]], [61 / 60, [1]]],
];

t.test('each secret signs for as long as its rotation promised', async (t) => {
  for (const [overlaps, ...later] of promises) {
    const { call, id, pick } = await rotated(...overlaps);
    let passed = 0;
    for (const [hours, signing] of later) {
      await passHours(hours - passed);
      passed = hours;
      const what = `${JSON.stringify(overlaps)} after ${hours} h`;
      isSignedBy(t, await nextEvent(), pick(...signing), what);
      if (hours !== 0) continue;
      const ping = await nextOf(() => call('POST', `/${id}/test`));
      isSignedBy(t, ping, pick(...signing), `${what}, a ping`);
    }
  }
});

t.test('a library that knows one secret verifies for as long as that one signs', async (t) => {
  const { secrets } = await rotated(24, 1);
  const verifying = ({ body, headers }: Received) =>
    secrets.map((secret) => {
      const library = new Webhook(`whsec_${Buffer.from(secret, 'ascii').toString('base64')}`);
      try {
        return Boolean(library.verify(body, headers as Record<string, string>));
      } catch {
        return false;
      }
    });
  t.same(verifying(await nextEvent()), [true, true, true]);
  await passHours(2);
  t.same(verifying(await nextEvent()), [true, false, true]);
});

t.test('overlap_hours is a whole number of 0 to 168, and 24 unless given', async (t) => {
  const { call, id, secrets } = await rotated();
  const ask = (body?: unknown) => call('POST', `/${id}/rotate-secret`, body);
  for (const wrong of [169, -1, '24', true, [24], 1e9, 0.5, null]) {
    const refused = { status: 400, body: { code: 'INVALID_REQUEST' } };
    const answer = await ask({ overlap_hours: wrong });
    t.match(answer, refused, JSON.stringify(wrong));
    t.match(answer.body.fields, [{ path: 'body.overlap_hours' }], JSON.stringify(wrong));
  }
  t.match(await ask(), { status: 415 }, 'a body is needed');
  isSignedBy(t, await nextEvent(), secrets, 'nothing was rotated');
  for (const [body, hours] of [
    [{ overlap_hours: 168 }, 168],
    [{}, 168],
    [{ overlap_hours: 0 }, 168],
  ] as const) {
    const { status, body: made } = await ask(body);
    t.equal(status, 200, JSON.stringify(body));
    t.match(made, { secret: /^[0-9a-f]{64}$/ });
    t.equal(made.signing_secret, `whsec_${Buffer.from(made.secret).toString('base64')}`);
    const left_h = (Date.parse(made.old_secret_expires_at) - Date.now()) / 3_600_000;
    t.ok(left_h > hours - 0.1 && left_h <= hours, 'the longest promise is told');
  }
  const [usual] = await app.sql<{ hours: number }[]>`
    select extract(epoch from min(until) - now())::float8 / 3600 as hours from webhook_old_secrets`;
  t.ok(Math.abs((usual?.hours ?? 0) - 24) < 0.1, 'without a number it is a day');
});

t.test('twenty older secrets can sign; one more is refused and changes nothing', async (t) => {
  const { call, id, pick } = await rotated(...Array(20).fill(24));
  const full = await call('POST', `/${id}/rotate-secret`, { overlap_hours: 1 });
  t.match(full, { status: 409, body: { code: 'TOO_MANY_SECRETS' } });
  const all = Array.from({ length: 21 }, (_, n) => 20 - n);
  isSignedBy(t, await nextEvent(), pick(...all), 'all of them');
});

t.test('a retry, a redelivery and a replay are signed by the secrets of now', async (t) => {
  const { call, id, secrets, rotate, settled } = await rotated();
  receiver.script('/', { status: 500 }, { status: 500 });
  const first = await nextEvent();
  isSignedBy(t, first, secrets, 'at first');
  const [{ id: did }] = await settled(id, 1, 'waiting');
  const head = await readHead();
  const second = await rotate(1);
  const hurry = () => app.sql`update deliveries set next_at = now() where state = 'waiting'`;
  const tried = await nextOf(hurry);
  isSignedBy(t, tried, [second, ...secrets], 'a retry');
  t.equal(tried.headers['x-svc-attempt'], '2');
  await settled(id, 1, 'waiting');
  await passHours(2);
  isSignedBy(t, await nextOf(hurry), [second], 'a retry after the promise');
  await settled(id, 1, 'delivered');
  const third = await rotate(0);
  const again = await nextOf(() => call('POST', `/${id}/deliveries/${did}/redeliver`));
  isSignedBy(t, again, [third], 'a redelivery');
  await settled(id, 1, 'delivered');
  const replayed = await nextOf(() => call('POST', `/${id}/replay`, { after: head - 1 }));
  isSignedBy(t, replayed, [third], 'a replay');
  for (const one of [tried, again, replayed]) {
    t.equal(one.headers['webhook-id'], first.headers['webhook-id']);
    t.same(one.body, first.body);
  }
});

t.test('other changes of a webhook keep the promises', async (t) => {
  const { call, id, pick } = await rotated(24);
  for (const change of [
    { active: false },
    { active: true },
    { events: ['question.created', 'question.closed'] },
    { filter: null },
    { order: 'question' },
    { url: receiver.url('/') },
  ]) {
    t.equal((await call('PATCH', `/${id}`, change)).status, 200);
  }
  isSignedBy(t, await nextEvent(), pick(1, 0), 'both sign');
});

t.test('a promise runs while the webhook is off', async (t) => {
  const { call, id, pick } = await rotated(1);
  await call('PATCH', `/${id}`, { active: false });
  await passHours(2);
  await call('PATCH', `/${id}`, { active: true });
  isSignedBy(t, await nextEvent(), pick(1), 'the new one alone');
});

t.test('rotations at the same moment all hold', async (t) => {
  const { rotate, secrets } = await rotated();
  const made = await Promise.all([rotate(24), rotate(24), rotate(24)]);
  t.equal(new Set(made).size, 3);
  const one = await nextEvent();
  const signatures = String(one.headers['webhook-signature']).split(' ');
  const expected = [...made, ...secrets].map((secret) => standardOf(secret, one));
  t.same(signatures.toSorted(), expected.toSorted());
  t.equal(signatures.at(-1), standardOf(secrets[0] as string, one), 'the first is the oldest');
  const newest = made.find((secret) => standardOf(secret, one) === signatures[0]) ?? '';
  t.equal(one.headers['x-svc-signature-next'], olderOf(newest, one));
});

t.test('one Idempotency-Key rotates once', async (t) => {
  const { key, id, secrets } = await rotated();
  const ask = () =>
    app.call('POST', `/api/webhooks/${id}/rotate-secret`, {
      key,
      headers: { 'idempotency-key': 'rotation-1' },
      body: { overlap_hours: 24 },
    });
  const [first, second] = [await ask(), await ask()];
  t.equal(second.headers.get('idempotency-replayed'), 'true');
  t.equal(second.body.secret, first.body.secret);
  isSignedBy(t, await nextEvent(), [first.body.secret, ...secrets], 'two');
});

t.test('a secret is shown only when it is made', async (t) => {
  const { call, key, id, secrets } = await rotated(24, 24);
  await nextEvent();
  const shown = [
    await call('GET', ''),
    await call('GET', `/${id}`),
    await call('PATCH', `/${id}`, { active: true }),
    await call('GET', `/${id}/deliveries`),
    await app.call('GET', '/api/me/export', { key }),
  ];
  t.same(
    pluck(shown, 'status'),
    shown.map(() => 200),
  );
  for (const { body } of shown) {
    const text = JSON.stringify(body);
    for (const secret of ['whsec_', ...secrets]) t.notOk(text.includes(secret));
  }
});

t.test('nobody else rotates', async (t) => {
  const { id, secrets } = await rotated();
  const body = { overlap_hours: 0 };
  const ask = (as: object) =>
    app.call('POST', `/api/webhooks/${id}/rotate-secret`, { ...as, body });
  const stranger = await makeAgent(app, { human });
  const loner = await makeAgent(app);
  for (const [as, status, code] of [
    [{ key: stranger.key }, 404, 'NOT_FOUND'],
    [{ token: human.token }, 404, 'NOT_FOUND'],
    [{ key: loner.key }, 403, 'AGENT_NOT_LINKED'],
    [{}, 401, undefined],
  ] as const) {
    const answer = await ask(as);
    t.equal(answer.status, status, JSON.stringify(answer.body));
    if (code !== undefined) t.equal(answer.body.code, code);
  }
  isSignedBy(t, await nextEvent(), secrets, 'nothing was rotated');
});

t.test('an HTTP message signature stays one while two secrets sign', async (t) => {
  const { call, id, pick } = await rotated(24);
  await call('PATCH', `/${id}`, { signature: 'rfc9421' });
  const one = await nextEvent();
  isSignedBy(t, one, pick(1, 0), 'both sign');
  t.equal(await makeIsSigned(app, receiver)(one), true);
  for (const name of ['signature', 'signature-input']) {
    t.equal(String(one.headers[name]).match(/\w+=[:(]/g)?.length, 1, `one label in ${name}`);
  }
});

t.test('a prefix of its own, and a rotation beyond the limit of the minute', async (t) => {
  const other = await startHookApp(t, {
    LIMIT_WEBHOOKS: '3',
    WEBHOOK_HEADER_PREFIX: 'X-Forum',
    PUBLIC_URL: 'https://forum.example',
  });
  const { call, create } = await other.begin();
  const { id, secret } = await create();
  const rotate = rotateIn(call, id);
  const made = [await rotate(24), await rotate(24)];
  const limited = await call('POST', `/${id}/rotate-secret`, { overlap_hours: 0 });
  t.match(limited, { status: 429, body: { code: 'RATE_LIMITED' } });
  t.ok(Number(limited.headers.get('retry-after')) > 0);
  await makeOpenQuestion(other.app);
  const [one] = (await other.receiver.waitFor('/', 1)) as [Received];
  const all = [...made.toReversed(), secret].map((each) => standardOf(each, one)).join(' ');
  t.equal(one.headers['webhook-signature'], all);
  t.match(one.headers, {
    'x-forum-signature': olderOf(secret, one),
    'x-forum-signature-next': olderOf(made[1] ?? '', one),
  });
  t.notOk(Object.keys(one.headers).some((name) => name.startsWith('x-svc-')));
});

t.test('a restart of the service keeps every promise', async (t) => {
  const { pick } = await rotated(24, 24);
  await app.stop();
  const after = await startApp(t, {
    stores: app.stores,
    roles: ['api', 'relay', 'signer'],
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
  });
  isSignedBy(t, await nextOf(() => makeOpenQuestion(after)), pick(2, 1, 0), 'all three');
});
