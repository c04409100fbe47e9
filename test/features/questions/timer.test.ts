import type { Test } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import { turnQuestions } from '../../../src/features/questions/life.js';
import { startApp, type TestApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { withSkewedClock } from '../../help/skewed-clock.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t as root } from '../../help/tap.js';
import { startTimers } from '../../help/timer-processes.js';
import { until } from '../../help/until.js';

const hour_ms = 3_600_000;

/** Adds open questions that close when `closesAt` says, in milliseconds since 1970. */
const addOpen = async (sql: Sql, count: number, closesAt: (n: number) => number) => {
  const times = Array.from({ length: count }, (_, n) => new Date(closesAt(n)).toISOString());
  await sql`
    insert into questions (
      id, question, category, question_type, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    select
      id, 'Will measured series ' || n || ' end above its median?', 'technology', 'binary',
      'open', 'long', closes_at - interval '9 days', closes_at, closes_at, now()
    from unnest(
      ${times.map((_, n) => questionId(n))}::uuid[],
      ${times}::timestamptz[]
    ) with ordinality as given (id, closes_at, n)`;
};

/** How many times each event was emitted per question: `event × times → questions`. */
const countEvents = async (sql: Sql) => {
  const rows = await sql<{ event: string; times: number; questions: number }[]>`
    select event, times, count(*)::int as questions
    from (
      select event, question_id, count(*)::int as times
      from outbox
      group by event, question_id
    ) as made
    group by event, times
    order by event, times`;
  return rows.map(({ event, times, questions }) => `${event} × ${times} → ${questions}`);
};

const countOpen = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from questions where status = 'open'`;
  return row?.count ?? 0;
};

root.test('a question closes at its time and not before, announced a day ahead', async (t) => {
  const { deps, advance } = await openParts(t);
  const start = deps.clock().getTime();
  await addOpen(deps.sql, 1, () => start + 30 * hour_ms);
  const turns = async () => [await turnQuestions(deps), await countEvents(deps.sql)];
  t.same(await turns(), [0, []], 'more than a day is left');
  advance(6 * hour_ms - 1);
  t.same(await turns(), [0, []], 'a millisecond more than a day');
  advance(1);
  const soon = ['question.closing_soon × 1 → 1'];
  t.same(await turns(), [1, soon], 'a day');
  t.same(await turns(), [0, soon], 'not again');
  advance(24 * hour_ms - 1);
  t.same(await turns(), [0, soon], 'a millisecond is left');
  t.equal(await countOpen(deps.sql), 1);
  advance(1);
  t.same(await turns(), [1, ['question.closed × 1 → 1', ...soon]]);
  t.same((await turns())[0], 0);
  const [row] = await deps.sql`select status, closed_at, closes_at from questions`;
  t.same([row?.['status'], row?.['closed_at']], ['closed', row?.['closes_at']]);
});

root.test('a question that ended while no timer ran is closed, and not announced', async (t) => {
  const { deps } = await openParts(t);
  const now = deps.clock().getTime();
  await addOpen(deps.sql, 3, (n) => now - n * hour_ms);
  t.equal(await turnQuestions(deps), 3);
  t.same(await countEvents(deps.sql), ['question.closed × 1 → 3']);
});

root.test('many turns at once close and announce each question once', async (t) => {
  const stores = await openStores(t);
  const parts = [await openParts(t, { stores }), await openParts(t, { stores })] as const;
  const [{ deps }] = parts;
  const now = deps.clock().getTime();
  // The two timers' clocks differ slightly, so every closing time is at least 10 s from now.
  await addOpen(deps.sql, 1_500, (n) => now + (n % 2 === 0 ? -1 - n : 1 + n) * 10_000);
  const changed: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const turns = parts.flatMap((one) => Array.from({ length: 4 }, () => turnQuestions(one.deps)));
    changed.push(...(await Promise.all(turns)));
  }
  const sum = changed.reduce((total, n) => total + n, 0);
  t.equal(sum, 1_500, changed.join(' '));
  t.same(await countEvents(deps.sql), [
    'question.closed × 1 → 750',
    'question.closing_soon × 1 → 750',
  ]);
  t.equal(await countOpen(deps.sql), 750);
});

root.test('the turns of a timer go around a question that is being changed', async (t) => {
  const stores = await openStores(t);
  const [{ deps }, other] = await Promise.all([openParts(t, { stores }), openParts(t, { stores })]);
  const now = deps.clock().getTime();
  await addOpen(deps.sql, 2, () => now - 1_000);
  await other.deps.sql.begin(async (tx) => {
    await tx`select from questions where id = ${questionId(0)} for share`;
    t.equal(await turnQuestions(deps), 1, 'the other one');
  });
  t.equal(await turnQuestions(deps), 1, 'and this one on the next turn');
});

root.test('the running service closes a question at its time and tells everybody', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
  const id = await makeOpenQuestion(app, {
    closes_at: new Date(Date.now() + 36_000_000).toISOString(),
  });
  const [given] = await app.sql<{ closes_at: Date }[]>`
    update questions
    set closes_at = now() + interval '1 second'
    where id = ${id}
    returning closes_at`;
  const closes_at = given?.closes_at.toISOString() ?? '';
  const row = await until('it is closed', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}`, { admin: true });
    return body.question.status === 'closed' && body.question;
  });
  t.ok(row.updated_at >= closes_at, 'not before its time');
  const events = await until('the log has it', async () => {
    const rows =
      await app.sql`select event from events where question_id = ${id} order by "offset"`;
    return rows.length >= 3 && rows.map(({ event }) => event);
  });
  t.same(events, ['question.created', 'question.closing_soon', 'question.closed']);
  t.comment(`${Date.parse(row.updated_at) - Date.parse(closes_at)} ms after its time`);
});

