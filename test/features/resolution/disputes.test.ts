import { window_ms } from '../../../src/features/resolution/rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { type Answered, startApp } from '../../help/app.js';
import {
  closeQuestion,
  decideAndSettle,
  type Forecast,
  findWrongAccounts,
  makeForecasts,
  settleEagerly,
  untilSettled,
} from '../../help/settling.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Which agents may dispute a resolution, until when, and the effects of the decision. */

const app = await startApp(t, { roles: ['api', 'relay'], env: { LIMIT_COMMENTS: '100000' } });
await settleEagerly(t, app);
const reason = 'The register shows the doors open one day after the term had begun.';

interface World {
  readonly question_id: string;
  readonly one: Forecast;
  readonly other: Forecast;
}

const makeClosed = async (fields: Readonly<Record<string, unknown>> = {}): Promise<World> => {
  const question_id = await makeOpenQuestion(app, fields);
  const stated =
    fields['question_type'] === 'multi'
      ? ['red', 'blue'].map((selected_option) => ({ selected_option, confidence: 80 }))
      : [true, false].map((prediction) => ({ prediction, confidence: 80 }));
  const [one, other] = await makeForecasts(app, question_id, stated);
  if (one === undefined || other === undefined) throw new Error('nobody predicted');
  await closeQuestion(app, question_id);
  return { question_id, one, other };
};
const makeResolved = async (): Promise<World> => {
  const world = await makeClosed();
  await decideAndSettle(app, world.question_id, 'resolve', { outcome: true });
  return world;
};

const file = (question_id: string, agent: Agent, body: unknown = { reason }) =>
  app.call('POST', `/api/questions/${question_id}/dispute`, { key: agent.key, body });
const fileSure = async (question_id: string, agent: Agent, body?: unknown): Promise<string> => {
  const answer = await file(question_id, agent, body);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.dispute.id;
};
const withdraw = (id: string, agent: Agent) =>
  app.call('POST', `/api/disputes/${id}/withdraw`, { key: agent.key, body: {} });
const decide = (id: string, body: unknown) =>
  app.call('POST', `/api/admin/disputes/${id}/resolve`, { admin: true, body });
const uphold = (id: string, more: object = { outcome: false }) =>
  decide(id, { status: 'upheld', note: 'The register says so.', ...more });
const rejectIt = (id: string) => decide(id, { status: 'rejected', note: 'The register is wrong.' });
const codeOf = ({ status, body }: Answered): string => `${status} ${body?.code ?? ''}`.trim();

/** Events about a dispute, from the outbox and the log together. */
const eventsOf = async (id: string): Promise<readonly { event: string; data: object }[]> => {
  const rows = await app.sql<{ body: string }[]>`
    select body from (select id, body from outbox union select id, body from events) e
    where body like ${`%"dispute_id":"${id}"%`}
    order by id`;
  return rows.map(({ body }) => JSON.parse(body));
};
const revisionsOf = (question_id: string) =>
  app.sql<{ revision: number; decided_by: string; outcome: boolean }[]>`
    select revision, decided_by, outcome
    from resolutions where question_id = ${question_id} order by revision`;

t.test('a dispute is filed, listed and read, with its event', async (t) => {
  const { question_id, other } = await makeResolved();
  const evidence_urls = ['https://register.city-archive.org/doors', 'http://bulletin.press.net/1'];
  const body = { reason: `  ${reason} `, evidence_urls: [...evidence_urls, evidence_urls[0]] };
  const filed = await file(question_id, other.agent, body);
  t.equal(filed.status, 201);
  const { dispute } = filed.body;
  t.match(dispute, {
    dispute_id: dispute.id,
    question_id,
    user_id: other.agent.id,
    status: 'open',
    user_name: other.agent.name,
    revision: 1,
    note: null,
    new_revision: null,
  });
  t.equal(dispute.reason, reason);
  t.same(dispute.evidence_urls, evidence_urls);
  t.same((await app.call('GET', `/api/disputes/${dispute.id}`)).body, filed.body);
  for (const query of ['', '?status=open']) {
    const list = await app.call('GET', `/api/questions/${question_id}/disputes${query}`);
    t.same(list.body, { total: 1, disputes: [dispute], next_cursor: null });
  }
  const none = await app.call('GET', `/api/questions/${question_id}/disputes?status=upheld`);
  t.same(none.body, { total: 0, disputes: [], next_cursor: null });
  t.match(await eventsOf(dispute.id), [
    { event: 'dispute.opened', data: { dispute_id: dispute.id, question_id } },
  ]);
});

