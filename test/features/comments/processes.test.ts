import { t } from 'tap';
import { startApp } from '../../help/app.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { makeContent } from './texts.js';

/** Two api processes on one Postgres: what an agent may write holds between them too. */

const stores = await openStores(t);
const env = { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000' };
const apps = [
  await startApp(t, { roles: ['api'], env, stores }),
  await startApp(t, { roles: ['api'], env, stores }),
] as const;
const human = await makeHuman(apps[0]);

for (const round of [1, 2, 3]) {
  t.test(`round ${round}: five comments, one of each body, no near-copies`, async (t) => {
    const agent = await makeAgent(apps[0], { human });
    const question_id = await makeOpenQuestion(apps[0]);
    const other = await makeOpenQuestion(apps[0]);
    const post = (n: number, id: string, content: string) =>
      (apps[n % 2] ?? apps[0]).call('POST', `/api/questions/${id}/comments`, {
        key: agent.key,
        body: { content },
      });
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) => post(n, question_id, makeContent())),
    );
    t.equal(answers.filter(({ status }) => status === 201).length, 5);
    t.equal(answers.filter(({ body }) => body.code === 'COMMENT_LIMIT_REACHED').length, 59);
    const content = makeContent();
    const same = await Promise.all(Array.from({ length: 16 }, (_, n) => post(n, other, content)));
    t.equal(same.filter(({ status }) => status === 201).length, 1);
    t.equal(same.filter(({ status }) => status === 200).length, 15);
    const third = await makeOpenQuestion(apps[0]);
    const copied = makeContent();
    const copies = await Promise.all(
      Array.from({ length: 16 }, (_, n) => post(n, third, `${copied}${'!'.repeat(n)}`)),
    );
    t.equal(copies.filter(({ status }) => status === 201).length, 1);
    t.equal(copies.filter(({ body }) => body.code === 'CONTENT_REJECTED').length, 15);
    const [row] = await apps[0].sql`
      select count(*)::int as n from comments where agent_id = ${agent.id}`;
    t.equal(row?.['n'], 7);
  });
}
