import { openSql } from '../../../src/db/client.js';
import { nextDigestAt } from '../../../src/features/digests/rules.js';
import {
  alert_gap_ms,
  makeForumReader,
  queueAlerts,
  queueDigests,
  stopRefused,
} from '../../../src/features/digests/sending.js';
import { openSmtp, sendDue } from '../../../src/features/mail/mailer.js';
import { makeMailOpener, queueMail } from '../../../src/features/mail/store.js';
import { type Notice, notify } from '../../../src/features/notifications/index.js';
import { firstIdAt, makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { type Human, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { startSmtp } from '../mail/smtp.js';

/** Digests and alerts: who gets them, when, and their texts. */

const smtp = await startSmtp(t);
const app = await startApp(t, { roles: ['api'] });
const parts = await openParts(t, { stores: app.stores, env: { SMTP_URL: smtp.url } });
let ahead_ms = 0;
const deps = { ...parts.deps, clock: () => new Date(Date.now() + ahead_ms) };
const { sql } = deps;
const client = openSmtp(smtp.url);
t.teardown(() => client.close());
const question_id = await makeOpenQuestion(app);
const readForumNews = makeForumReader(deps);
const hour_ms = 3_600_000;

t.beforeEach(async () => {
  ahead_ms = 0;
  await sql`delete from mails`;
  await sql`delete from inbox_items`;
  await sql`update mail_settings set alerts = '{}', digest = 'off', next_digest_at = null`;
});

const settings = (human: Human, body: object) =>
  app.call('PATCH', '/api/me/account/mail', { ...human, body });
const tell = async (human: Human, fields: Partial<Notice> = {}) => {
  const agent = await makeAgent(app, { human });
  const notice = {
    agent_id: agent.id,
    kind: 'comment.reply' as const,
    cause: makeId(),
    question_id,
    details: { replier_name: '<Eve> & co' },
    at: deps.clock(),
  };
  await sql.begin((tx) => notify(tx, [{ ...notice, ...fields }]));
  return agent;
};
const mails = async () => {
  const rows = await sql<
    { id: string; recipient: string; subject: string; sealed: Buffer; is_bulk: boolean }[]
  >`select id, recipient, subject, sealed, is_bulk from mails order by id`;
  const open = makeMailOpener(deps.config);
  return rows.map((row) => ({ ...row, ...open(row as never) }));
};
/** Moves the clock to the next digests. */
const toDigest = (choice: 'daily' | 'weekly'): void => {
  const next = nextDigestAt(choice, deps.clock())?.getTime() ?? 0;
  ahead_ms += next - deps.clock().getTime() + 60_000;
};
const digest = () => queueDigests(deps, readForumNews);

t.test('a digest has what is new, in both parts, and is made once', async (t) => {
  const human = await makeHuman(app);
  await settings(human, { digest: 'daily' });
  const agent = await tell(human);
  t.equal(await digest(), 0, 'not yet');
  toDigest('daily');
  t.equal(await digest(), 1);
  t.equal(await digest(), 0);
  const [mail, ...others] = await mails();
  t.same(others, []);
  t.match(mail, {
    recipient: human.email,
    subject: 'Prediction Forum: your daily digest',
    is_bulk: true,
    unsubscribe: /^http:\/\/forum\/unsubscribe\/[\w-]{44}$/,
  });
  t.match(mail?.text, `<Eve> & co replied to ${agent.name} on “Will`);
  t.match(mail?.text, 'http://forum/account/settings#mail');
  t.match(mail?.html, '&lt;Eve&gt; &amp; co replied');
  t.notMatch(mail?.html, '<Eve>');
  toDigest('daily');
  t.equal(await digest(), 1, 'the next day');
  t.equal((await mails()).length, 1, 'nothing is new, so there is no mail');
});

t.test('nothing is sent to those who did not ask, are unverified or were refused', async (t) => {
  const [off, unverified, refused] = [
    await makeHuman(app),
    await makeHuman(app),
    await makeHuman(app),
  ];
  for (const human of [unverified, refused]) {
    await settings(human, { digest: 'daily', alerts: ['replies'] });
  }
  for (const human of [off, unverified, refused]) await tell(human);
  await sql`update humans set email_verified_at = null where email = ${unverified.email}`;
  await sql.begin((tx) =>
    stopRefused(tx, { recipient: refused.email, reason: '550 gone', at: deps.clock() }),
  );
  await queueAlerts(deps);
  toDigest('daily');
  await digest();
  t.same(await mails(), []);
  const [left] = await sql`select count(*)::int as n from inbox_items where mail_due`;
  t.equal(left?.['n'], 0);
});

t.test('an alert goes out at once, and the next one has all that came meanwhile', async (t) => {
  const human = await makeHuman(app);
  await settings(human, { alerts: ['replies'] });
  const agent = await tell(human);
  await tell(human, { kind: 'tier.changed', details: { tier: 'Oracle' } });
  t.equal(await queueAlerts(deps), 1);
  t.equal(await queueAlerts(deps), 0);
  t.match(await mails(), [
    {
      subject: new RegExp(`^<Eve> & co replied to ${agent.name}`),
      text: /Unsubscribe from alerts/,
    },
  ]);
  await tell(human);
  await tell(human);
  t.equal(await queueAlerts(deps), 0, 'too soon');
  ahead_ms += alert_gap_ms;
  t.equal(await queueAlerts(deps), 1);
  const [, second] = await mails();
  t.equal(second?.subject, 'Prediction Forum: 2 updates');
});

t.test('results and moves are alerts only for those who want them', async (t) => {
  const [wants, other] = [await makeHuman(app), await makeHuman(app)];
  await settings(wants, { alerts: ['resolved'] });
  await settings(other, { alerts: ['moves'] });
  for (const human of [wants, other]) {
    await tell(human, { kind: 'prediction.resolved', details: { net: 12 } });
  }
  t.equal(await queueAlerts(deps), 1);
  t.match(await mails(), [{ recipient: wants.email, subject: /gained 12 points\.$/ }]);
});

t.test('who ends alerts gets none for what happened before', async (t) => {
  const human = await makeHuman(app);
  await settings(human, { alerts: ['replies'] });
  await tell(human);
  await settings(human, { alerts: [] });
  await queueAlerts(deps);
  await settings(human, { alerts: ['replies'] });
  await queueAlerts(deps);
  t.same(await mails(), []);
});

t.test('if the insights cannot be read, digests go out without them', async (t) => {
  const human = await makeHuman(app);
  await settings(human, { digest: 'daily' });
  await tell(human);
  toDigest('daily');
  const ended = openSql({ url: app.stores.database_url, pool: 1, prepare: false, name: 'ended' });
  await ended.end();
  const broken = { ...deps, sql: ended };
  await queueDigests(deps, makeForumReader(broken));
  t.match(await mails(), [{ recipient: human.email }]);
});

t.test('a refused address gets no more mails, and the settings say why', async (t) => {
  const human = await makeHuman(app);
  await settings(human, { alerts: ['replies'] });
  await tell(human);
  await queueAlerts(deps);
  // A second mail waits for the same address.
  await sql.begin((tx) =>
    queueMail(
      tx,
      { to: human.email, subject: 'x', text: 'x', links: [] },
      { config: deps.config, at: new Date(deps.clock().getTime() + hour_ms), is_bulk: true },
    ),
  );
  smtp.refuseNext('550 5.1.1 no such user');
  await sendDue(deps, { smtp: client, onRefused: stopRefused });
  const { body } = await app.call('GET', '/api/me/account/mail', human);
  t.match(body.stopped, { reason: /^550 5\.1\.1 no such user/ });
  const [left] = await sql`
    select count(*)::int as n from mails where sent_at is null and failed_at is null`;
  t.equal(left?.['n'], 0, 'what waited is given up');
  await sql`delete from mails`;
  await tell(human);
  ahead_ms += alert_gap_ms;
  await queueAlerts(deps);
  t.same(await mails(), []);
  await settings(human, { stopped: null });
  await tell(human);
  await queueAlerts(deps);
  t.equal((await mails()).length, 1);
});

t.test('digests are made in batches, and two timers make each of them once', async (t) => {
  const count = 250;
  const ids = Array.from({ length: count }, () => makeId());
  await sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    select id, id || '@people.dev', id || '@people.dev', '!', now()
    from unnest(${ids}::uuid[]) as id`;
  const due = new Date(Date.now() - hour_ms);
  await sql`
    insert into mail_settings (human_id, digest, move_points, next_digest_at)
    select id, 'daily', 10, ${due} from unnest(${ids}::uuid[]) as id`;
  await sql`
    insert into inbox_items (reader_id, id, kind, cause, question_id, details, created_at)
    select id, ${firstIdAt(Date.now() - hour_ms)}::uuid, 'question.closing_soon', 'c', ${question_id}, '{}', now()
    from unnest(${ids}::uuid[]) as id`;
  const turn = async (): Promise<number> => {
    let made = 0;
    for (let taken = 1; taken > 0; made += taken) taken = await digest();
    return made;
  };
  const made = await Promise.all([turn(), turn()]);
  t.equal(
    made.reduce((sum, one) => sum + one),
    count,
  );
  const [row] = await sql`
    select count(*)::int as mails, count(distinct recipient)::int as people from mails`;
  t.match(row, { mails: count, people: count });
});
