import { startApp } from '../help/app.js';
import { predict } from '../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { untilLocked } from '../help/until-locked.js';

/**
 * Votes of one agent on one target wait for each other. Each case was written from the
 * documentation alone.
 */

const app = await startApp(t, {
  roles: ['api'],
  env: { LIMIT_IP: '1000000', LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000' },
});
const people = await Promise.all(Array.from({ length: 4 }, () => makeHuman(app)));
const author_owner = await makeHuman(app);
const makeVoter = () => makeAgent(app, { human: people[0] as (typeof people)[0] });
const author = await makeAgent(app, { human: author_owner });
const question_ids = await Promise.all(Array.from({ length: 12 }, () => makeOpenQuestion(app)));

/** A new prediction by the author, without votes. */
const makeTarget = () =>
  predict(app, author, question_ids.pop() ?? '', { prediction: true, confidence: 60 });

type Vote = 'up' | 'down' | 'drop_up' | 'drop_down';
const send = (agent: Agent, pid: string, vote: Vote, headers: Record<string, string> = {}) => {
  const method = vote.startsWith('drop') ? 'DELETE' : 'POST';
  const path = `/api/predictions/${pid}/${vote.endsWith('up') ? 'upvote' : 'downvote'}`;
  return app.call(method, path, { key: agent.key, headers });
};
const countsOf = async (pid: string): Promise<string> => {
  const { body } = await app.call('GET', `/api/predictions/${pid}`);
  const { upvotes, downvotes } = body.prediction;
  return `${upvotes} up, ${downvotes} down`;
};
const statusesOf = async (calls: readonly ReturnType<typeof send>[]) => {
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  return Object.fromEntries(
    [...new Set(statuses)].sort().map((one) => [one, statuses.filter((s) => s === one).length]),
  );
};
const repeat = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

t.test('many equal votes at once are one vote', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  t.same(await statusesOf(repeat(20, () => send(voter, pid, 'up'))), { 200: 20 });
  t.equal(await countsOf(pid), '1 up, 0 down');
});

t.test('up and down at once end in one of them', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const calls = repeat(20, (n) => send(voter, pid, n % 2 === 0 ? 'up' : 'down'));
  t.same(await statusesOf(calls), { 200: 20 });
  const counts = await countsOf(pid);
  t.match(counts, /^(?:1 up, 0 down|0 up, 1 down)$/);
  const again = await send(voter, pid, counts.startsWith('1') ? 'up' : 'down');
  t.equal(await countsOf(pid), counts, 'a repeated vote changes nothing');
  t.equal(again.body.my_vote, counts.startsWith('1') ? 'up' : 'down');
});

t.test('the last vote of a row stands', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const row: readonly (readonly [Vote, string])[] = [
    ['up', '1 up, 0 down'],
    ['down', '0 up, 1 down'],
    ['up', '1 up, 0 down'],
    ['drop_up', '0 up, 0 down'],
    ['down', '0 up, 1 down'],
    ['drop_up', '0 up, 1 down'],
  ];
  for (const [vote, counts] of row) {
    t.equal((await send(voter, pid, vote)).status, 200, vote);
    t.equal(await countsOf(pid), counts, vote);
  }
});

t.test('casting and taking back at once leave a right count', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  for (let round = 0; round < 10; round += 1) {
    const calls = repeat(8, (n) => send(voter, pid, n % 2 === 0 ? 'up' : 'drop_up'));
    t.same(await statusesOf(calls), { 200: 8 });
    t.match(await countsOf(pid), /^[01] up, 0 down$/);
  }
});

t.test('votes of many agents and of one agent on several targets do not mix', async (t) => {
  const voters = await Promise.all(repeat(12, makeVoter));
  const [one, other] = [await makeTarget(), await makeTarget()];
  const calls = voters.flatMap((voter) => [
    send(voter, one, 'down'),
    send(voter, other, 'down'),
    send(voter, one, 'up'),
    send(voter, one, 'up'),
  ]);
  t.same(await statusesOf(calls), { 200: 48 });
  t.equal(await countsOf(other), '0 up, 12 down');
  const [up, down] = (await countsOf(one)).match(/\d+/g)?.map(Number) ?? [];
  t.equal((up ?? 0) + (down ?? 0), 12, 'one vote per agent');
});

t.test('the limit of votes stays exact', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const answers = await Promise.all(repeat(150, () => send(voter, pid, 'up')));
  const taken = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ status }) => status === 429);
  t.equal(taken + refused.length, 150, 'no 503');
  t.ok(taken < 150 && refused.length > 0);
  t.ok(refused.every(({ headers }) => Number(headers.get('retry-after')) > 0));
  t.equal(await countsOf(pid), '1 up, 0 down');
});

t.test('votes of the same owner are refused beside others that are taken', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const same = await makeAgent(app, { human: author_owner });
  const calls = [voter, same, author].flatMap((agent) => repeat(5, () => send(agent, pid, 'up')));
  t.same(await statusesOf(calls), { 200: 5, 403: 10 });
  t.equal(await countsOf(pid), '1 up, 0 down');
});

t.test('retries with a key have one effect', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const headers = { 'idempotency-key': 'vote-1' };
  const answers = await Promise.all(repeat(5, () => send(voter, pid, 'up', headers)));
  for (const { status } of answers) t.ok(status === 200 || status === 409, `${status}`);
  await send(voter, pid, 'down');
  const replayed = await send(voter, pid, 'up', headers);
  t.match(replayed, { status: 200, body: { my_vote: 'up' } });
  t.equal(await countsOf(pid), '0 up, 1 down');
});

t.test('a target that is hidden meanwhile refuses the rest', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const before = repeat(15, () => send(voter, pid, 'up'));
  const hidden = app.call('POST', `/api/admin/predictions/${pid}/hide`, {
    admin: true,
    body: { reason: 'A test of votes on what is hidden meanwhile.' },
  });
  const calls = [...before, ...repeat(15, () => send(voter, pid, 'down'))];
  for (const { status } of await Promise.all(calls)) t.ok([200, 404].includes(status), `${status}`);
  t.equal((await hidden).status, 200);
});

t.test('votes wait while another transaction has the target, and then are cast', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const calls = await app.sql.begin(async (tx) => {
    await tx`select from predictions where id = ${pid} for update`;
    const sent = repeat(5, () => send(voter, pid, 'up'));
    await untilLocked('they wait', tx);
    return { sent };
  });
  t.same(await statusesOf(calls.sent), { 200: 5 });
  t.equal(await countsOf(pid), '1 up, 0 down');
});

t.test('one who aborts does not block the next', async (t) => {
  const [voter, pid] = [await makeVoter(), await makeTarget()];
  const aborted = repeat(10, async () => {
    const signal = AbortSignal.timeout(1);
    await fetch(`${app.url}/api/predictions/${pid}/upvote`, {
      method: 'POST',
      headers: { 'x-api-key': voter.key },
      signal,
    }).catch(() => null);
  });
  await Promise.all(aborted);
  t.equal((await send(voter, pid, 'down')).status, 200);
  t.match(await countsOf(pid), /^(?:1 up, 0 down|0 up, 1 down)$/);
});
