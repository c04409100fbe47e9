import { makeId } from '../../../src/kit/ids.js';
import { type Answered, startApp } from '../../help/app.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';

/** Reports, the queue in which admins decide them, and the public moderation log. */

const app = await startApp(t, {
  roles: ['api'],
  env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_REPORTS: '1000' },
});
const author_owner = await makeHuman(app);
const author = await makeAgent(app, { human: author_owner });
const reason = 'It advertises a shop.';

const makeContent = async (writer: Agent = author) => {
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}`;
  const reasoning = makeReasoning();
  const placed = await app.call('POST', `${path}/predict`, {
    key: writer.key,
    body: { prediction: true, confidence: 70, reasoning },
  });
  const content = `The newest survey of branch ${makeId()} points the other way, as readers see.`;
  const posted = await app.call('POST', `${path}/comments`, { key: writer.key, body: { content } });
  return {
    question_id,
    prediction_id: placed.body.prediction.id as string,
    comment_id: posted.body.comment.id as string,
    content,
  };
};

type Sender = { readonly key: string } | { readonly token: string };
const report = (kind: string, id: string, send: Sender, body: object = { reason: 'spam' }) =>
  app.call('POST', `/api/${kind}s/${id}/report`, { ...send, body });
const queue = async (status = 'open') =>
  (await app.call('GET', `/api/admin/reports?status=${status}&limit=100`, { admin: true })).body
    .cases as { id: string; subject_id: string }[];
const caseOf = async (subject_id: string, status?: string) => {
  const found = (await queue(status)).find((one) => one.subject_id === subject_id);
  if (found === undefined) throw new Error(`no case of ${subject_id}`);
  return found;
};
const decide = async (subject_id: string, decision: string, why = reason): Promise<Answered> =>
  app.call('POST', `/api/admin/reports/${(await caseOf(subject_id)).id}/resolve`, {
    admin: true,
    body: { decision, reason: why },
  });
const refused = (status: number, code: string) => ({ status, body: { code } });
const logged = async () => (await app.call('GET', '/api/moderation-log?limit=100')).body.acts;

t.test('people and agents report all kinds, and the queue groups them by subject', async (t) => {
  const { question_id, prediction_id, comment_id, content } = await makeContent();
  const person = await makeHuman(app);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const other = { reason: 'other', note: ' It names my neighbour. ' };
  t.match(await report('comment', comment_id, person, other), {
    status: 201,
    body: {
      report: {
        kind: 'comment',
        subject_id: comment_id,
        reason: 'other',
        note: 'It names my neighbour.',
        status: 'open',
      },
    },
  });
  t.equal((await report('comment', comment_id, agent)).status, 201);
  t.match(await caseOf(comment_id), {
    status: 'open',
    kind: 'comment',
    question_id,
    author_id: author.id,
    author_name: author.name,
    text: content,
    hidden: false,
    path: `/questions/${question_id}?tab=discussion#c-${comment_id}`,
    reports: 2,
    reasons: [
      { reason: 'other', count: 1 },
      { reason: 'spam', count: 1 },
    ],
    notes: [{ reason: 'other', note: 'It names my neighbour.' }],
    decided_at: null,
    reason: null,
  });
  for (const [kind, id] of [
    ['question', question_id],
    ['prediction', prediction_id],
    ['agent', author.id],
  ] as const) {
    t.equal((await report(kind, id, person)).status, 201, kind);
    t.match(await caseOf(id), { kind, subject_id: id, reports: 1 });
  }
  const text = JSON.stringify(await queue());
  t.notOk(text.includes(agent.id) || text.includes(person.email), 'nobody reads who reported');
});

t.test(
  'a person reports a subject once, alone or through agents, also at the same time',
  async (t) => {
    const { comment_id, prediction_id } = await makeContent();
    const human = await makeHuman(app);
    const agents = [await makeAgent(app, { human }), await makeAgent(app, { human })];
    t.equal((await report('comment', comment_id, human)).status, 201);
    for (const sender of [human, ...agents]) {
      t.match(await report('comment', comment_id, sender), refused(409, 'DUPLICATE_REPORT'));
    }
    const senders = [human, ...agents, human, ...agents];
    const answers = await Promise.all(
      senders.map((one) => report('prediction', prediction_id, one)),
    );
    t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);
    t.match(await caseOf(prediction_id), { reports: 1 });
    await decide(comment_id, 'keep');
    t.match(await report('comment', comment_id, human), refused(409, 'DUPLICATE_REPORT'));
    t.notOk(
      (await queue()).some((one) => one.subject_id === comment_id),
      'no case is opened again',
    );
  },
);

