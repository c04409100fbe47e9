import { pino } from 'pino';
import {
  backoffMs,
  createMailer,
  logDue,
  type OnRefused,
  openSmtp,
  sendDue,
} from '../../../src/features/mail/mailer.js';
import {
  bulk_life_ms,
  claim_ms,
  expireMails,
  mail_keep_ms,
  mail_life_ms,
  pruneMails,
  queueMail,
} from '../../../src/features/mail/store.js';
import { makeConfig, openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { startSmtp } from './smtp.js';

const smtp = await startSmtp(t);
const { deps, stores, advance } = await openParts(t, { env: { SMTP_URL: smtp.url } });
const { sql, config } = deps;
const client = openSmtp(smtp.url);
t.teardown(() => client.close());
t.beforeEach(async () => {
  await sql`delete from mails`;
  smtp.taken.length = 0;
  refused.length = 0;
});

const link = 'http://forum/auth/verify?token=hv_secret';
const makeMail = (to = 'ada@example.org') => ({
  to,
  subject: 'Verify – grüße',
  text: `Hello,\n\n${link}\n`,
  links: [link],
});
const queue = (to?: string, { SECRET_KEY } = config): Promise<unknown> =>
  sql.begin((tx) => queueMail(tx, makeMail(to), { config: { SECRET_KEY }, at: deps.clock() }));
/** The addresses that the server refused for good, with its reasons. */
const refused: { readonly recipient: string; readonly reason: string }[] = [];
const onRefused: OnRefused = async (_, one) => {
  refused.push(one);
};
const send = async () => (await sendDue(deps, { smtp: client, onRefused })).claimed;

const readMail = async () => {
  const [row] = await sql`
    select sealed, attempts, sent_at is not null as sent, failed_at is not null as failed
    from mails order by id desc limit 1`;
  return row;
};

/** The same dependencies, with a log whose lines are stored. */
const withLines = (env: Readonly<Record<string, string>> = {}) => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { lines, deps: { ...deps, log, config: makeConfig(stores, env) } };
};

t.test('a queued mail is sent once, and its links are forgotten', async (t) => {
  await queue();
  t.equal(await send(), 1);
  t.equal(await send(), 0);
  t.equal(smtp.taken.length, 1);
  t.match(smtp.taken[0], { to: '<ada@example.org>', text: /hv_secret/ });
  t.match(smtp.taken[0]?.text, /^From: Prediction Forum <forum@localhost>$/m);
  t.match(smtp.taken[0]?.text, /^Message-ID: <[0-9a-f-]{36}@prediction-forum>$/m);
  t.match(await readMail(), { sent: true, failed: false, sealed: null, attempts: 1 });
});

t.test('a waiting mail is sealed: nothing in the table opens an account', async (t) => {
  await queue();
  const [row] = await sql`select mails::text as row, sealed from mails`;
  const sealed = row?.['sealed'] as Buffer;
  t.ok(sealed.length > 0);
  t.notMatch(`${row?.['row']} ${sealed.toString('latin1')}`, /hv_|Hello|token/);
});

t.test('a mail that another SECRET_KEY sealed is given up, and the others go out', async (t) => {
  const { lines, deps } = withLines();
  const SECRET_KEY = 'another-secret-key-0123456789abcdef';
  await queue('eve@example.org', { ...config, SECRET_KEY });
  t.equal((await sendDue(deps, { smtp: client, onRefused })).claimed, 1);
  t.match(await readMail(), { sent: false, failed: true, sealed: null });
  t.match(lines, [{ level: 50, msg: /SECRET_KEY/ }]);
  await queue();
  t.equal((await sendDue(deps, { smtp: client, onRefused })).claimed, 1);
  t.equal(smtp.taken.length, 1);
});

t.test('a mail whose transaction rolls back does not exist', async (t) => {
  const rolled_back = sql.begin(async (tx) => {
    await queueMail(tx, makeMail(), { config, at: new Date() });
    throw new Error('rolled back');
  });
  await t.rejects(rolled_back, { message: 'rolled back' });
  t.equal(await readMail(), undefined);
});

t.test('a failure is tried again after a growing pause, until the mail is too old', async (t) => {
  await queue();
  const attempts = 6;
  smtp.refuseNext(...Array<string>(attempts).fill('451 later'));
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    t.equal(await send(), 1, `attempt ${attempt}`);
    t.match(await readMail(), { attempts: attempt, sent: false, failed: false });
    advance(backoffMs(attempt) - 1);
    t.equal(await send(), 0, 'not before its time');
    advance(1);
  }
  advance(mail_life_ms);
  t.equal(await send(), 0);
  await expireMails(sql, deps.clock());
  t.match(await readMail(), { attempts, failed: true, sealed: null });
  t.equal(smtp.taken.length, 0);
  t.same(refused, []);
  t.same(
    [1, 2, 5, 6, 7, 99].map(backoffMs),
    [10_000, 40_000, 2_560_000, 3_600_000, 3_600_000, 3_600_000],
  );
});

for (const command of ['RCPT', 'DATA'] as const) {
  t.test(`if the server answers ${command} with 5xx, the mail ends and is reported`, async (t) => {
    await queue();
    smtp.refuseNextAt(command, '550 no such person');
    await send();
    t.match(await readMail(), { attempts: 1, failed: true, sealed: null });
    t.match(refused, [{ recipient: 'ada@example.org', reason: /^550 no such person/ }]);
  });
}

