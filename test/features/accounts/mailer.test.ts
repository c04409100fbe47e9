import { pino } from 'pino';
import { type Test, t } from 'tap';
import type { Config } from '../../../src/config.js';
import {
  claim_ms,
  mail_keep_ms,
  mail_life_ms,
  pruneMails,
  queueMail,
} from '../../../src/features/accounts/mail-store.js';
import {
  backoffMs,
  createMailer,
  logDue,
  most_attempts,
  openSmtp,
  sendDue,
} from '../../../src/features/accounts/mailer.js';
import { openParts, type Parts, type PartsOptions } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { until } from '../../help/until.js';
import { startSmtp } from './smtp.js';

const stores = await openStores(t);

/** Starts without mails; the tests of this file follow each other. */
const openEmpty = async (t: Test, options: PartsOptions = {}): Promise<Parts> => {
  const parts = await openParts(t, { ...options, stores });
  await parts.deps.sql`delete from mails`;
  return parts;
};

const link = 'http://forum/auth/verify?token=hv_secret';

const queue = (
  { deps }: Pick<Parts, 'deps'>,
  to = 'ada@example.org',
  config: Pick<Config, 'SECRET_KEY'> = deps.config,
): Promise<unknown> => {
  const mail = { to, subject: 'Verify – grüße', text: `Hello,\n\n${link}\n`, links: [link] };
  return deps.sql.begin((tx) => queueMail(tx, mail, { config, at: deps.clock() }));
};

const readMail = async ({ deps }: Parts) => {
  const [row] = await deps.sql`
    select sealed, attempts, sent_at is not null as sent, failed_at is not null as failed
    from mails order by id desc limit 1`;
  if (row === undefined) throw new Error('there is no mail');
  return row;
};

const startSending = async (t: Test) => {
  const smtp = await startSmtp(t);
  const parts = await openEmpty(t, { env: { SMTP_URL: smtp.url } });
  const smtp_client = openSmtp(smtp.url);
  t.teardown(() => smtp_client.close());
  return { smtp, parts, smtp_client };
};

const makeLines = () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { lines, log };
};

t.test('a queued mail is sent once, and its links are forgotten', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  t.equal(await sendDue(parts.deps, smtp_client), 1);
  t.equal(await sendDue(parts.deps, smtp_client), 0);
  t.equal(smtp.taken.length, 1);
  t.match(smtp.taken[0], { to: '<ada@example.org>', text: /hv_secret/ });
  t.match(smtp.taken[0]?.text, /^From: Prediction Forum <forum@localhost>$/m);
  t.match(smtp.taken[0]?.text, /^Message-ID: <[0-9a-f-]{36}@prediction-forum>$/m);
  t.match(await readMail(parts), { sent: true, failed: false, sealed: null, attempts: 1 });
});

t.test('a waiting mail is sealed: nothing in the table opens an account', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  const rows = await parts.deps.sql`select mails::text as row, sealed from mails`;
  const sealed = rows[0]?.['sealed'] as Buffer;
  t.ok(sealed.length > 0);
  t.notMatch(`${rows[0]?.['row']} ${sealed.toString('latin1')}`, /hv_|Hello|token/);
  await sendDue(parts.deps, smtp_client);
  t.match(smtp.taken[0]?.text, link.slice(-9));
});

t.test(
  'a mail that another SECRET_KEY sealed is given up and said, and the others go out',
  async (t) => {
    const { lines, log } = makeLines();
    const { smtp, parts, smtp_client } = await startSending(t);
    const deps = { ...parts.deps, log };
    const config = { SECRET_KEY: 'another-secret-key-0123456789abcdef' };
    await queue(parts, 'eve@example.org', config);
    t.equal(await sendDue(deps, smtp_client), 1);
    t.match(await readMail(parts), { sent: false, failed: true, sealed: null });
    t.match(lines, [{ level: 50, msg: /SECRET_KEY/ }]);
    await queue(parts);
    t.equal(await sendDue(deps, smtp_client), 1);
    t.equal(smtp.taken.length, 1);
  },
);

t.test('a mail whose transaction rolls back does not exist', async (t) => {
  const parts = await openEmpty(t);
  await t.rejects(
    parts.deps.sql.begin(async (tx) => {
      const mail = { to: 'a@b.example', subject: 's', text: 't', links: [] };
      await queueMail(tx, mail, { config: parts.deps.config, at: new Date() });
      throw new Error('rolled back');
    }),
    { message: 'rolled back' },
  );
  t.same(await parts.deps.sql`select from mails`, []);
});

