import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { claim_ms, claimed_at_once } from '../../src/features/mail/store.js';
import { firstIdAt, makeId } from '../../src/kit/ids.js';
import { startSmtp, type TakenMail } from '../features/mail/smtp.js';
import { secret_key } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { fault_limits } from './world.js';

/**
 * A digest for 10,000 people, whose timer is killed while it makes and sends the e-mails, also
 * between the server's 250 and the commit, and whose mail server goes down for a while. Nobody
 * misses the digest. Only e-mails that were in flight at a kill come twice, with the same id.
 */

t.setTimeout(fault_limits.timeout);

const people = 10_000;
const stores = await openStores(t);
const { deps } = await openParts(t, { stores });
const { sql } = deps;
const smtp = await startSmtp(t);
const module = new URL('../features/digests/timer-child.js', import.meta.url);

let ahead_ms = 0;
const startTimer = async (): Promise<ChildProcess> => {
  const { database_url, redis_url } = stores;
  const given = { database_url, redis_url, smtp_url: smtp.url, secret_key, ahead_ms };
  const child = fork(module, [JSON.stringify(given)]);
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
};

const fill = async (): Promise<void> => {
  await sql`
    insert into humans (id, email, email_key, password_hash, email_verified_at)
    select id, id || '@people.dev', id || '@people.dev', '!', now()
    from (
      select (${makeId().slice(0, 24)} || lpad(to_hex(n), 12, '0'))::uuid as id
      from generate_series(1, ${people}::integer) n
    ) ids`;
  await sql`
    insert into mail_settings (human_id, digest, move_points, next_digest_at)
    select id, 'daily', 10, now() - interval '1 hour' from humans`;
  await sql`
    insert into inbox_items (reader_id, id, kind, cause, details, created_at)
    select id, ${firstIdAt(Date.now() - 3_600_000)}::uuid, 'family.day', 'day', '{"family": "claude"}', now()
    from humans`;
};

/** The e-mails that a sender holds: claimed, and neither sent nor given up. */
const readInFlight = async (): Promise<readonly string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from mails where attempts > 0 and sent_at is null and failed_at is null`;
  return rows.map(({ id }) => id);
};
const countMails = async () => {
  const [row] = await sql<{ made: number; sent: number }[]>`
    select count(*)::int as made, count(sent_at)::int as sent from mails`;
  return row ?? { made: 0, sent: 0 };
};
const idOf = ({ text }: TakenMail): string =>
  /^Message-ID: <([0-9a-f-]{36})@/m.exec(text)?.[1] ?? '';

t.test(
  'kills and an outage lose no digest, and repeat only those in flight',
  fault_limits,
  async (t) => {
    await fill();
    const may_repeat = new Set<string>();
    let kills = 0;
    const kill = async (child: ChildProcess): Promise<void> => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      kills += 1;
      for (const id of await readInFlight()) may_repeat.add(id);
      // The next timer takes over what this one held.
      ahead_ms += claim_ms;
    };

    let child = await startTimer();
    // While the digests are made: some are queued, and some are sent already.
    await until('digests are made', async () => (await countMails()).made > people / 10, 120_000);
    await kill(child);
    t.ok((await countMails()).made < people, 'the first kill came while digests were made');
    t.equal((await countMails()).made % 100, 0, 'batches are whole');

    child = await startTimer();
    await until('some are sent', () => smtp.taken.length > people / 4, 300_000);
    await kill(child);

    // The server has taken this e-mail, but the sender never gets the answer.
    child = await startTimer();
    const unanswered = await new Promise<string>((resolve) => {
      smtp.onTaken(async (mail) => {
        smtp.onTaken(async () => undefined);
        await kill(child);
        resolve(idOf(mail));
      });
    });
    t.ok(may_repeat.has(unanswered));

    // An outage: every connection is refused for a while.
    child = await startTimer();
    await until('it goes on', () => smtp.taken.length > people / 2, 300_000);
    await smtp.close();
    const before = smtp.taken.length;
    await until(
      'attempts fail',
      async () => (await readInFlight()).length > 2 * claimed_at_once,
      60_000,
    );
    await smtp.listen();
    // Waits longer than the first pause after a failure.
    await kill(child);
    ahead_ms += 60_000;
    child = await startTimer();
    await until('all are sent', async () => (await countMails()).sent === people, 900_000, 200);
    t.ok(smtp.taken.length > before);
    await kill(child);

    const ids = smtp.taken.map(idOf);
    const recipients = new Set(smtp.taken.map(({ to }) => to));
    t.equal(recipients.size, people, 'everybody got the digest');
    const seen = new Set<string>();
    const repeated = ids.filter((id) => seen.has(id) || !seen.add(id));
    t.same(
      repeated.filter((id) => !may_repeat.has(id)),
      [],
      'only e-mails in flight came twice',
    );
    t.equal(seen.size, people, 'a repeated e-mail has the same Message-ID');
    t.ok(repeated.includes(unanswered), 'the one without an answer came twice');
    t.comment(`${kills} kills, ${repeated.length} repeated, ${may_repeat.size} were in flight`);
  },
);