t.test('a refused sender is not the fault of the recipient', async (t) => {
  await queue();
  smtp.refuseNextAt('MAIL', '550 you may not send');
  await send();
  t.match(await readMail(), { attempts: 1, failed: false });
  t.same(refused, []);
});

t.test('while the server is down nothing is lost, and the others wait', async (t) => {
  const down = openSmtp('smtp://127.0.0.1:9');
  t.teardown(() => down.close());
  await queue();
  const { claimed, is_reached } = await sendDue(deps, { smtp: down, onRefused });
  t.same({ claimed, is_reached }, { claimed: 1, is_reached: false });
  t.match(await readMail(), { attempts: 1, failed: false });
  advance(backoffMs(1));
  t.equal(await send(), 1);
  t.equal(smtp.taken.length, 1);
});

t.test('a digest waits behind a mail that somebody asked for, and lives longer', async (t) => {
  const bulk = { config, is_bulk: true, at: deps.clock() };
  await sql.begin((tx) => queueMail(tx, makeMail('digest@example.org'), bulk));
  advance(1);
  await queue('reset@example.org');
  await send();
  t.equal(smtp.taken.length, 2);
  await sql.begin((tx) =>
    queueMail(tx, makeMail('old@example.org'), { ...bulk, at: deps.clock() }),
  );
  advance(bulk_life_ms);
  t.equal(await send(), 1, 'just young enough');
  await sql.begin((tx) =>
    queueMail(tx, makeMail('old@example.org'), { ...bulk, at: deps.clock() }),
  );
  advance(bulk_life_ms + 1);
  t.equal(await send(), 0);
  await expireMails(sql, deps.clock());
  t.match(await readMail(), { failed: true });
});

t.test(
  'a mail with an unsubscribe address has both parts and the headers of RFC 8058',
  async (t) => {
    const url = 'https://forum.example/unsubscribe/abc';
    const mail = { ...makeMail(), html: '<p>Hello</p>', unsubscribe: url };
    await sql.begin((tx) => queueMail(tx, mail, { config, at: deps.clock(), is_bulk: true }));
    await send();
    const [{ text = '' } = {}] = smtp.taken;
    t.match(text, `List-Unsubscribe: <${url}>`);
    t.match(text, 'List-Unsubscribe-Post: List-Unsubscribe=One-Click');
    t.match(text, /^Content-Type: multipart\/alternative/m);
    t.match(text, /Content-Type: text\/plain[\s\S]*Content-Type: text\/html/);
  },
);

t.test('a mail held by a sender that died is sent by the next after the claim', async (t) => {
  await queue();
  void sendDue(deps, { smtp: { sendMail: () => new Promise<never>(() => undefined) }, onRefused });
  await until('claimed', async () => (await readMail())?.['attempts'] === 1);
  t.equal(await send(), 0, 'held');
  advance(claim_ms);
  t.equal(await send(), 1);
  t.equal(smtp.taken.length, 1);
});

t.test('two senders at once take each mail once', async (t) => {
  for (let i = 0; i < 8; i += 1) await queue(`ada${i}@example.org`);
  const counts = await Promise.all([send(), send(), send(), send()]);
  t.equal(
    counts.reduce((sum, count) => sum + count),
    8,
  );
  t.equal(new Set(smtp.taken.map(({ to }) => to)).size, 8);
  t.equal(smtp.taken.length, 8);
});

t.test('a mail older than its links is given up', async (t) => {
  await queue();
  const before = smtp.countConnections();
  advance(mail_life_ms + 1);
  t.equal(await send(), 0);
  await expireMails(sql, deps.clock());
  t.match(await readMail(), { failed: true, sealed: null });
  t.equal(smtp.countConnections(), before);
});

t.test('old mails are deleted, younger ones stay', async (t) => {
  await queue();
  advance(mail_keep_ms);
  await pruneMails(sql, deps.clock());
  t.match(await readMail(), { sent: false });
  advance(1);
  await pruneMails(sql, deps.clock());
  t.equal(await readMail(), undefined);
});

t.test('without a server development logs the links once and marks nothing sent', async (t) => {
  const { lines, deps } = withLines();
  await queue();
  t.equal(await logDue(deps), 1);
  t.equal(await logDue(deps), 0);
  t.equal(lines.length, 1);
  t.match(lines[0], { level: 30, to: 'ada@example.org', links: [link] });
  t.match(await readMail(), { sent: false, failed: false, sealed: Buffer });
});

t.test('without a server too, a mail that another SECRET_KEY sealed is given up', async (t) => {
  const { lines, deps } = withLines();
  await queue('eve@example.org', { ...config, SECRET_KEY: 'another-secret-key-0123456789abcdef' });
  t.equal(await logDue(deps), 1);
  t.match(await readMail(), { sent: false, failed: true, sealed: null });
  t.match(lines, [{ level: 50, msg: /SECRET_KEY/ }]);
});

t.test('without a server production logs that, and nothing of the mail', async (t) => {
  const { lines, deps } = withLines({ NODE_ENV: 'production' });
  await queue();
  await logDue(deps);
  t.equal(lines.length, 1);
  t.notMatch(JSON.stringify(lines), /hv_secret|ada@example/);
});

t.test('the service finds mails by itself and stops', async (t) => {
  const mailer = createMailer(deps, { onRefused, every_ms: 20 });
  await mailer.start();
  await queue();
  await until('sent', () => smtp.taken.length === 1);
  await mailer.stop();
  await queue();
  t.match(await readMail(), { attempts: 0 });
});
