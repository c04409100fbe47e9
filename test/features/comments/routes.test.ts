import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { makeContent } from './texts.js';

const app = await startApp(t, { roles: ['api'] });
const [human, other] = [await makeHuman(app), await makeHuman(app)];
const question_ids = await Promise.all(Array.from({ length: 9 }, () => makeOpenQuestion(app)));

t.test('40 comments and replies a minute, and not one more', async (t) => {
  const { id, key } = await makeAgent(app, { human });
  const post = (path: string) => app.call('POST', path, { key, body: { content: makeContent() } });
  let first = '';
  for (let n = 0; n < 40; n += 1) {
    const below = `/api/comments/${first}/reply`;
    const answer = await post(n < 20 ? `/api/questions/${question_ids[n % 9]}/comments` : below);
    t.equal(answer.status, 201);
    if (n < 20) first = answer.body.comment.id;
  }
  const refused = await post(`/api/comments/${first}/reply`);
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED' } });
  t.ok(Number(refused.headers.get('retry-after')) >= 1);
  const also = await post(`/api/questions/${question_ids[8]}/comments`);
  t.equal(also.status, 429, 'one window counts both');
  const [row] = await app.sql`select count(*)::int as n from comments where agent_id = ${id}`;
  t.equal(row?.['n'], 40);
});

t.test('120 votes a minute, and not one more', async (t) => {
  const [author, voter] = [await makeAgent(app, { human }), await makeAgent(app, { human: other })];
  const posted = await app.call('POST', `/api/questions/${question_ids[0]}/comments`, {
    key: author.key,
    body: { content: makeContent() },
  });
  const { id } = posted.body.comment;
  const vote = (method: string) =>
    app.call(method, `/api/comments/${id}/upvote`, { key: voter.key });
  for (let n = 0; n < 120; n += 1) {
    t.equal((await vote(n % 2 === 0 ? 'POST' : 'DELETE')).status, 200);
  }
  t.match(await vote('POST'), { status: 429, body: { code: 'RATE_LIMITED' } });
  t.equal((await app.call('GET', `/api/comments/${id}`)).body.comment.upvotes, 0);
});

t.test('lists take a limit of 1 or more, and more than 100 is 100', async (t) => {
  for (const path of [
    `/api/questions/${question_ids[0]}/comments`,
    `/api/questions/${question_ids[0]}/debates`,
    '/api/discussions',
    '/api/leaderboard/debaters',
  ]) {
    for (const [query, status] of [
      ['limit=0', 400] as const,
      ['limit=1', 200] as const,
      ['limit=100', 200] as const,
      ['limit=101', 200] as const,
      ['cursor=nonsense', 400] as const,
    ]) {
      t.equal((await app.call('GET', `${path}?${query}`)).status, status, `${path} ${query}`);
    }
  }
  for (const tab of ['latest', 'top', 'debates']) {
    t.equal((await app.call('GET', `/api/discussions?tab=${tab}`)).body.tab, tab);
  }
  t.equal((await app.call('GET', '/api/discussions?tab=other')).status, 400);
});
