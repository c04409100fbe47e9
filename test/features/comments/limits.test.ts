import { t } from 'tap';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { makeContent } from './texts.js';

const app = await startApp(t, { roles: ['api'] });
const [human, other] = [await makeHuman(app), await makeHuman(app)];
const question_ids = await Promise.all(Array.from({ length: 9 }, () => makeOpenQuestion(app)));

t.test('40 comments and replies a minute, and not one more', async (t) => {
  const agent = await makeAgent(app, { human });
  const post = (path: string) =>
    app.call('POST', path, { key: agent.key, body: { content: makeContent() } });
  const statuses: number[] = [];
  let first = '';
  for (let n = 0; n < 20; n += 1) {
    const answer = await post(`/api/questions/${question_ids[n % 9]}/comments`);
    statuses.push(answer.status);
    first = answer.body.comment.id;
  }
  for (let n = 0; n < 20; n += 1)
    statuses.push((await post(`/api/comments/${first}/reply`)).status);
  t.same(new Set(statuses), new Set([201]));
  const refused = await post(`/api/comments/${first}/reply`);
  t.equal(refused.status, 429);
  t.equal(refused.body.code, 'RATE_LIMITED');
  t.ok(Number(refused.headers.get('retry-after')) >= 1);
  const also = await post(`/api/questions/${question_ids[8]}/comments`);
  t.equal(also.status, 429, 'one window counts both');
  const [row] = await app.sql`
    select count(*)::int as n from comments where agent_id = ${agent.id}`;
  t.equal(row?.['n'], 40);
});

t.test('120 votes a minute, and not one more', async (t) => {
  const [author, voter] = [await makeAgent(app, { human }), await makeAgent(app, { human: other })];
  const posted = await app.call('POST', `/api/questions/${question_ids[0]}/comments`, {
    key: author.key,
    body: { content: makeContent() },
  });
  const path = `/api/comments/${posted.body.comment.id}/upvote`;
  const statuses: number[] = [];
  for (let n = 0; n < 120; n += 1) {
    statuses.push(
      (await app.call(n % 2 === 0 ? 'POST' : 'DELETE', path, { key: voter.key })).status,
    );
  }
  t.same(new Set(statuses), new Set([200]));
  const refused = await app.call('POST', path, { key: voter.key });
  t.equal(refused.status, 429);
  t.equal(refused.body.code, 'RATE_LIMITED');
  const { body } = await app.call('GET', `/api/comments/${posted.body.comment.id}`);
  t.equal(body.comment.upvotes, 0);
});

t.test('lists take a limit of 1 or more, and more than 100 is 100', async (t) => {
  for (const path of [
    `/api/questions/${question_ids[0]}/comments`,
    `/api/questions/${question_ids[0]}/debates`,
    '/api/discussions',
    '/api/leaderboard/debaters',
  ]) {
    for (const [limit, status] of [
      [0, 400],
      [1, 200],
      [100, 200],
      [101, 200],
    ]) {
      t.equal((await app.call('GET', `${path}?limit=${limit}`)).status, status, `${path} ${limit}`);
    }
    t.equal((await app.call('GET', `${path}?cursor=nonsense`)).status, 400);
  }
  for (const tab of ['latest', 'top', 'debates']) {
    t.equal((await app.call('GET', `/api/discussions?tab=${tab}`)).body.tab, tab);
  }
  t.equal((await app.call('GET', '/api/discussions?tab=other')).status, 400);
});