t.test('only an agent that predicted, on a resolved question, once at a time', async (t) => {
  const open = await makeOpenQuestion(app);
  const { question_id, one } = await makeResolved();
  const voided = await makeClosed();
  await decideAndSettle(app, voided.question_id, 'void', { resolution_note: 'Cancelled.' });
  const stranger = await makeAgent(app, { human: await makeHuman(app) });
  for (const [id, agent, code] of [
    [open, one.agent, '409 QUESTION_NOT_RESOLVED'],
    [voided.question_id, voided.one.agent, '409 QUESTION_NOT_RESOLVED'],
    [question_id, stranger, '403 PREDICTION_REQUIRED'],
    [question_id, await makeAgent(app), '403 AGENT_NOT_LINKED'],
    [makeId(), one.agent, '404 QUESTION_NOT_FOUND'],
    [question_id, one.agent, '201'],
    [question_id, one.agent, '409 DUPLICATE_DISPUTE'],
  ] as const) {
    t.equal(codeOf(await file(id, agent)), code);
  }
});

t.test('of many filed at once one is stored', async (t) => {
  const { question_id, one } = await makeResolved();
  const codes = await Promise.all(
    Array.from({ length: 12 }, async () => codeOf(await file(question_id, one.agent))),
  );
  t.equal(codes.filter((code) => code === '201').length, 1);
  t.equal(codes.filter((code) => code === '409 DUPLICATE_DISPUTE').length, 11);
  const [row] = await app.sql`
    select count(*)::int as n from disputes where question_id = ${question_id}`;
  t.equal(row?.['n'], 1);
});

t.test('within 72 hours of the resolution, and not a moment later', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const setAge = (ms: number) => app.sql`
    update questions set resolved_at = ${new Date(Date.now() - ms)} where id = ${question_id}`;
  await setAge(window_ms + 1_000);
  t.equal(codeOf(await file(question_id, one.agent)), '409 DISPUTE_WINDOW_CLOSED');
  await setAge(window_ms - 10_000);
  const id = await fileSure(question_id, other.agent);
  await setAge(window_ms + 1_000);
  t.equal((await uphold(id)).status, 200, 'a decision may come later');
  await untilSettled(app.sql, question_id);
  t.equal((await file(question_id, one.agent)).status, 201, 'a new revision begins the time anew');
});

t.test('reason and evidence have their limits', async (t) => {
  const { question_id, one } = await makeResolved();
  const urls = (n: number) => Array.from({ length: n }, (_, at) => `https://a.example.org/${at}`);
  const letters = 'bcdfghjklmnpqrst';
  const word = (n: number) => [n >> 8, (n >> 4) & 15, n & 15].map((at) => letters[at]).join('');
  const words = Array.from({ length: 600 }, (_, n) => word(n)).join(' ');
  const say = (length: number) => `${words.slice(0, length - 1)}.`;
  for (const bad of [
    { reason: say(49) },
    { reason: `${say(49)}   ` },
    { reason: say(2_001) },
    {},
    { reason, evidence_urls: urls(11) },
    { reason, evidence_urls: ['ftp://a.example.org'] },
    { reason, evidence_urls: ['no address'] },
    { reason: 7 },
    { reason, evidence_urls: [`https://a.example.org/${'x'.repeat(2_048)}`] },
  ]) {
    t.equal(codeOf(await file(question_id, one.agent, bad)), '400 INVALID_REQUEST');
  }
  const rude = { reason: `${reason} What a fucking joke this resolution is.` };
  t.equal(codeOf(await file(question_id, one.agent, rude)), '400 CONTENT_REJECTED');
  const longest = `https://a.example.org/${'x'.repeat(2_048 - 22)}`;
  for (const good of [
    { reason: say(50), evidence_urls: [longest] },
    { reason: say(2_000), evidence_urls: urls(10) },
  ]) {
    await withdraw(await fileSure(question_id, one.agent, good), one.agent);
  }
});

t.test('its author withdraws it, nobody else does, and it can be filed again', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const id = await fileSure(question_id, one.agent);
  t.equal(codeOf(await withdraw(id, other.agent)), '404 DISPUTE_NOT_FOUND');
  t.equal(codeOf(await withdraw(makeId(), other.agent)), '404 DISPUTE_NOT_FOUND');
  const gone = await withdraw(id, one.agent);
  t.match(gone, { status: 200, body: { dispute: { id, status: 'withdrawn', note: null } } });
  t.equal(codeOf(await withdraw(id, one.agent)), '409 DISPUTE_NOT_OPEN');
  t.equal(codeOf(await rejectIt(id)), '409 DISPUTE_NOT_OPEN');
  await fileSure(question_id, one.agent);
  t.match(await eventsOf(id), [
    { event: 'dispute.opened' },
    { event: 'dispute.resolved', data: { dispute_id: id, question_id, status: 'withdrawn' } },
  ]);
});

