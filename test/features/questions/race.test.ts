import { markResolved, markVoided } from '../../../src/features/questions/index.js';
import { isFault } from '../../../src/kit/fault.js';
import { startApp, type TestApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t as root } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Two api processes on one database, and calls that alternate between them. */

const app = await startApp(root, { roles: ['api'] });
const other = await startApp(root, { roles: ['api'], stores: app.stores });
const human = await makeHuman(app);
let calls = 0;

/** Takes a step and returns the answer as one word. */
const take = async (id: string, step: string): Promise<string> => {
  if (step === 'resolve' || step === 'void') {
    const ended = { id, note: null, at: new Date() };
    const row = await app.sql.begin((tx) =>
      step === 'resolve'
        ? markResolved(tx, { ...ended, outcome: false, correct_options: null, outcome_value: null })
        : markVoided(tx, ended),
    );
    return isFault(row) ? `${row.def.status} ${row.def.code}` : `done ${row.revision}`;
  }
  calls += 1;
  const { call } = calls % 2 === 0 ? app : other;
  const closes_at = new Date(Date.now() + 90 * 86_400_000).toISOString();
  const body = step === 'reopen' ? { closes_at } : {};
  const answer = await call('POST', `/api/admin/questions/${id}/${step}`, { admin: true, body });
  return answer.status === 200 ? 'done' : `${answer.status} ${answer.body.code}`;
};

const predict = async ({ call }: Pick<TestApp, 'call'>, id: string, key: string) => {
  const body = { prediction: true, confidence: 60, reasoning: makeReasoning() };
  return (await call('POST', `/api/questions/${id}/predict`, { key, body })).status;
};

const sixteen = <T>(one: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: 16 }, one));

root.test(
  'of sixteen equal steps at once one is taken, and the others are told why not',
  async (t) => {
    const id = await makeOpenQuestion(app, { publish: false });
    for (const step of ['publish', 'close', 'reopen', 'void']) {
      const answers = await sixteen(() => take(id, step));
      t.equal(answers.filter((answer) => answer.startsWith('done')).length, 1, step);
      const rest = answers.filter((answer) => !answer.startsWith('done'));
      t.same([...new Set(rest)], ['409 INVALID_TRANSITION'], step);
    }
    const events = await app.sql`select event from outbox where question_id = ${id} order by id`;
    const once = ['question.created', 'question.closed', 'question.reopened'];
    t.same(pluck(events, 'event'), once, 'each event once');
    const acts = await app.sql`
    select act, count(*)::int as count from audit_log where question_id = ${id} group by 1 order by 1`;
    const counts = acts.map(({ act, count }) => `${act} ${count}`).join();
    t.equal(counts, 'question.close 1,question.create 1,question.publish 1,question.reopen 1');
  },
);

root.test('of sixteen resolutions at once each has a revision of its own', async (t) => {
  const id = await makeOpenQuestion(app);
  await take(id, 'close');
  const answers = await sixteen(() => take(id, 'resolve'));
  const expected = Array.from({ length: 16 }, (_, n) => `done ${n + 1}`);
  t.same([...answers].sort(), expected.sort());
});

root.test(
  'sixteen different steps at once leave a question that has lived by the rules',
  async (t) => {
    for (let round = 0; round < 8; round += 1) {
      const id = await makeOpenQuestion(app, { publish: false });
      const steps = ['publish', 'close', 'reopen', round % 3 === 0 ? 'resolve' : 'close'];
      let n = 0;
      const done: string[] = [];
      const answers = await sixteen(async () => {
        const step = steps[(n++ + round) % 4] as string;
        const answer = await take(id, step);
        if (answer.startsWith('done')) done.push(step);
        return answer;
      });
      const count = (step: string): number => done.filter((one) => one === step).length;
      const [row] = await app.sql`select status from questions where id = ${id}`;
      const expected = {
        draft: count('publish') === 0 && done.length === 0,
        open: count('publish') === 1 && count('close') === count('reopen'),
        closed: count('publish') === 1 && count('close') === count('reopen') + 1,
        resolved: count('close') === count('reopen') + 1 && count('resolve') > 0,
      };
      const status = row?.['status'] as keyof typeof expected;
      t.ok(expected[status], `${status} after ${done.join(', ')}`);
      const refused = answers.filter((answer) => !answer.startsWith('done'));
      t.ok(
        refused.every((answer) => ['409 INVALID_TRANSITION', '400 INVALID_DATES'].includes(answer)),
      );
      const [events] = await app.sql`
      select
        count(*) filter (where event = 'question.created')::int as created,
        count(*) filter (where event = 'question.closed')::int as closed
      from outbox where question_id = ${id}`;
      t.match(events, { created: count('publish'), closed: count('close') });
    }
  },
);

root.test(
  'a process that cached a question sees that another one closed or reopened it',
  async (t) => {
    const id = await makeOpenQuestion(app);
    const predictThere = async () => predict(other, id, (await makeAgent(app, { human })).key);
    t.equal(await predictThere(), 201);
    const closed = await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true });
    t.equal(closed.status, 200);
    t.equal(await predictThere(), 409, 'although it had it as open a moment ago');
    await take(id, 'reopen');
    t.ok(await until('the reopening is seen', async () => (await predictThere()) === 201, 3_000));
  },
);

root.test('of the predictions that race with a close none is placed after it', async (t) => {
  const agents = await Promise.all(Array.from({ length: 40 }, () => makeAgent(app, { human })));
  const id = await makeOpenQuestion(app);
  const count = async (): Promise<number> => {
    const [row] = await app.sql<{ count: number }[]>`
      select count(*)::int as count from predictions where question_id = ${id}`;
    return row?.count ?? 0;
  };
  const close = async (): Promise<number> => {
    await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true });
    return count();
  };
  const answers: number[] = [];
  let closing: Promise<number> | undefined;
  const predictOneByOne = async (chain: number): Promise<void> => {
    const process = chain % 2 === 0 ? app : other;
    for (const { key } of agents.slice(chain * 10, chain * 10 + 10)) {
      answers.push(await predict(process, id, key));
      if (answers.length >= 12) closing ??= close();
    }
  };
  await Promise.all([0, 1, 2, 3].map(predictOneByOne));
  const placed_before_close = await closing;
  t.equal(await count(), placed_before_close);
  t.equal(answers.filter((status) => status === 201).length, placed_before_close);
  t.ok(answers.every((status) => [201, 409].includes(status)));
  t.comment(`${placed_before_close} of 40 came before the close`);
});
