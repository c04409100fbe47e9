import { t } from 'tap';
import { findDifferences } from '../../src/tools/verify.js';
import { makeContent } from '../features/comments/texts.js';
import { startApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { until } from '../help/until.js';

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' },
});
const { deps } = await openParts(t, { stores: app.stores });
const parts = { sql: deps.sql, redis: deps.redis, prefix: app.stores.redis_prefix };
const rest = () =>
  until('nothing differs', async () => (await findDifferences(parts)).length === 0);

const post = async (agent: Agent, path: string): Promise<string> => {
  const body = { content: makeContent() };
  const answer = await app.call('POST', path, { key: agent.key, body });
  return answer.body.comment?.id ?? answer.body.code;
};

t.test('a race of comments, replies, votes, linking and hiding leaves nothing wrong', async (t) => {
  const people = await Promise.all([makeHuman(app), makeHuman(app), makeHuman(app)]);
  const [first, second] = people;
  const agents = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      const human = people[n % 3];
      return human === undefined ? makeAgent(app) : makeAgent(app, { human });
    }),
  );
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}/comments`;
  const ids = await Promise.all(agents.map((agent) => post(agent, path)));
  const agentAt = (n: number) => agents[n % agents.length] as Agent;
  const idAt = (n: number) => ids[n % ids.length] as string;
  const hide = (id: string) =>
    app.call('POST', `/api/admin/comments/${id}/hide`, {
      admin: true,
      body: { reason: 'It names a private person.' },
    });
  const moved = agentAt(0);
  await app.call('DELETE', `/api/me/agents/${moved.id}`, { token: first?.token ?? '' });
  await Promise.all([
    ...Array.from({ length: 120 }, (_, n) =>
      app.call(n % 5 === 0 ? 'DELETE' : 'POST', `/api/comments/${idAt(n * 7)}/upvote`, {
        key: agentAt(n + 1 + Math.floor(n / 12)).key,
      }),
    ),
    ...Array.from({ length: 60 }, (_, n) =>
      post(agentAt(n), n % 3 === 0 ? path : `/api/comments/${idAt(n * 11)}/reply`),
    ),
    app.call('POST', '/api/me/agents', {
      token: second?.token ?? '',
      body: { api_key: moved.key },
    }),
    ...[2, 5, 8].map((n) => hide(idAt(n))),
  ]);
  await rest();
  t.same(await findDifferences(parts), []);
  const [row] = await app.sql<{ votes: number; hidden: number }[]>`
    select
      (select count(*)::int from votes) as votes,
      (select count(*)::int from comments where hidden_at is not null) as hidden`;
  t.ok((row?.votes ?? 0) > 10);
  t.equal(row?.hidden, 3);
});

t.test('what is wrong in a conversation is found', async (t) => {
  await rest();
  await app.stop();
  const undo = new Error('undo');
  const finds = async (what: RegExp, breaking: string): Promise<void> => {
    let found: readonly string[] = [];
    await parts.sql
      .begin(async (tx) => {
        await tx.unsafe(breaking);
        const inner = Object.assign(
          (...args: never[]) => (tx as never as CallableFunction)(...args),
          { begin: (_: string, work: (inner: typeof tx) => unknown) => work(tx) },
        );
        found = await findDifferences({ ...parts, sql: inner as never });
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
    t.ok(
      found.some((line) => what.test(line)),
      `${breaking} → ${found.join(' | ')}`,
    );
  };
  const one = '(select id from comments where hidden_at is null order by id limit 1)';
  await finds(
    /counts \d+ comments instead of/,
    `update comments set hidden_at = now() where id = ${one}`,
  );
  await finds(
    /counts \d+ replies instead of/,
    `update comments set replies = replies + 1 where id = ${one}`,
  );
  await finds(/in its thread/, 'update comments set depth = depth + 1 where depth = 1');
  await finds(/has no event/, "delete from events where event = 'comment.created'");
  await finds(
    /comment .* counts \d+ upvotes/,
    `update comments set upvotes = upvotes + 1 where id = ${one}`,
  );
  await finds(/is about no comment/, 'update votes set subject_id = gen_random_uuid()');
  await finds(
    /of the same owner/,
    'update agents set owner_id = (select id from humans limit 1), linked_at = now()',
  );
  await finds(
    /has \d+ comments on/,
    `drop index comments_slots;
    insert into comments (question_id, id, agent_id, root_id, depth, slot, content, body_digest,
      event_id, created_at)
    select question_id, m.id, agent_id, m.id, 0, 1, content, body_digest, event_id, now()
    from (select * from comments where slot = 1 order by id limit 1) c
    cross join (select gen_random_uuid() as id from generate_series(1, 6)) m`,
  );
  await finds(/board debaters .* agent/, 'update comments set upvotes = upvotes + 7');
  const board = `${parts.prefix}:{boards}:debaters:all:all`;
  const [, member] = await parts.redis.zrange(board, '0', '1');
  await parts.redis.zrem(board, member as string);
  t.match(await findDifferences(parts), [/board debaters of all:all: agent .* has nothing/]);
  await parts.redis.del(board);
  t.match(await findDifferences(parts), [/no board debaters of all:all/]);
});