t.test('a rejected dispute changes nothing but itself', async (t) => {
  const { question_id, other } = await makeResolved();
  // The counts of predictions follow a moment later.
  const before = await until('both predictions are counted', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}`);
    return body.question.prediction_count === 2 ? body : undefined;
  });
  const id = await fileSure(question_id, other.agent);
  t.match(await rejectIt(id), { status: 200, body: { dispute: { status: 'rejected' } } });
  t.same((await app.call('GET', `/api/questions/${question_id}`)).body, before);
  t.equal((await revisionsOf(question_id)).length, 1);
  const { body } = await app.call('GET', '/api/me/notifications', other.agent);
  t.match(body.notifications[0], {
    type: 'dispute.decided',
    question_id,
    subject_id: id,
    details: { status: 'rejected' },
    message: /^Your dispute about “.*” was rejected\.$/,
  });
  const audit = await app.call('GET', `/api/admin/audit?subject_id=${id}`, { admin: true });
  t.match(audit.body.acts, [{ act: 'dispute.reject', question_id, reason: /register is wrong/ }]);
});

t.test('an upheld dispute resolves anew, and the accounts follow', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const url = 'https://register.city-archive.org/doors';
  const id = await fileSure(question_id, other.agent, { reason, evidence_urls: [url] });
  const answer = await uphold(id);
  t.match(answer, { status: 200, body: { dispute: { status: 'upheld', new_revision: 2 } } });
  await untilSettled(app.sql, question_id);
  const { question } = (await app.call('GET', `/api/questions/${question_id}`)).body;
  t.match(question, { status: 'resolved', outcome: false, revision: 2 });
  t.match(await revisionsOf(question_id), [
    { revision: 1, decided_by: 'admin', outcome: true },
    { revision: 2, decided_by: `dispute:${id}`, outcome: false },
  ]);
  const nets = await app.sql`
    select agent_id, net from scores where question_id = ${question_id} order by net`;
  t.match(nets, [
    { agent_id: one.agent.id, net: -156 },
    { agent_id: other.agent.id, net: 84 },
  ]);
  t.same(await findWrongAccounts(app.sql), []);
  t.match(await eventsOf(id), [
    { event: 'dispute.opened' },
    { event: 'dispute.resolved', data: { dispute_id: id, question_id, status: 'upheld' } },
  ]);
  const audit = await app.call('GET', `/api/admin/audit?subject_id=${id}`, { admin: true });
  t.match(audit.body.acts, [
    { act: 'dispute.uphold', details: { outcome: false, new_revision: 2 } },
  ]);
  await until('the events are in the log', async () => {
    const [row] = await app.sql`
      select count(*)::int as n from events
      where event = 'dispute.resolved' and body like ${`%${id}%`}`;
    return row?.['n'] === 1;
  });
});

t.test('an upheld dispute of a multi question names the right options', async (t) => {
  const options = { question_type: 'multi', options: ['red', 'blue', 'green'] };
  const { question_id, other } = await makeClosed(options);
  await decideAndSettle(app, question_id, 'resolve', { correct_options: ['red'] });
  const id = await fileSure(question_id, other.agent);
  const wrongs = [{ outcome: true }, {}, { correct_options: ['pink'] }, { correct_options: [] }];
  for (const wrong of wrongs) {
    t.equal(codeOf(await uphold(id, wrong)), '400 INVALID_OUTCOME', JSON.stringify(wrong));
  }
  t.equal(codeOf(await uphold(id, { correct_options: ['red'] })), '409 OUTCOME_UNCHANGED');
  t.equal((await uphold(id, { correct_options: ['blue', 'green'] })).status, 200);
  await untilSettled(app.sql, question_id);
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('a decision that does not fit is refused and changes nothing', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const id = await fileSure(question_id, one.agent);
  const note = 'The register says so.';
  t.equal(codeOf(await uphold(id, { outcome: true })), '409 OUTCOME_UNCHANGED');
  for (const bad of [
    { status: 'rejected', note, outcome: false },
    { status: 'rejected' },
    { status: 'open' },
    { status: 'rejected', note: '  a ' },
    { status: 'rejected', note: 'x'.repeat(5_001) },
  ]) {
    t.equal(codeOf(await decide(id, bad)), '400 INVALID_REQUEST', JSON.stringify(bad).slice(0, 60));
  }
  t.equal(codeOf(await rejectIt(makeId())), '404 DISPUTE_NOT_FOUND');
  const { body } = await app.call('GET', `/api/disputes/${id}`);
  t.equal(body.dispute.status, 'open', 'so far');
  t.equal((await revisionsOf(question_id)).length, 1);
  t.equal((await eventsOf(id)).length, 1);
  const notes = ['yes', 'x'.repeat(5_000)];
  for (const [n, { agent }] of [other, one].entries()) {
    const one_of = n === 1 ? id : await fileSure(question_id, agent);
    t.equal((await decide(one_of, { status: 'rejected', note: notes[n] })).status, 200);
  }
});

t.test('of two admins who decide at once, and an author who withdraws, one wins', async (t) => {
  for (let round = 0; round < 4; round += 1) {
    const { question_id, one } = await makeResolved();
    const id = await fileSure(question_id, one.agent);
    const answers = await Promise.all([
      uphold(id),
      rejectIt(id),
      uphold(id),
      withdraw(id, one.agent),
    ]);
    t.equal(answers.filter(({ status }) => status === 200).length, 1);
    t.equal(answers.filter((one) => codeOf(one) === '409 DISPUTE_NOT_OPEN').length, 3);
    const winner = answers.find(({ status }) => status === 200)?.body.dispute;
    await untilSettled(app.sql, question_id);
    t.equal((await revisionsOf(question_id)).length, winner.status === 'upheld' ? 2 : 1);
    t.equal((await eventsOf(id)).length, 2);
    t.match((await app.call('GET', `/api/disputes/${id}`)).body.dispute, winner);
  }
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('two disputes upheld at once with one outcome resolve the question once', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const ids = [await fileSure(question_id, one.agent), await fileSure(question_id, other.agent)];
  for (const { status, body } of await Promise.all(ids.map((id) => uphold(id)))) {
    t.same([status, body.dispute?.new_revision], [200, 2]);
  }
  await untilSettled(app.sql, question_id);
  t.equal((await revisionsOf(question_id)).length, 2);
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('admins see what waits for them, in pages', async (t) => {
  const { question_id, one, other } = await makeResolved();
  const ids = [await fileSure(question_id, one.agent), await fileSure(question_id, other.agent)];
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const query: string = `?status=open&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const { body } = await app.call('GET', `/api/admin/disputes${query}`, { admin: true });
    seen.push(...body.disputes.map(({ id }: { id: string }) => id));
    cursor = body.next_cursor;
  }
  t.same(seen.slice(0, 2), [...ids].reverse());
  t.equal(new Set(seen).size, seen.length);
});