const timer_module = new URL('./timer-child.js', import.meta.url);

root.test('two processes, one killed in the middle: everything once', async (t) => {
  const { deps, stores } = await openParts(t);
  const [victim] = await startTimers(t, timer_module, { stores, count: 2 });
  const now = Date.now();
  await addOpen(deps.sql, 2_000, (n) => now + (n % 2 === 0 ? -1 - n : 3_000 + n) * 1_000);
  await until('a part is done', async () => (await countOpen(deps.sql)) < 1_900);
  victim?.removeAllListeners('exit');
  victim?.kill('SIGKILL');
  const [before] = await deps.sql`
    select count(*)::int as count from outbox where event = 'question.closed'`;
  await until('all is done', async () => {
    const counts = await countEvents(deps.sql);
    return counts.every((one) => one.endsWith('→ 1000')) && counts.length === 2;
  });
  t.same(await countEvents(deps.sql), [
    'question.closed × 1 → 1000',
    'question.closing_soon × 1 → 1000',
  ]);
  t.comment(`${before?.['count']} were closed when one was killed`);
  t.equal(await countOpen(deps.sql), 1_000);
});

/** Questions open and close by the clock of Postgres, not by the clock of the process. */
const startSkewed = async (t: Test, hours: number): Promise<TestApp> => {
  const stores = await openStores(t);
  await withSkewedClock(stores.database_url, hours);
  return startApp(t, { stores, roles: ['api', 'timer'] });
};

/** This many hours from now, by the clock of this process. */
const inHours = (hours: number): string => new Date(Date.now() + hours * hour_ms).toISOString();

const makeQuestion = (app: TestApp, fields: Readonly<Record<string, unknown>>) =>
  app.call('POST', '/api/admin/questions', {
    admin: true,
    body: {
      question: 'Will the ferry run on the first of the month?',
      category: 'society',
      ...fields,
    },
  });

const statusOf = async ({ sql }: TestApp, id: string): Promise<string> => {
  const [row] = await sql<{ status: string }[]>`select status from questions where id = ${id}`;
  return row?.status ?? 'gone';
};

const behind = await startSkewed(root, 10);

root.test('a process that is behind lets nothing open that is over', async (t) => {
  const now_over = { opens_at: inHours(-1), closes_at: inHours(5) };
  const draft = await makeQuestion(behind, now_over);
  t.equal(draft.status, 201);
  const { id } = draft.body.question;
  const published = await behind.call('POST', `/api/admin/questions/${id}/publish`, {
    admin: true,
  });
  t.match(published, { status: 409, body: { error: /The closing time has passed/ } });
  const over = await makeQuestion(behind, { closes_at: inHours(5) });
  t.equal(over.status, 400, 'closes before it opens');
});

root.test('a timer that is behind closes on time', async (t) => {
  const { body } = await makeQuestion(behind, { closes_at: inHours(40), publish: true });
  const { id } = body.question;
  t.ok(body.question.opens_at > inHours(9), 'it opened by the clock of Postgres');
  await behind.sql`update questions set closes_at = ${inHours(9)}, opens_at = ${inHours(0)} where id = ${id}`;
  await until('it is closed', async () => (await statusOf(behind, id)) === 'closed');
});

root.test(
  'a process that is ahead closes nothing early and takes predictions to the end',
  async (t) => {
    const app = await startSkewed(t, -10);
    const { body } = await makeQuestion(app, { closes_at: inHours(-5), publish: true });
    const { id } = body.question;
    const agent = await makeAgent(app, { human: await makeHuman(app) });
    const placed = await app.call('POST', `/api/questions/${id}/predict`, {
      key: agent.key,
      body: { prediction: true, confidence: 70, reasoning: makeReasoning() },
    });
    t.equal(placed.status, 201, JSON.stringify(placed.body));
    t.equal(await statusOf(app, id), 'open');
  },
);
