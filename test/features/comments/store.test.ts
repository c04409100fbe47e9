import type { Test } from 'tap';
import { pageOf } from '../../../src/features/comments/store.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { makeContent } from './texts.js';

/** Lists of comments are sorted by votes, and use an index however long they are. */

const env = { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' };
const app = await startApp(t, { roles: ['api'], env });
const { sql } = app;
const [owner, other] = [await makeHuman(app), await makeHuman(app)];
const question_id = await makeOpenQuestion(app);
const path = `/api/questions/${question_id}/comments`;
const write = async (): Promise<string> => {
  const { key } = await makeAgent(app, { human: owner });
  const { body } = await app.call('POST', path, { key, body: { content: makeContent() } });
  return body.comment.id;
};

interface Listed {
  readonly id: string;
  readonly upvotes: number;
}

const checkLists = async (t: Test): Promise<void> => {
  const stored = await sql<Listed[]>`
    select id, upvotes from comments where question_id = ${question_id}
    order by upvotes desc, id desc`;
  for (const [url, name] of [
    ['/api/discussions?tab=top&', 'discussions'],
    ['/api/discussions?tab=debates&', 'discussions'],
    [`/api/questions/${question_id}/debates?`, 'debates'],
  ] as const) {
    const all: Listed[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const { body } = await app.call('GET', `${url}limit=2${next && `&cursor=${next}`}`);
      all.push(...body[name].map(({ id, upvotes }: Listed) => ({ id, upvotes })));
      next = body.next_cursor;
    }
    t.same(all, [...stored], url);
    const { body } = await app.call('GET', `${url}limit=3&offset=1`);
    t.same(pluck(body[name], 'id'), pluck(stored.slice(1, 4), 'id'), `${url} from its second on`);
  }
};

t.test('lists by upvotes are exact while votes come and go', async (t) => {
  const ids = await Promise.all(Array.from({ length: 7 }, write));
  const voters = await Promise.all(
    Array.from({ length: 8 }, () => makeAgent(app, { human: other })),
  );
  await sql`update comments set replies = 1`;
  for (let round = 0; round < 4; round += 1) {
    const acts = Array.from({ length: 12 }, (_, k) => {
      const n = round * 12 + k;
      const { key = '' } = voters[(n * 5 + (n >> 3)) % voters.length] ?? {};
      const method = n % 4 === 3 ? 'DELETE' : 'POST';
      const id = ids[(n * n + (n >> 4)) % ids.length];
      return app.call(method, `/api/comments/${id}/upvote`, { key });
    });
    await Promise.all(acts);
    await checkLists(t);
  }
});

const length = 10_000;

/** Adds a thread of 10,000 comments, 10,000 short threads, and 20,000 on other questions. */
const addComments = async (root: string): Promise<void> => {
  await sql`
    insert into comments
      (question_id, id, agent_id, parent_id, root_id, depth, content, body_digest, event_id,
        upvotes, created_at)
    select
      ${question_id}::uuid,
      (substr(${root}::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid,
      gen_random_uuid(), ${root}::uuid, ${root}::uuid, 1,
      'Reply number ' || n || ' of a very long thread', sha256(n::text::bytea), gen_random_uuid(),
      0, now()
    from generate_series(281474976700000, 281474976700000 + ${length - 2}) n`;
  await sql`
    insert into comments
      (question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, upvotes,
        replies, created_at)
    select
      case when n <= ${length} then ${question_id}::uuid else gen_random_uuid() end,
      id, gen_random_uuid(), id, 0, 1, 'One of very many short threads',
      sha256(id::text::bytea), gen_random_uuid(), n % 50, n % 2, now()
    from (select n, gen_random_uuid() as id from generate_series(1, ${3 * length}) n) made`;
  await sql`
    insert into agents
      (id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
        referral_code, key_digest)
    select
      agent_id, agent_id::text, agent_id::text, 'gpt-4o', 'gpt', 'data_driven', 'moderate', '{}',
      agent_id::text, sha256(agent_id::text::bytea)
    from (select distinct agent_id from comments) c
    where not exists (select from agents a where a.id = c.agent_id)`;
  await sql`update comments set replies = ${length - 1} where id = ${root}`;
  await sql`analyze comments`;
};

/** Times the fastest of up to 100 tries, because the machine may be busy. */
const timeAtBest = async (url: string): Promise<number> => {
  let best = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 100 && best > 50; n += 1) {
    const from = performance.now();
    await app.call('GET', url);
    best = Math.min(best, performance.now() - from);
  }
  return best;
};

t.test('every page of a long thread and of long lists is read in at most 50 ms', async (t) => {
  const root = await write();
  await addComments(root);
  const seen = new Set<string>();
  for (let next: string | null = ''; next !== null; ) {
    const url = `${path}?thread=${root}&limit=100${next && `&cursor=${next}`}`;
    const { body } = await app.call('GET', url);
    for (const { id } of body.comments) seen.add(id);
    if (next === '') t.equal(body.total, length);
    if (seen.size === length / 2) t.ok((await timeAtBest(url)) <= 50, 'a page in the middle');
    next = body.next_cursor;
  }
  t.equal(seen.size, length, 'each comment is on one page');
  for (const url of [
    `${path}?limit=100`,
    `${path}?limit=100&sort=new`,
    `/api/questions/${question_id}/debates?limit=20`,
    ...['latest', 'top', 'debates'].map((tab) => `/api/discussions?tab=${tab}&limit=100`),
  ]) {
    const ms = await timeAtBest(url);
    t.ok(ms <= 50, `${url}: ${Math.round(ms)} ms`);
  }
  const { body } = await app.call('GET', `/api/questions/${question_id}/debates?limit=100`);
  const debates = body.debates as { truncated: boolean; children: unknown[] }[];
  t.ok(debates.every(({ truncated, children }) => !truncated || children.length > 0));
});

interface PlanNode {
  readonly [property: string]: unknown;
  readonly Plans?: readonly PlanNode[];
}

const nodesOf = (node: PlanNode): readonly PlanNode[] => [
  node,
  ...(node.Plans ?? []).flatMap(nodesOf),
];

t.test('threads by upvotes are read along their index, and no more than are shown', async (t) => {
  const page = { limit: 100, offset: 0, after: [3, question_id] };
  for (const [index, filter] of [
    ['comments_debates', { question_id, threads: 'replied' }],
    ['comments_top', { threads: 'all' }],
  ] as const) {
    const [row] = await sql`
      explain (analyze, format json) select * from ${pageOf(sql, filter, 'top', page)} c`;
    const nodes = nodesOf(row?.['QUERY PLAN'][0].Plan);
    const names = nodes.map((node) => node['Index Name']);
    t.ok(names.includes(index), index);
    const read = nodes.filter((node) => node['Relation Name'] === 'comments');
    t.ok(read.every((node) => (node['Actual Rows'] as number) <= page.limit + 1));
  }
});
