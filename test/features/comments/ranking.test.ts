import { type Test, t } from 'tap';
import { startApp, type TestApp } from '../../help/app.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { makeContent } from './texts.js';

/** Threads by upvotes: every page is in the order of the votes. */

const env = { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' };

const makeWorld = async (app: TestApp, threads: number) => {
  const [owner, other] = [await makeHuman(app), await makeHuman(app)];
  const question_id = await makeOpenQuestion(app);
  const write = async (): Promise<string> => {
    const { key } = await makeAgent(app, { human: owner });
    const body = { content: makeContent() };
    return (await app.call('POST', `/api/questions/${question_id}/comments`, { key, body })).body
      .comment.id;
  };
  const ids = await Promise.all(Array.from({ length: threads }, write));
  const voters = await Promise.all(
    Array.from({ length: 8 }, () => makeAgent(app, { human: other })),
  );
  await app.sql`update comments set replies = 1 where question_id = ${question_id}`;
  return { question_id, ids, voters };
};

interface Listed {
  readonly id: string;
  readonly upvotes: number;
}

const byVotes = (one: Listed, other: Listed): number =>
  other.upvotes - one.upvotes || (other.id < one.id ? -1 : 1);

/** All pages of a list, two threads a page. */
const listAll = async (app: TestApp, url: string, name: string): Promise<readonly Listed[]> => {
  const all: Listed[] = [];
  let next = '';
  do {
    const { body } = await app.call('GET', `${url}limit=2${next}`);
    for (const { id, upvotes } of body[name]) all.push({ id, upvotes });
    next = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`;
  } while (next !== '');
  return all;
};

const checkLists = async (t: Test, app: TestApp, question_id: string): Promise<void> => {
  const stored = await app.sql<Listed[]>`
    select id, upvotes from comments where question_id = ${question_id}`;
  const wanted = [...stored].sort(byVotes);
  for (const [url, name] of [
    ['/api/discussions?tab=top&', 'discussions'],
    ['/api/discussions?tab=debates&', 'discussions'],
    [`/api/questions/${question_id}/debates?`, 'debates'],
  ] as const) {
    t.same(await listAll(app, url, name), wanted, url);
    const { body } = await app.call('GET', `${url}limit=3&offset=1`);
    t.same(
      body[name].map(({ id }: Listed) => id),
      wanted.slice(1, 4).map(({ id }) => id),
      `${url} from its second thread on`,
    );
  }
};

t.test('lists by upvotes are exact while votes come and go', async (t) => {
  const app = await startApp(t, { roles: ['api'], env });
  const { question_id, ids, voters } = await makeWorld(app, 7);
  const act = (n: number): Promise<unknown> => {
    const { key } = voters[(n * 5 + (n >> 3)) % voters.length] as Agent;
    const method = n % 4 === 3 ? 'DELETE' : 'POST';
    const id = ids[(n * n + (n >> 4)) % ids.length];
    return app.call(method, `/api/comments/${id}/upvote`, { key });
  };
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(Array.from({ length: 12 }, (_, n) => act(round * 12 + n)));
    await checkLists(t, app, question_id);
  }
});
