import { createUnsubscribeTokens } from '../../../src/features/digests/rules.js';
import { max_bounces } from '../../../src/features/digests/schema.js';
import { queueMail } from '../../../src/features/mail/index.js';
import { bounce_secret, secret_key, startApp } from '../../help/app.js';
import { type Human, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** Settings for digests and alerts, and the ways in which they end. */

const app = await startApp(t, { roles: ['api'] });
const tokens = createUnsubscribeTokens(secret_key);
const path = '/api/me/account/mail';

const read = async (human: Human) => (await app.call('GET', path, human)).body;
const patch = (human: Human, body: object) => app.call('PATCH', path, { ...human, body });
const idOf = async ({ email }: Human): Promise<string> => {
  const [row] = await app.sql<{ id: string }[]>`select id from humans where email = ${email}`;
  return row?.id ?? '';
};
const alerts = ['moves', 'replies'];

t.test('a person chooses digests and alerts', async (t) => {
  const human = await makeHuman(app);
  t.match(await read(human), {
    digest: 'off',
    alerts: [],
    move_points: 10,
    next_digest_at: null,
    email_verified: true,
    stopped: null,
  });
  const changed = await patch(human, { digest: 'daily', alerts: [...alerts, 'moves'] });
  t.match(changed.body, { digest: 'daily', alerts, next_digest_at: /T07:00:00\.000Z$/ });
  t.match((await patch(human, { move_points: 5 })).body, {
    digest: 'daily',
    alerts,
    move_points: 5,
  });
  t.match((await patch(human, { digest: 'off' })).body, { digest: 'off', next_digest_at: null });
  t.match(await read(human), { digest: 'off', alerts, move_points: 5 });
  t.equal((await app.call('GET', path)).status, 401);
});

t.test('wrong settings are refused by their path', async (t) => {
  const human = await makeHuman(app);
  for (const [body, where] of [
    [{ digest: 'hourly' }, 'body.digest'],
    [{ alerts: ['all'] }, 'body.alerts.0'],
    [{ move_points: 0 }, 'body.move_points'],
    [{ move_points: 101 }, 'body.move_points'],
    [{ stopped: true }, 'body.stopped'],
  ] as const) {
    t.match(await patch(human, body), { status: 400, body: { fields: [{ path: where }] } });
  }
});

t.test('an unsubscribe link ends its list without a log-in, again and again', async (t) => {
  const human = await makeHuman(app);
  await patch(human, { digest: 'daily', alerts });
  const call = async (list: 'digest' | 'alerts', query = '') =>
    app.call('POST', `/api/unsubscribe/${tokens.make(await idOf(human), list)}${query}`);
  t.match(await call('digest'), { status: 200, body: { ended: ['digest'] } });
  t.match(await read(human), { digest: 'off', alerts });
  t.equal((await call('digest')).status, 200);
  await call('alerts');
  t.match(await read(human), { digest: 'off', alerts: [] });
  await patch(human, { digest: 'daily', alerts });
  const mail = { to: human.email, subject: 'x', text: 'x', links: [] };
  const queueing = { config: { SECRET_KEY: secret_key }, at: new Date(), is_bulk: true };
  await app.sql.begin((tx) => queueMail(tx, mail, queueing));
  t.match((await call('digest', '?all=true')).body, { ended: ['digest', 'alerts'] });
  const waiting = await app.sql`
    select from mails where recipient = ${human.email} and failed_at is null`;
  t.equal(waiting.length, 0, 'waiting e-mails are given up');
  t.match(await read(human), { digest: 'off', alerts: [] });
  t.match(await app.call('POST', '/api/unsubscribe/nonsense'), {
    status: 404,
    body: { code: 'INVALID_UNSUBSCRIBE_LINK' },
  });
});

t.test('the address in a mail takes what mail clients send', async (t) => {
  const human = await makeHuman(app);
  const token = tokens.make(await idOf(human), 'digest');
  const url = `${app.url}/unsubscribe/${token}`;
  const multipart = new FormData();
  multipart.set('List-Unsubscribe', 'One-Click');
  for (const body of [new URLSearchParams('List-Unsubscribe=One-Click'), multipart]) {
    await patch(human, { digest: 'weekly' });
    const answer = await fetch(url, { method: 'POST', body });
    t.equal(answer.status, 200);
    t.match(await answer.text(), 'You get no more digests.');
    t.match(await read(human), { digest: 'off' });
  }
  await patch(human, { digest: 'weekly' });
  const page = await fetch(url);
  t.equal(page.status, 200);
  t.match(await page.text(), /<button type="submit">Unsubscribe<\/button>/);
  t.match(await read(human), { digest: 'weekly' }, 'opening the page changes nothing');
  const wrong = await fetch(`${app.url}/unsubscribe/nonsense`, { method: 'POST' });
  t.equal(wrong.status, 404);
  t.match(await wrong.text(), 'This link is not complete.');
});

t.test('a mail provider reports bounces with a secret', async (t) => {
  const [human, other] = [await makeHuman(app), await makeHuman(app)];
  for (const one of [human, other]) await patch(one, { digest: 'daily' });
  const report = (bounces: readonly object[], secret: string | null = bounce_secret) =>
    app.call('POST', '/api/mail/bounces', {
      body: { bounces },
      headers: secret === null ? {} : { 'x-bounce-secret': secret },
    });
  const bounce = { address: human.email.toUpperCase(), reason: '550 mailbox unavailable' };
  t.match(await report([bounce], null), { status: 401, body: { code: 'INVALID_BOUNCE_SECRET' } });
  t.equal((await report([bounce], `${bounce_secret}x`)).status, 401);
  t.match(await report([bounce, { address: 'nobody@example.org' }]), {
    status: 200,
    body: { stopped: 1 },
  });
  t.match(await read(human), { stopped: { reason: '550 mailbox unavailable' }, digest: 'daily' });
  t.match(await read(other), { stopped: null });
  t.match((await report([bounce])).body, { stopped: 0 });
  t.match((await patch(human, { stopped: null })).body, { stopped: null });
  const many = Array.from({ length: max_bounces + 1 }, () => ({ address: 'a@b.example' }));
  t.equal((await report(many.slice(1))).status, 200);
  t.equal((await report(many)).status, 400);
});

t.test('without the setting there is no such address', async (t) => {
  const plain = await startApp(t, { roles: ['api'], env: { MAIL_BOUNCE_SECRET: '' } });
  const answer = await plain.call('POST', '/api/mail/bounces', {
    body: { bounces: [{ address: 'ada@example.org' }] },
  });
  t.equal(answer.status, 404);
});
