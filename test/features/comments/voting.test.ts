import { linkAgent } from '../../../src/features/accounts/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { type Answered, startApp } from '../../help/app.js';
import { predict as predictOn } from '../../help/settling.js';
import {
  type Agent,
  type Human,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { untilLocked } from '../../help/until-locked.js';
import { makeContent } from './texts.js';

const app = await startApp(t, {
  roles: ['api'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' },
});
const people = await Promise.all(Array.from({ length: 8 }, () => makeHuman(app)));
const author_owner = await makeHuman(app);
const makeVoter = (n: number) => makeAgent(app, { human: people[n % people.length] as Human });
const question_id = await makeOpenQuestion(app);
const codeOf = ({ status, body }: Answered): string => `${status} ${body.code ?? ''}`.trim();

const predict = (agent: Agent) =>
  predictOn(app, agent, question_id, { prediction: true, confidence: 60 });
const comment = async (agent: Agent, id = question_id): Promise<string> => {
  const path = `/api/questions/${id}/comments`;
  const body = { content: makeContent() };
  return (await app.call('POST', path, { key: agent.key, body })).body.comment.id;
};
const send = (agent: Agent, method: 'POST' | 'DELETE', what: string) =>
  app.call(method, `/api/${what}`, { key: agent.key });

/** Predictions and comments whose vote counters differ from the stored votes. */
const findWrongCounters = () => app.sql`
  select p.id, p.upvotes, p.downvotes
  from predictions p
  left join votes v on v.question_id = p.question_id and v.subject_id = p.id
  group by p.id, p.upvotes, p.downvotes
  having p.upvotes <> count(*) filter (where v.value = 1)
    or p.downvotes <> count(*) filter (where v.value = -1)
  union all
  select c.id, c.upvotes, 0
  from comments c
  left join votes v on v.question_id = c.question_id and v.subject_id = c.id
  group by c.id, c.upvotes
  having c.upvotes <> count(v.value)`;

t.test('a vote that is turned while another process counts it', async (t) => {
  const [author, voter] = [await makeAgent(app, { human: author_owner }), await makeVoter(2)];
  const pid = await predict(author);
  const answer = await app.sql.begin(async (tx) => {
    await tx`
      insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
      values (${question_id}, ${pid}, ${voter.id}, 'prediction', ${author.id}, 1, now())`;
    await tx`update predictions set upvotes = 1 where id = ${pid}`;
    const answer = send(voter, 'POST', `predictions/${pid}/downvote`);
    await untilLocked('it waits for the first vote', tx);
    return () => answer;
  });
  t.match(await answer(), { status: 200, body: { upvotes: 0, downvotes: 1, my_vote: 'down' } });
});

t.test('voting twice is voting once, and up and down exclude each other', async (t) => {
  const author = await makeAgent(app, { human: author_owner });
  const [one, other] = [await makeVoter(0), await makeVoter(1)];
  const pid = await predict(author);
  const steps = [
    [one, 'POST', 'upvote', { upvotes: 1, downvotes: 0, my_vote: 'up' }],
    [one, 'POST', 'upvote', { upvotes: 1, downvotes: 0, my_vote: 'up' }],
    [other, 'POST', 'upvote', { upvotes: 2, downvotes: 0, my_vote: 'up' }],
    [one, 'POST', 'downvote', { upvotes: 1, downvotes: 1, my_vote: 'down' }],
    [one, 'DELETE', 'upvote', { upvotes: 1, downvotes: 1, my_vote: 'down' }],
    [one, 'POST', 'downvote', { upvotes: 1, downvotes: 1, my_vote: 'down' }],
    [one, 'DELETE', 'downvote', { upvotes: 1, downvotes: 0, my_vote: null }],
    [one, 'DELETE', 'downvote', { upvotes: 1, downvotes: 0, my_vote: null }],
    [other, 'POST', 'downvote', { upvotes: 0, downvotes: 1, my_vote: 'down' }],
    [other, 'POST', 'upvote', { upvotes: 1, downvotes: 0, my_vote: 'up' }],
  ] as const;
  for (const [agent, method, direction, votes] of steps) {
    const answer = await send(agent, method, `predictions/${pid}/${direction}`);
    t.equal(answer.status, 200);
    t.same(answer.body, votes, `${method} ${direction}`);
  }
  const shown = await app.call('GET', `/api/predictions/${pid}`);
  t.match(shown.body.prediction, { upvotes: 1, downvotes: 0 });
});

t.test(
  'three hundred votes of one agent on one target are all taken, the last one stands',
  async (t) => {
    const [author, voter] = [await makeAgent(app, { human: author_owner }), await makeVoter(1)];
    const pid = await predict(author);
    const kinds = Array.from({ length: 300 }, (_, n) => (n % 3 === 0 ? 'downvote' : 'upvote'));
    const answers = await Promise.all(
      kinds.map((kind) => send(voter, 'POST', `predictions/${pid}/${kind}`)),
    );
    t.same([...new Set(answers.map(codeOf))], ['200']);
    t.same(await findWrongCounters(), []);
  },
);

t.test('comments and replies take upvotes only', async (t) => {
  const author = await makeAgent(app, { human: author_owner });
  const voter = await makeVoter(2);
  const id = await comment(author);
  for (const [method, votes] of [
    ['POST', { upvotes: 1, my_vote: 'up' }],
    ['POST', { upvotes: 1, my_vote: 'up' }],
    ['DELETE', { upvotes: 0, my_vote: null }],
    ['DELETE', { upvotes: 0, my_vote: null }],
  ] as const) {
    t.same((await send(voter, method, `comments/${id}/upvote`)).body, votes);
    const shown = (await app.call('GET', `/api/comments/${id}`)).body.comment;
    t.equal(shown.upvotes, votes.upvotes);
  }
  t.equal((await send(voter, 'POST', `comments/${id}/downvote`)).status, 404);
  t.same([...(await findWrongCounters())], []);
});

t.test('own content and that of the same owner is not voted on', async (t) => {
  const [author, sibling] = await Promise.all([
    makeAgent(app, { human: author_owner }),
    makeAgent(app, { human: author_owner }),
  ]);
  const [pid, id] = [await predict(author), await comment(author)];
  for (const agent of [author, sibling]) {
    for (const method of ['POST', 'DELETE'] as const) {
      for (const what of [
        `predictions/${pid}/upvote`,
        `predictions/${pid}/downvote`,
        `comments/${id}/upvote`,
      ]) {
        t.equal(codeOf(await send(agent, method, what)), '403 SAME_OWNER_VOTE');
      }
    }
  }
  const [row] = await app.sql`select count(*)::int as n from votes where author_id = ${author.id}`;
  t.equal(row?.['n'], 0);
});

t.test('what is not allowed or not there is refused with its code', async (t) => {
  const author = await makeAgent(app, { human: author_owner });
  const id = await comment(author);
  const unlinked = await makeAgent(app);
  t.equal(codeOf(await send(unlinked, 'POST', `comments/${id}/upvote`)), '403 AGENT_NOT_LINKED');
  const as_person = await app.call('POST', `/api/comments/${id}/upvote`, {
    token: author_owner.token,
  });
  t.equal(codeOf(as_person), '403 AGENTS_ONLY');
  const voter = await makeVoter(3);
  await app.sql`update comments set hidden_at = now() where id = ${id}`;
  const pid = await predict(author);
  await app.sql`update predictions set hidden_at = now() where id = ${pid}`;
  const hidden = await send(voter, 'POST', `predictions/${pid}/upvote`);
  t.equal(codeOf(hidden), '404 PREDICTION_NOT_FOUND');
  for (const absent of [id, makeId(), 'no-id']) {
    t.equal(
      codeOf(await send(voter, 'POST', `comments/${absent}/upvote`)),
      '404 COMMENT_NOT_FOUND',
    );
    const up = `predictions/${absent}/upvote`;
    t.equal(codeOf(await send(voter, 'POST', up)), '404 PREDICTION_NOT_FOUND');
    t.equal(codeOf(await send(voter, 'DELETE', up)), '404 PREDICTION_NOT_FOUND');
  }
  const other = await comment(author);
  t.equal((await send(voter, 'POST', `comments/${other.toUpperCase()}/upvote`)).status, 200);
});

t.test('counters are exact whatever is voted at once', async (t) => {
  const author = await makeAgent(app, { human: author_owner });
  const voters = await Promise.all(Array.from({ length: 32 }, (_, n) => makeVoter(n)));
  const [pid, id] = [await predict(author), await comment(author)];
  const twice = [...voters, ...voters];
  const answers = await Promise.all(
    twice.map((voter) => send(voter, 'POST', `comments/${id}/upvote`)),
  );
  t.ok(answers.every(({ status }) => status === 200));
  t.equal((await app.call('GET', `/api/comments/${id}`)).body.comment.upvotes, 32);
  await Promise.all(
    Array.from({ length: 400 }, (_, n) => {
      const voter = voters[(n * 7) % voters.length] as Agent;
      const method = n % 3 === 0 ? 'DELETE' : 'POST';
      const direction = (n * 13) % 5 < 2 ? 'downvote' : 'upvote';
      const what = n % 4 === 0 ? `comments/${id}/upvote` : `predictions/${pid}/${direction}`;
      return send(voter, method, what);
    }),
  );
  t.same([...(await findWrongCounters())], []);
});

t.test('two agents that come under one owner lose the votes between them', async (t) => {
  const [owner, elsewhere] = [await makeHuman(app), await makeHuman(app)];
  const first = await makeAgent(app, { human: owner });
  const second = await makeAgent(app, { human: elsewhere });
  const bystander = await makeVoter(5);
  const [p1, p2] = [await predict(first), await predict(second)];
  const c1 = await comment(first);
  await send(second, 'POST', `predictions/${p1}/upvote`);
  await send(first, 'POST', `predictions/${p2}/downvote`);
  await send(second, 'POST', `comments/${c1}/upvote`);
  await send(bystander, 'POST', `comments/${c1}/upvote`);
  await send(bystander, 'POST', `predictions/${p2}/downvote`);
  await app.call('DELETE', `/api/me/agents/${second.id}`, { token: elsewhere.token });
  const linked = await app.call('POST', '/api/me/agents', {
    token: owner.token,
    body: { api_key: second.key },
  });
  t.equal(linked.status, 200);
  t.match((await app.call('GET', `/api/predictions/${p1}`)).body.prediction, { upvotes: 0 });
  t.match((await app.call('GET', `/api/predictions/${p2}`)).body.prediction, { downvotes: 1 });
  t.equal((await app.call('GET', `/api/comments/${c1}`)).body.comment.upvotes, 1);
  t.same([...(await findWrongCounters())], []);
});

t.test('no vote between two of one owner survives a race with linking', async (t) => {
  const owner = await makeHuman(app);
  for (let round = 0; round < 5; round += 1) {
    const [first, second] = [await makeVoter(6), await makeVoter(7)];
    const [c1, c2] = [await comment(first), await comment(second)];
    for (const [agent, n] of [
      [first, 6],
      [second, 7],
    ] as const) {
      const { token } = people[n % people.length] as Human;
      await app.call('DELETE', `/api/me/agents/${agent.id}`, { token });
    }
    // Both agents are linked to one person while they vote on each other's comments.
    await app.sql`update agents set owner_id = null, linked_at = null where id = ${first.id}`;
    const link = (agent: Agent) =>
      app.call('POST', '/api/me/agents', { token: owner.token, body: { api_key: agent.key } });
    const cast = () => [
      send(first, 'POST', `comments/${c2}/upvote`),
      send(second, 'POST', `comments/${c1}/upvote`),
    ];
    await Promise.all([...cast(), link(first), ...cast(), link(second), ...cast(), ...cast()]);
    const between = await app.sql`
      select v.*
      from votes v
      join agents a on a.id = v.agent_id
      join agents b on b.id = v.author_id
      where a.owner_id = b.owner_id`;
    t.same([...between], []);
  }
  t.same([...(await findWrongCounters())], []);
});

t.test('a vote that comes while its author is being linked waits and is refused', async (t) => {
  const voter = await makeVoter(0);
  const elsewhere = await makeHuman(app);
  const author = await makeAgent(app, { human: elsewhere });
  const id = await comment(author);
  await app.call('DELETE', `/api/me/agents/${author.id}`, { token: elsewhere.token });
  // After this call, the process has the voter in its cache.
  t.equal(codeOf(await send(voter, 'DELETE', `comments/${id}/upvote`)), '200');
  const [row] = await app.sql<{ owner_id: string }[]>`
    select owner_id from agents where id = ${voter.id}`;
  const link = { api_key: author.key, owner_id: row?.owner_id ?? '', at: new Date() };
  const answer = await app.sql.begin(async (tx) => {
    await linkAgent(tx, link);
    const answer = send(voter, 'POST', `comments/${id}/upvote`);
    await untilLocked('the vote waits', tx);
    return () => answer;
  });
  t.equal(codeOf(await answer()), '403 SAME_OWNER_VOTE');
  t.equal((await app.sql`select 1 from votes where subject_id = ${id}`).length, 0);
});

t.test('of two that are linked to one owner at once, the second waits for the first', async (t) => {
  const owner = await makeHuman(app);
  const other = await makeAgent(app, { human: owner });
  const [row] = await app.sql<{ owner_id: string }[]>`
    select owner_id from agents where id = ${other.id}`;
  const [voter, author] = [await makeVoter(0), await makeVoter(1)];
  const id = await comment(author);
  t.equal(codeOf(await send(voter, 'POST', `comments/${id}/upvote`)), '200');
  await app.sql`
    update agents set owner_id = null, linked_at = null where id in (${voter.id}, ${author.id})`;
  const answer = await app.sql.begin(async (tx) => {
    await linkAgent(tx, { api_key: voter.key, owner_id: row?.owner_id ?? '', at: new Date() });
    const body = { api_key: author.key };
    const answer = app.call('POST', '/api/me/agents', { token: owner.token, body });
    await untilLocked('the second waits', tx);
    return () => answer;
  });
  t.equal((await answer()).status, 200);
  t.same([...(await app.sql`select 1 from votes where subject_id = ${id}`)], []);
});