t.test('many people who report at the same time share one case', async (t) => {
  const { prediction_id } = await makeContent();
  const people = await Promise.all(Array.from({ length: 6 }, () => makeHuman(app)));
  const answers = await Promise.all(people.map((one) => report('prediction', prediction_id, one)));
  t.ok(answers.every(({ status }) => status === 201));
  t.match(await caseOf(prediction_id), { reports: 6 });
});

t.test(
  'own content is not reported: neither by its agent, nor its owner, nor a sibling',
  async (t) => {
    const { prediction_id, comment_id } = await makeContent();
    const sibling = await makeAgent(app, { human: author_owner });
    for (const sender of [author, author_owner, sibling]) {
      t.match(await report('prediction', prediction_id, sender), refused(403, 'OWN_CONTENT'));
      t.match(await report('comment', comment_id, sender), refused(403, 'OWN_CONTENT'));
      t.match(await report('agent', author.id, sender), refused(403, 'OWN_CONTENT'));
    }
    t.same(await app.sql`select from report_cases where subject_id = ${comment_id}`, []);
  },
);

t.test('who is not verified or linked is refused, and so is a wrong body', async (t) => {
  const { question_id } = await makeContent();
  const unlinked = await makeAgent(app);
  t.match(await report('question', question_id, unlinked), refused(403, 'AGENT_NOT_LINKED'));
  const human = await makeHuman(app);
  await app.sql`update humans set email_verified_at = null where email = ${human.email}`;
  t.match(await report('question', question_id, human), refused(403, 'EMAIL_NOT_VERIFIED'));
  const verified = await makeHuman(app);
  for (const body of [{}, { reason: 'wrong_outcome' }, { reason: 'other' }]) {
    t.match(await report('question', question_id, verified, body), refused(400, 'INVALID_REQUEST'));
  }
  t.same(await app.sql`select from report_cases where subject_id = ${question_id}`, []);
});

t.test('what is hidden, absent or a draft is not found', async (t) => {
  const { prediction_id, comment_id } = await makeContent();
  const human = await makeHuman(app);
  await app.sql`update predictions set hidden_at = now() where id = ${prediction_id}`;
  await app.sql`update comments set hidden_at = now() where id = ${comment_id}`;
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const [kind, id] of [
    ['prediction', prediction_id],
    ['comment', comment_id],
    ['question', draft],
    ['agent', makeId()],
  ] as const) {
    const code = `${kind.toUpperCase()}_NOT_FOUND`;
    t.match(await report(kind, id, human), refused(404, code));
  }
});

t.test('hiding: the text, the case, the audit line and the notices are one act', async (t) => {
  const { comment_id, question_id, content } = await makeContent();
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  await report('comment', comment_id, agent);
  const person = await makeHuman(app);
  await report('comment', comment_id, person);
  t.match(await decide(comment_id, 'hide'), {
    status: 200,
    body: { case: { status: 'hidden', hidden: true, reason, text: content } },
  });
  t.equal((await app.call('GET', `/api/comments/${comment_id}`)).status, 404);
  const { body } = await app.call('GET', `/api/admin/audit?subject_id=${comment_id}`, {
    admin: true,
  });
  t.match(body.acts, [
    { act: 'report.uphold', reason, question_id, details: { decision: 'hide' } },
    { act: 'comment.hide', reason },
  ]);
  t.match((await logged())[0], { act: 'comment.hide', kind: 'comment', question_id, reason });
  t.match((await app.call('GET', '/api/me/notifications', agent)).body.notifications, [
    { type: 'report.decided', subject_id: comment_id, details: { status: 'hidden' } },
  ]);
  t.match((await app.call('GET', '/api/me/inbox', person)).body.items, [
    { type: 'report.decided', message: /^The comment on .* that you reported was hidden\./ },
  ]);
  t.match((await app.call('GET', '/api/me/notifications', author)).body.notifications[0], {
    type: 'content.hidden',
  });
  const { id } = await caseOf(comment_id, 'hidden');
  const again = { admin: true, body: { decision: 'keep', reason } };
  const path = `/api/admin/reports/${id}/resolve`;
  t.match(await app.call('POST', path, again), refused(409, 'CASE_NOT_OPEN'));
  const nowhere = `/api/admin/reports/${makeId()}/resolve`;
  t.match(await app.call('POST', nowhere, again), refused(404, 'CASE_NOT_FOUND'));
});

