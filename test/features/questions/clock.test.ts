import { type Test, test } from 'tap';
import { startApp, type TestApp } from '../../help/app.js';
import { withSkewedClock } from '../../help/skewed-clock.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeReasoning } from '../../help/story.js';
import { until } from '../../help/until.js';

/** Questions open and close by the clock of Postgres, not by that of the process that looks. */

const startSkewed = async (t: Test, hours: number): Promise<TestApp> => {
  const stores = await openStores(t);
  await withSkewedClock(stores.database_url, hours);
  return startApp(t, { stores, roles: ['api', 'timer'] });
};

/** By the clock of this process. */
const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

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

test('a process that is behind lets nothing open that is over', async (t) => {
  const app = await startSkewed(t, 10);
  const now_over = { opens_at: inHours(-1), closes_at: inHours(5) };
  const draft = await makeQuestion(app, now_over);
  t.equal(draft.status, 201);
  const { id } = draft.body.question;
  const published = await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true });
  t.equal(published.status, 409);
  t.match(published.body.error, /It would have closed at/);
  t.equal(
    (await makeQuestion(app, { closes_at: inHours(5) })).status,
    400,
    'closes before it opens',
  );
});

test('a timer that is behind closes on time', async (t) => {
  const app = await startSkewed(t, 10);
  const { body } = await makeQuestion(app, { closes_at: inHours(40), publish: true });
  const { id } = body.question;
  t.ok(body.question.opens_at > inHours(9), 'it opened by the clock of Postgres');
  await app.sql`update questions set closes_at = ${inHours(9)}, opens_at = ${inHours(0)} where id = ${id}`;
  await until('it is closed', async () => (await statusOf(app, id)) === 'closed');
});

test('a process that is ahead closes nothing early and takes predictions to the end', async (t) => {
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
});
