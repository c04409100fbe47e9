import type { Sql } from '../../../src/db/client.js';
import { makeRecentEvents, PublishedEvent } from '../../../src/features/events/topics.js';
import { createLogWatch } from '../../../src/features/log/watch.js';
import { range } from '../../help/hub.js';
import { makeEntry } from '../../help/log.js';
import { openTcp, request } from '../../help/native.js';
import { openParts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, suspend } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { findPort, serveLog } from './log-server.js';

/** Calls that wait for the next event. */

const everything = {
  refs: [{ topic: 'all', label: 'all' }],
  topics: new Set(['all']),
  filter: null,
};

const metrics_port = await findPort();
const { app, log } = await serveLog(t, {
  env: { METRICS_PORT: String(metrics_port), TRUSTED_PROXIES: '127.0.0.1' },
});
const waitFrom = (after: number, query = '', options = {}) =>
  app.call('GET', `/api/events?after=${after}&wait=50${query}`, options);

/** Waits until the process reports this many waiting calls. */
const untilWaiting = (count: number) =>
  until(`${count} wait`, async () => {
    const text = await (await fetch(`http://127.0.0.1:${metrics_port}/metrics`)).text();
    return new RegExp(`log_visitors\\{[^}]*\\} ${count}\n`).test(text);
  });

t.test('an event wakes the calls that wait for it, and no others', async (t) => {
  const all = waitFrom(0);
  const closing = waitFrom(0, '&events=question.closed');
  const society = waitFrom(0, '&topic=category:society,category:industry');
  const claude = waitFrom(0, '&model_family=claude');
  await untilWaiting(4);
  await log.write(1, { event: 'question.created' });
  t.match((await all).body, { events: [{ offset: 1 }], next: 1, gap: null });
  await untilWaiting(3);
  await log.write(1, { category: 'society' });
  t.match((await closing).body, { events: [{ offset: 2 }], next: 2 });
  t.match((await society).body, { events: [{ offset: 2 }], next: 2 });
  await untilWaiting(1);
  const body = JSON.stringify({ event: 'x', data: { model_family: 'claude' }, timestamp: 'now' });
  await log.write(1, { event: 'prediction.placed', body });
  t.match((await claude).body, { events: [{ offset: 3 }], next: 3 });
});

t.test('nothing happens: the answer is empty and says how far it has looked', async (t) => {
  const { body } = await app.call('GET', '/api/events?topic=system&wait=1');
  const first = await waitFrom(0, '&limit=2');
  t.match(first.body, { events: [{ offset: 1 }, { offset: 2 }], next: 2, next_cursor: '2' });
  const answer = await app.call('GET', `/api/events?topic=system&wait=1&after=${body.next}`);
  t.match(answer, { status: 200, body: { events: [], next: 3, next_cursor: null, head: 3 } });
});

t.test('a client that goes away no longer waits', async (t) => {
  const tcp = await openTcp(t, app.port);
  tcp.socket.write(request('GET /api/events?after=3&wait=50'));
  await untilWaiting(1);
  tcp.socket.destroy();
  await untilWaiting(0);
});

t.test('a key that holds no longer gets nothing more', async (t) => {
  const agent = await makeAgent(app);
  const wait = waitFrom(3, '&topic=me', { key: agent.key });
  await suspend(app, agent.id);
  const answer = await wait;
  t.ok(['INVALID_API_KEY', 'ACCOUNT_SUSPENDED'].includes(answer.body.code), answer.body.code);
  await log.write(1, { audience_id: agent.id });
});

/** Transactions of this database that have ended so far, as counted by Postgres. */
const countTransactions = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select xact_commit + xact_rollback as count
    from pg_stat_database
    where datname = current_database()`;
  return Number(row?.count);
};

t.test('a thousand that wait cost Postgres nothing while nothing happens', async (t) => {
  const before = await countTransactions(app.sql);
  const path = `/api/events?after=${log.entries.length}&wait=2`;
  const waits = range(1, 1_000).map((n) =>
    app.call('GET', path, { headers: { 'x-forwarded-for': `10.1.${n % 10}.1` } }),
  );
  await untilWaiting(1_000);
  const answers = await Promise.all(waits);
  t.ok(answers.every(({ status, body }) => status === 200 && body.events.length === 0));
  const after = await countTransactions(app.sql);
  // Some transactions are normal: the follower reads once a second, and the metrics also query.
  t.ok(after - before < 300, `${after - before} transactions`);
});

t.test('one address or one key may have so many, and a shutdown waits for none', async (t) => {
  const head = log.entries.length;
  const agent = await makeAgent(app);
  const from = (host: number) => ({ headers: { 'x-forwarded-for': `10.0.0.${host}` } });
  const wait = (options: object) => waitFrom(head, '', options);
  const many = range(1, 200).map(() => wait(from(1)));
  const keyed = range(1, 20).map((n) => wait({ ...from(n + 1), key: agent.key }));
  await untilWaiting(220);
  const refused = { status: 429, body: { code: 'TOO_MANY_CONNECTIONS' } };
  t.match(await wait(from(1)), refused);
  const at_once = await app.call('GET', '/api/events', from(1));
  t.equal(at_once.status, 200, 'a call that does not wait is answered');
  t.match(await wait({ ...from(99), key: agent.key }), refused);
  await app.stop();
  for (const answer of await Promise.all([...many, ...keyed])) {
    t.match(answer, { status: 200, body: { events: [], next: head } });
  }
});

t.test('waiting and waking read nothing; a reader further back reads the record', async (t) => {
  const { deps } = await openParts(t);
  let queries = 0;
  const sql = new Proxy(deps.sql, {
    apply(target, self, args) {
      queries += 1;
      return Reflect.apply(target as never, self, args);
    },
  });
  const watch = createLogWatch(sql, makeRecentEvents(8));
  watch.begin({ head: 100, oldest: 1 });
  const waits = range(1, 1_000).map(() => watch.awaitNext(everything, 60_000));
  t.equal(watch.waiting(), 1_000);
  watch.onEvents(range(101, 104).map((offset) => new PublishedEvent(makeEntry(offset))));
  for (const { wait } of waits) t.same(await wait, { woken: 'event', up_to: 100 });
  const page = await watch.read(everything, 100, 3);
  t.same(pluck(page.entries, 'offset'), [101, 102, 103]);
  t.equal(page.next, 103);
  t.equal(queries, 0);
  watch.onEvents(range(105, 120).map((offset) => new PublishedEvent(makeEntry(offset))));
  await watch.read(everything, 100, 3);
  t.ok(queries > 0, 'memory does not reach back so far');
  watch.end();
  t.same(await watch.awaitNext(everything, 60_000).wait, { woken: 'ended', up_to: 120 });
});