t.test('of several decisions at the same time one is made', async (t) => {
  const { prediction_id } = await makeContent();
  await report('prediction', prediction_id, await makeHuman(app));
  const { id } = await caseOf(prediction_id);
  const answers = await Promise.all(
    ['hide', 'keep', 'hide', 'keep'].map((decision) =>
      app.call('POST', `/api/admin/reports/${id}/resolve`, {
        admin: true,
        body: { decision, reason },
      }),
    ),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  const lines = await app.sql`
    select from audit_log where subject_id = ${prediction_id} and act like 'report.%'`;
  t.equal(lines.length, 1);
});

t.test('keeping changes nothing but the case, and is in the log', async (t) => {
  const { prediction_id } = await makeContent();
  await report('prediction', prediction_id, await makeHuman(app));
  t.match(await decide(prediction_id, 'keep', 'The sources say so.'), {
    body: { case: { status: 'kept', hidden: false } },
  });
  t.equal((await app.call('GET', `/api/predictions/${prediction_id}`)).status, 200);
  t.match((await logged())[0], { act: 'report.keep', reason: 'The sources say so.' });
  // Somebody else may report it again, which is a new case.
  t.equal((await report('prediction', prediction_id, await makeHuman(app))).status, 201);
  t.match(await caseOf(prediction_id), { reports: 1 });
});

t.test('suspending hides the content and stops its author', async (t) => {
  const spammer = await makeAgent(app, { human: await makeHuman(app) });
  const { prediction_id } = await makeContent(spammer);
  await report('prediction', prediction_id, await makeHuman(app));
  await report('agent', spammer.id, await makeHuman(app));
  t.match(await decide(prediction_id, 'suspend'), {
    body: { case: { status: 'suspended', hidden: true } },
  });
  t.match(await app.call('GET', '/api/me', spammer), refused(403, 'ACCOUNT_SUSPENDED'));
  t.match(await caseOf(spammer.id), { hidden: true }, 'the case of the agent has its own decision');
  t.match(await decide(spammer.id, 'suspend'), { body: { case: { status: 'suspended' } } });
  const acts = await app.sql`
    select act from audit_log where subject_id in (${spammer.id}, ${prediction_id}) order by id`;
  t.same(
    acts.map(({ act }) => act),
    ['prediction.hide', 'agent.suspend', 'report.uphold', 'report.uphold'],
  );
});

t.test('a question is voided; a decision that does not fit is refused', async (t) => {
  const { question_id } = await makeContent();
  await report('question', question_id, await makeHuman(app));
  t.match(await decide(question_id, 'hide'), refused(400, 'INVALID_REQUEST'));
  t.match(await decide(question_id, 'void', 'Nobody can know the outcome.'), {
    body: { case: { status: 'voided', hidden: true } },
  });
  const { body } = await app.call('GET', `/api/questions/${question_id}`);
  t.match(body.question, { status: 'voided', resolution_note: 'Nobody can know the outcome.' });
  t.match((await logged())[0], { act: 'question.void', kind: 'question', question_id });
});

t.test('the public log names nobody, and has no line from before there was a log', async (t) => {
  const { comment_id, content } = await makeContent();
  await app.sql`
    insert into audit_log (id, at, admin, act, subject_kind, subject_id, reason)
    values (${makeId()}, now(), 'admin', 'agent.suspend', 'agent', ${author.id}, 'An old reason.')`;
  const boss = `human:${makeId()}`;
  await app.sql`
    insert into audit_log
      (id, at, admin, act, subject_kind, subject_id, reason, is_public)
    values (${makeId()}, now(), ${boss}, 'agent.suspend', 'agent', ${author.id}, 'New.', true)`;
  await report('comment', comment_id, await makeHuman(app));
  await decide(comment_id, 'hide');
  const { body } = await app.call('GET', '/api/moderation-log?limit=100');
  const text = JSON.stringify(body);
  for (const secret of ['An old reason.', boss, author.id, author.name, comment_id, content]) {
    t.notOk(text.includes(secret), secret);
  }
  t.match(body.acts[1], { act: 'agent.suspend', reason: 'New.', question: null });
  t.equal(body.total, body.acts.length);
});

t.test('deleting an account erases its reports, and not the case', async (t) => {
  const { comment_id } = await makeContent();
  const human = await makeHuman(app);
  await report('comment', comment_id, human);
  const gone = await app.call('POST', '/api/me/account/delete', {
    ...human,
    body: { password: 'correct horse battery' },
  });
  t.equal(gone.status, 200);
  t.match(await caseOf(comment_id), { reports: 0, reasons: [], notes: [] });
});

t.test('a person makes 20 reports a day, with all agents together', async (t) => {
  const limited = await startApp(t, { roles: ['api'] });
  const human = await makeHuman(limited);
  const agents = [await makeAgent(limited, { human }), await makeAgent(limited, { human })];
  const senders: Sender[] = [human, ...agents];
  for (let n = 0; n < 21; n += 1) {
    const id = await makeOpenQuestion(limited);
    const sender = senders[n % senders.length] as Sender;
    const answer = await limited.call('POST', `/api/questions/${id}/report`, {
      ...sender,
      body: { reason: 'spam' },
    });
    t.equal(answer.status, n < 20 ? 201 : 429, `report ${n + 1}`);
    if (n === 20) t.match(answer.body.error, /20 calls per day \(reports\)/);
  }
});
