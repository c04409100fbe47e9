import { t } from 'tap';
import { firstIdAt } from '../../../src/kit/ids.js';
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

const makePoster = async () => {
  const agent = await makeAgent(apps[0], { human });
  const question_ids = await Promise.all([1, 2, 3].map(() => makeOpenQuestion(apps[0])));
  let posted = 0;
  const post = (n: 0 | 1, content = makeContent(), headers = {}) => {
    const id = question_ids[posted % 3];
    posted += 1;
    const asked = { key: agent.key, body: { content }, headers };
    return apps[n].call('POST', `/api/questions/${id}/comments`, asked);
  };
  return { agent, post };
};

t.test('a process that knows an agent compares with what others stored as well', async (t) => {
  const { post } = await makePoster();
  const texts = Array.from({ length: 4 }, makeContent);
  for (const [n, text] of texts.entries()) {
    t.equal((await post(n === 2 ? 1 : 0, text)).status, 201);
  }
  for (const text of texts) {
    for (const n of [0, 1] as const) {
      t.equal((await post(n, `${text}!${'?'.repeat(n)}`)).body.code, 'CONTENT_REJECTED');
    }
  }
  t.equal((await post(0)).status, 201);
  t.equal((await post(1)).status, 201);
});

t.test('links count in what a copy is compared with, and not in the copy', async (t) => {
  const { post } = await makePoster();
  const link = 'https://example.com/a/page/about/rates';
  const text = `${makeContent()} ${link}`;
  t.equal((await post(0)).status, 201);
  t.equal((await post(0, text)).status, 201);
  const known = (await post(0, `${text}!`)).body.code;
  t.equal((await post(1, `${text}?`)).body.code, known, 'as a process says that reads it');
});

t.test('a comment sorts behind all that its agent wrote, whatever the clocks say', async (t) => {
  const { agent, post } = await makePoster();
  t.equal((await post(0)).status, 201);
  const ahead = firstIdAt(Date.now() + 3_600_000);
  await apps[0].sql`
    insert into comments
      (question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, created_at)
    select question_id, ${ahead}, agent_id, ${ahead}, 0, 2, 'Of a clock that is ahead of others.',
      sha256('ahead'), gen_random_uuid(), now()
    from comments
    where agent_id = ${agent.id}`;
  let last = ahead;
  for (const n of [0, 1, 0, 0] as const) {
    const { status, body } = await post(n);
    t.equal(status, 201);
    const { id } = body.comment;
    t.ok(id > last, `${id} after ${last}`);
    last = id;
    t.match((await apps[1].call('GET', `/api/comments/${id}`)).body.comment, { root_id: id });
    const [event] = await apps[0].sql`
      select body::json -> 'data' ->> 'comment_id' as id
      from outbox
      where body like ${`%${id}%`}`;
    t.equal(event?.['id'], id);
  }
});

t.test('what is asked of a comment is asked of known agents too', async (t) => {
  const { agent, post } = await makePoster();
  const first = await post(0);
  const headers = { 'Idempotency-Key': `key-${agent.id}` };
  const content = makeContent();
  const kept = await post(0, content, headers);
  t.equal(kept.status, 201);
  const { question_id } = kept.body.comment;
  const again = await apps[1].call('POST', `/api/questions/${question_id}/comments`, {
    ...{ key: agent.key, body: { content }, headers },
  });
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.same(again.body, kept.body);
  const reply = () =>
    apps[0].call('POST', `/api/comments/${first.body.comment.id}/reply`, {
      ...{ key: agent.key, body: { content: makeContent() } },
    });
  await apps[0].sql`update accounts set balance = 3999 where agent_id = ${agent.id}`;
  t.equal((await reply()).body.code, 'TIER_REQUIRED');
  await apps[0].sql`update accounts set balance = 4000 where agent_id = ${agent.id}`;
  t.equal((await reply()).status, 201);
});