t.test('an owner disputes for an agent that predicted, and withdraws it', async (t) => {
  const { question_id } = await makeClosed();
  const human = await makeHuman(app);
  const stated = { prediction: true, confidence: 75 };
  await app.sql`update questions set status = 'open', closed_at = null where id = ${question_id}`;
  const agent = await makeAgent(app, { human });
  await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { ...stated, reasoning: makeReasoning() },
  });
  await closeQuestion(app, question_id);
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const path = `/api/questions/${question_id}/dispute`;
  const ask = (token: string, body: object) =>
    app.call('POST', path, { token, body: { reason, ...body } });
  const idle = await makeAgent(app, { human });
  const stranger = await makeHuman(app);
  t.equal(codeOf(await ask(human.token, {})), '400 INVALID_REQUEST', 'which agent?');
  t.equal(codeOf(await ask(human.token, { agent_id: makeId() })), '404 AGENT_NOT_FOUND');
  t.equal(codeOf(await ask(stranger.token, { agent_id: agent.id })), '404 AGENT_NOT_FOUND');
  t.equal(codeOf(await ask(human.token, { agent_id: idle.id })), '403 PREDICTION_REQUIRED');
  t.equal(
    codeOf(await file(question_id, idle, { reason, agent_id: agent.id })),
    '404 AGENT_NOT_FOUND',
  );
  await app.sql`update agents set suspended_at = now() where id = ${agent.id}`;
  t.equal(codeOf(await ask(human.token, { agent_id: agent.id })), '404 AGENT_NOT_FOUND');
  await app.sql`update agents set suspended_at = null where id = ${agent.id}`;
  const listed = await app.call('GET', `/api/me/agents?predicted_on=${question_id}`, human);
  t.match(listed.body, { total: 1, agents: [{ id: agent.id, suspended: false }] });

  const filed = await ask(human.token, { agent_id: agent.id });
  t.match(filed, { status: 201, body: { dispute: { user_id: agent.id, status: 'open' } } });
  t.equal(codeOf(await file(question_id, agent)), '409 DUPLICATE_DISPUTE');
  const end = (token: string) =>
    app.call('POST', `/api/disputes/${filed.body.dispute.id}/withdraw`, { token, body: {} });
  t.equal(codeOf(await end(stranger.token)), '404 DISPUTE_NOT_FOUND');
  t.match(await end(human.token), { status: 200, body: { dispute: { status: 'withdrawn' } } });
});
