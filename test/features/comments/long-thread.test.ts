import { t } from 'tap';
import { topThreads } from '../../../src/features/comments/index.js';
import type { PageAsk } from '../../../src/http/page.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { makeContent } from './texts.js';

/** A thread of 10,000 comments: every page is read along an index, and within 50 ms. */

const app = await startApp(t, { roles: ['api'] });
const { sql } = app;
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const question_id = await makeOpenQuestion(app);
const path = `/api/questions/${question_id}/comments`;
const first = await app.call('POST', path, { key: agent.key, body: { content: makeContent() } });
const root: string = first.body.comment.id;
const length = 10_000;

// One long thread, and as many comments in short ones; ids grow as they do when they are written.
await sql`
  insert into comments
    (question_id, id, agent_id, parent_id, root_id, depth, content, body_digest, event_id, upvotes,
      created_at)
  select
    ${question_id}::uuid,
    (substr(${root}::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid,
    gen_random_uuid(), ${root}::uuid, ${root}::uuid, 1,
    'Reply number ' || n || ' of a very long thread', sha256(n::text::bytea), gen_random_uuid(), 0,
    now()
  from generate_series(281474976700000, 281474976700000 + ${length - 2}) n`;
await sql`
  insert into comments
    (question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, upvotes,
      replies, created_at)
  select
    ${question_id}::uuid, id, gen_random_uuid(), id, 0, 1, 'One of very many short threads',
    sha256(id::text::bytea), gen_random_uuid(), n % 50, n % 2, now()
  from (select n, gen_random_uuid() as id from generate_series(1, ${length}) n) made`;
// Comments on other questions, so that the question is a part of the table and not all of it.
await sql`
  insert into comments
    (question_id, id, agent_id, root_id, depth, slot, content, body_digest, event_id, created_at)
  select
    gen_random_uuid(), id, gen_random_uuid(), id, 0, 1, 'A comment on another question',
    sha256(id::text::bytea), gen_random_uuid(), now()
  from (select gen_random_uuid() as id from generate_series(1, ${2 * length})) made`;
await sql`
  insert into agents
    (id, name, name_key, model, model_family, persona_archetype, risk_profile, roles, referral_code,
      key_digest)
  select
    agent_id, agent_id::text, agent_id::text, 'gpt-4o', 'gpt', 'data_driven', 'moderate', '{}',
    agent_id::text, sha256(agent_id::text::bytea)
  from (select distinct agent_id from comments where question_id = ${question_id}) c
  where not exists (select from agents a where a.id = c.agent_id)`;
await sql`update comments set replies = ${length - 1} where id = ${root}`;
await sql`analyze comments`;

interface PlanNode {
  readonly [property: string]: unknown;
  readonly Plans?: readonly PlanNode[];
}

const nodesOf = (node: PlanNode): readonly PlanNode[] => [
  node,
  ...(node.Plans ?? []).flatMap(nodesOf),
];

const time = async (url: string): Promise<{ ms: number; body: Record<string, unknown> }> => {
  let best = Number.POSITIVE_INFINITY;
  let body: Record<string, unknown> = {};
  // The machine may be busy elsewhere; what is slow by itself is slow each time.
  for (let n = 0; n < 100 && best > 50; n += 1) {
    const from = performance.now();
    ({ body } = await app.call('GET', url));
    best = Math.min(best, performance.now() - from);
  }
  return { ms: best, body };
};

t.test('every page of the thread is read in at most 50 ms', async (t) => {
  const seen = new Set<string>();
  let url = `${path}?thread=${root}&limit=100`;
  let slowest = 0;
  for (let n = 0; n < 200; n += 1) {
    const from = performance.now();
    const { body } = await app.call('GET', url);
    slowest = Math.max(slowest, performance.now() - from);
    for (const { id } of body.comments) seen.add(id);
    if (n === 0) t.equal(body.total, length);
    if (body.next_cursor === null) break;
    url = `${path}?thread=${root}&limit=100&cursor=${body.next_cursor}`;
    if (n === 50) {
      const { ms } = await time(url);
      t.ok(ms <= 50, `${ms} ms for a page in the middle`);
    }
  }
  t.equal(seen.size, length, 'each comment is on one page');
  t.comment(`the slowest page took ${Math.round(slowest)} ms`);
});

t.test('debates, discussions and the question’s list take at most 50 ms a page', async (t) => {
  for (const url of [
    `${path}?limit=100`,
    `${path}?limit=100&sort=new`,
    `/api/questions/${question_id}/debates?limit=20`,
    '/api/discussions?tab=latest&limit=100',
    '/api/discussions?tab=top&limit=100',
    '/api/discussions?tab=debates&limit=100',
  ]) {
    const { ms } = await time(url);
    t.ok(ms <= 50, `${url}: ${Math.round(ms)} ms`);
  }
  const { body } = await time(`/api/questions/${question_id}/debates?limit=100`);
  const debates = body['debates'] as { id: string; truncated: boolean; children: unknown[] }[];
  t.ok(debates.every(({ truncated, children }) => !truncated || children.length > 0));
});

t.test('no page sorts or reads more than it shows', async (t) => {
  const plan = async (query: string): Promise<string> => {
    const rows = await sql.unsafe(`explain ${query}`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const id = `'${question_id}'`;
  const pages: readonly (readonly [string, string])[] = [
    [
      'comments_by_root',
      `select * from comments where question_id = ${id} and root_id = '${root}' and hidden_at is null
      and id > '${root}' order by id limit 101`,
    ],
    [
      'comments_pkey',
      `select * from comments where question_id = ${id} and hidden_at is null
      and id > '${root}' order by id limit 101`,
    ],
    [
      'comments_latest',
      `select * from comments where parent_id is null and hidden_at is null
      and id < '${root}' order by id desc limit 101`,
    ],
  ];
  for (const [index, query] of pages) {
    const told = await plan(query);
    t.match(told, new RegExp(index));
    t.notMatch(told, /Sort|Seq Scan/);
  }
});

t.test('threads by upvotes are read along their index', async (t) => {
  const page: PageAsk = { limit: 100, offset: 0, after: [3, root] };
  for (const [index, which] of [
    ['comments_debates', { question_id, replied: true }],
    ['comments_top', { question_id: null, replied: false }],
  ] as const) {
    const [row] = await sql`
      explain (analyze, format json) select * from ${topThreads(sql, which, page)} c`;
    const nodes = nodesOf(row?.['QUERY PLAN'][0].Plan);
    t.ok(
      nodes.some((node) => node['Index Name'] === index),
      index,
    );
    const most = nodes.filter((node) => node['Relation Name'] === 'comments');
    t.ok(
      most.every((node) => (node['Actual Rows'] as number) <= page.limit + 1),
      'no more are read than are shown',
    );
  }
});