t.test('a failure is tried again after a growing pause and given up in the end', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  smtp.refuseNext(...Array<string>(most_attempts).fill('451 later'));
  for (let attempt = 1; attempt < most_attempts; attempt += 1) {
    t.equal(await sendDue(parts.deps, smtp_client), 1, `attempt ${attempt}`);
    t.match(await readMail(parts), { attempts: attempt, sent: false, failed: false });
    parts.advance(backoffMs(attempt) - 1);
    t.equal(await sendDue(parts.deps, smtp_client), 0, 'not before its time');
    parts.advance(1);
  }
  t.equal(await sendDue(parts.deps, smtp_client), 1);
  t.match(await readMail(parts), { attempts: most_attempts, failed: true, sealed: null });
  parts.advance(86_400_000);
  t.equal(await sendDue(parts.deps, smtp_client), 0);
  t.equal(smtp.taken.length, 0);
  t.same([1, 2, 5, 6, 7].map(backoffMs), [10_000, 40_000, 2_560_000, 3_600_000, 3_600_000]);
});

t.test('an address that the server refuses for good is not tried again', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  smtp.refuseNext('550 no such person');
  await sendDue(parts.deps, smtp_client);
  t.match(await readMail(parts), { attempts: 1, failed: true });
});

t.test('a mail held by a sender that died is sent by the next after the claim', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  const dead = { sendMail: () => new Promise<never>(() => undefined) };
  void sendDue(parts.deps, dead);
  await until('claimed', async () => (await readMail(parts))['attempts'] === 1);
  t.equal(await sendDue(parts.deps, smtp_client), 0, 'held');
  parts.advance(claim_ms);
  t.equal(await sendDue(parts.deps, smtp_client), 1);
  t.equal(smtp.taken.length, 1);
});

t.test('two senders at once take each mail once', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  for (let i = 0; i < 8; i += 1) await queue(parts, `ada${i}@example.org`);
  const rounds = [1, 2, 3, 4].map(() => sendDue(parts.deps, smtp_client));
  t.equal(
    (await Promise.all(rounds)).reduce((sum, count) => sum + count, 0),
    8,
  );
  t.equal(new Set(smtp.taken.map(({ to }) => to)).size, 8);
  t.equal(smtp.taken.length, 8);
});

t.test('a mail older than its links is given up', async (t) => {
  const { smtp, parts, smtp_client } = await startSending(t);
  await queue(parts);
  parts.advance(mail_life_ms + 1);
  t.equal(await sendDue(parts.deps, smtp_client), 0);
  t.match(await readMail(parts), { failed: true, sealed: null });
  t.equal(smtp.countConnections(), 0);
});

t.test('old mails are deleted, younger ones stay', async (t) => {
  const parts = await openEmpty(t);
  await queue(parts);
  parts.advance(mail_keep_ms);
  await pruneMails(parts.deps.sql, parts.deps.clock());
  t.match(await readMail(parts), { sent: false });
  parts.advance(1);
  await pruneMails(parts.deps.sql, parts.deps.clock());
  await t.rejects(readMail(parts), { message: 'there is no mail' });
});

t.test('without a server development logs the links once and marks nothing sent', async (t) => {
  const { lines, log } = makeLines();
  const parts = await openEmpty(t, { log });
  await queue(parts);
  t.equal(await logDue(parts.deps), 1);
  t.equal(await logDue(parts.deps), 0);
  t.equal(lines.length, 1);
  t.match(lines[0], { level: 30, to: 'ada@example.org', links: [link] });
  t.match(await readMail(parts), { sent: false, failed: false, sealed: Buffer });
});

t.test('without a server production logs that, and nothing of the mail', async (t) => {
  const { lines, log } = makeLines();
  const parts = await openEmpty(t, { log, env: { NODE_ENV: 'production' } });
  await queue(parts);
  await logDue(parts.deps);
  t.equal(lines.length, 1);
  t.notMatch(JSON.stringify(lines), /hv_secret|ada@example/);
});

t.test('the service finds mails by itself and stops', async (t) => {
  const smtp = await startSmtp(t);
  const parts = await openEmpty(t, { env: { SMTP_URL: smtp.url } });
  const mailer = createMailer(parts.deps, 20);
  await mailer.start();
  await queue(parts);
  await until('sent', () => smtp.taken.length === 1);
  await mailer.stop();
  await queue(parts);
  t.match(await readMail(parts), { attempts: 0 });
});
