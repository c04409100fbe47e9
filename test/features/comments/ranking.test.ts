import { type Test, t } from 'tap';
import { rankMoved } from '../../../src/features/comments/top-store.js';
import { castAll } from '../../../src/features/votes/store.js';
import type { Sql } from '../../../src/kit/pg/client.js';
import { startApp, type TestApp } from '../../help/app.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { until } from '../../help/until.js';
import { untilLocked } from '../../help/until-locked.js';
import { makeContent } from './texts.js';

/** Threads by upvotes: their order is right whether their ranks have followed the votes or not. */

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

const isRanked = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ behind: number; marked: number }[]>`
    select
      (select count(*)::int from comments where upvotes <> ranked_upvotes) as behind,
      (select count(*)::int from unranked_comments) as marked`;
  return row?.behind === 0 && row.marked === 0;
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

t.test('lists by upvotes are exact before, while and after ranks follow', async (t) => {
  const app = await startApp(t, { roles: ['api'], env });
  const { question_id, ids, voters } = await makeWorld(app, 7);
  const act = (n: number): Promise<unknown> => {
    const { key } = voters[(n * 5 + (n >> 3)) % voters.length] as Agent;
    const method = n % 4 === 3 ? 'DELETE' : 'POST';
    const id = ids[(n * n + (n >> 4)) % ids.length];
    return app.call(method, `/api/comments/${id}/upvote`, { key });
  };
  let behind = 0;
  for (let round = 0; round < 6; round += 1) {
    await Promise.all(Array.from({ length: 12 }, (_, n) => act(round * 24 + n)));
    behind += (await isRanked(app.sql)) ? 0 : 1;
    await checkLists(t, app, question_id);
    const votes = Array.from({ length: 12 }, (_, n) => act(round * 24 + 12 + n));
    await Promise.all([...votes, rankMoved(app.sql, 3), rankMoved(app.sql, 3)]);
    await checkLists(t, app, question_id);
  }
  t.ok(behind > 2, `${behind} times ranks were behind`);
  while ((await rankMoved(app.sql, 3)) > 0);
  t.equal(await isRanked(app.sql), true);
  await checkLists(t, app, question_id);
});

t.test('a vote under way is waited for and ranked as well', async (t) => {
  const app = await startApp(t, { roles: ['api'], env });
  const { ids, voters } = await makeWorld(app, 1);
  const [subject_id = ''] = ids;
  const ballotOf = ({ id: agent_id }: Agent) => {
    const how = { kind: 'comment', value: 1, withdraw: false } as const;
    return { ...how, subject_id, agent_id, at: new Date() };
  };
  await app.sql.begin((tx) => castAll(tx, [ballotOf(voters[0] as Agent)]));
  let ranked: Promise<number> | undefined;
  await app.sql.begin(async (tx) => {
    await castAll(tx, [ballotOf(voters[1] as Agent)]);
    ranked = rankMoved(app.sql, 10);
    await untilLocked('the keeper waits for the vote', tx);
  });
  t.equal(await ranked, 1);
  t.equal(await isRanked(app.sql), true);
  const [row] = await app.sql`select ranked_upvotes from comments where id = ${subject_id}`;
  t.equal(row?.['ranked_upvotes'], 2);
});

t.test('a reply has no rank; the timer ranks threads', async (t) => {
  const app = await startApp(t, { roles: ['api', 'timer'], env });
  const { question_id, ids, voters } = await makeWorld(app, 2);
  await app.sql`
    update comments set parent_id = ${ids[0] ?? ''}, root_id = ${ids[0] ?? ''}, depth = 1, slot = null
    where id = ${ids[1] ?? ''}`;
  for (const id of ids) {
    for (const { key } of voters) await app.call('POST', `/api/comments/${id}/upvote`, { key });
  }
  await until('the thread to be ranked', async () => {
    const left = await app.sql`select from unranked_comments`;
    return left.length === 0;
  });
  const rows = await app.sql`
    select upvotes, ranked_upvotes, depth
    from comments
    where question_id = ${question_id}
    order by depth`;
  t.same(
    [...rows],
    [
      { upvotes: 8, ranked_upvotes: 8, depth: 0 },
      { upvotes: 8, ranked_upvotes: 0, depth: 1 },
    ],
  );
});
