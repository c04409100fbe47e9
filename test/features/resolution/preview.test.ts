import { startApp } from '../../help/app.js';
import { act, makeForecasts } from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

const app = await startApp(t);

const preview = (id: string, body: Readonly<Record<string, unknown>>) =>
  app.call('POST', `/api/admin/questions/${id}/resolve/preview`, { admin: true, body });

/** Waits until all agents are paid and returns their net amounts. */
const untilPaid = (id: string, revision: number) =>
  until('all are paid', async () => {
    const [job] = await app.sql`
      select from resolutions
      where question_id = ${id} and revision = ${revision} and state = 'done'`;
    if (job === undefined) return undefined;
    const rows = await app.sql<{ net: number }[]>`
      select net from scores where question_id = ${id} order by net`;
    return rows.map(({ net }) => net);
  });

const cases = [
  {
    question: {},
    stated: [90, 60, 20].map((probability) => ({ probability })),
    outcome: { outcome: true },
    other: { outcome: false },
  },
  {
    question: { question_type: 'multi', options: ['One', 'Two', 'Three'] },
    stated: [
      { selected_option: 'Two', confidence: 60 },
      { probabilities: { One: 80, Two: 15, Three: 5 } },
    ],
    outcome: { correct_options: ['Two'] },
    other: { correct_options: ['One', 'Three'] },
  },
  {
    question: { question_type: 'numeric', range: { min: 0, max: 100 } },
    stated: [
      {
        quantiles: [
          { value: 0, p: 0 },
          { value: 40, p: 0.5 },
          { value: 100, p: 1 },
        ],
      },
      {
        quantiles: [
          { value: 0, p: 0 },
          { value: 90, p: 0.5 },
          { value: 100, p: 1 },
        ],
      },
    ],
    outcome: { outcome_value: 42 },
    other: { outcome_value: 99 },
  },
];

for (const { question, stated, outcome, other } of cases) {
  const { question_type = 'binary' } = question as { question_type?: string };
  t.test(`a preview of a ${question_type} question is what is then paid`, async (t) => {
    const id = await makeOpenQuestion(app, question);
    await makeForecasts(app, id, stated);
    t.match(await preview(id, outcome), { status: 409, body: { code: 'INVALID_TRANSITION' } });
    await act(app, id, 'close');
    const { status, body } = await preview(id, outcome);
    t.equal(status, 200);
    t.equal((await app.sql`select from resolutions where question_id = ${id}`).length, 0);
    await act(app, id, 'resolve', { ...outcome, resolution_note: 'As reported.' });
    const nets = await untilPaid(id, 1);
    const sumOf = (all: readonly number[]) => all.reduce((sum, net) => sum + net, 0);
    t.match(body, {
      predictions: nets.length,
      counted: nets.length,
      sum: sumOf(nets),
      lowest: nets[0],
      highest: nets.at(-1),
      winners: nets.filter((net) => net > 0).length,
      losers: nets.filter((net) => net < 0).length,
    });
    t.equal((await preview(id, outcome)).body.moved, 0, 'the same again moves nothing');
    const again = await preview(id, other);
    await act(app, id, 'resolve', { ...other, resolution_note: 'It was otherwise.' });
    t.equal(again.body.sum, sumOf(await untilPaid(id, 2)));
  });
}

t.test('the crowd is right where its headline was on the side that came about', async (t) => {
  const id = await makeOpenQuestion(app);
  await makeForecasts(app, id, [{ probability: 80 }]);
  await act(app, id, 'close');
  await until('the consensus', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
    return body.total_predictions === 1;
  });
  t.equal((await preview(id, { outcome: true })).body.crowd_was_right, true);
  t.equal((await preview(id, { outcome: false })).body.crowd_was_right, false);
  const empty = await makeOpenQuestion(app);
  await act(app, empty, 'close');
  t.match((await preview(empty, { outcome: true })).body, {
    predictions: 0,
    sum: 0,
    highest: null,
    lowest: null,
    crowd_was_right: null,
  });
});

t.test('what cannot be decided so is refused as it would be', async (t) => {
  const id = await makeOpenQuestion(app);
  await act(app, id, 'close');
  const wrong = await preview(id, { correct_options: ['One'] });
  t.match(wrong, { status: 400, body: { code: 'INVALID_OUTCOME' } });
  const absent = await preview('01a1f8db-ec60-711e-9e0d-233d8b99a44d', { outcome: true });
  t.match(absent, { status: 404, body: { code: 'QUESTION_NOT_FOUND' } });
});
