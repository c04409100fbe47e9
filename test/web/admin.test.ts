import { type AppOptions, startApp, type TestApp } from '../help/app.js';
import { act, makeForecasts } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** The admin pages as a browser without scripts uses them: forms and links. */

const env = { ADMIN_EMAILS: 'boss@people.dev' };

const logIn = async (app: TestApp, email = 'boss@people.dev') => {
  const { token } = await makeHuman(app, email);
  const cookie = `session=${token}`;
  const read = (path: string) =>
    app.call('GET', path, { headers: { accept: 'text/html', cookie } });
  const send = (path: string, fields: Readonly<Record<string, string>>) =>
    app.call('POST', path, {
      headers: {
        accept: 'text/html',
        cookie,
        origin: app.url,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(fields).toString(),
    });
  /** Sends a form that redirects, and reads the page it leads to. */
  const submit = async (path: string, fields: Readonly<Record<string, string>>) => {
    const { status, headers, body } = await send(path, fields);
    if (status !== 303) throw new Error(`${path}: ${status} ${body}`);
    return read(headers.get('location') ?? '');
  };
  return { read, send, submit };
};

const start = (t: Parameters<typeof startApp>[0], options: AppOptions = {}) =>
  startApp(t, { env, ...options });

t.test('to anybody else there is no such page', async (t) => {
  const app = await start(t, { roles: ['api'] });
  const visitor = await logIn(app, 'reader@people.dev');
  for (const path of ['/admin', '/admin/questions', '/admin/people', '/admin/import']) {
    t.equal((await visitor.read(path)).status, 404, path);
  }
  t.equal((await visitor.send('/admin/content', { act: 'hide' })).status, 404);
});

t.test('a question is created, edited, published, closed, opened again and voided', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const fields = {
    question: 'Will the bridge at Sines open in 2027?',
    place: 'society',
    description: '',
    question_type: 'binary',
    closes_at: '2027-11-01T00:00',
    resolution_date: '2027-12-01T00:00',
  };
  const wrong = await admin.send('/admin/questions/new', { ...fields, question: 'Too short' });
  t.equal(wrong.status, 400);
  t.match(wrong.body, /<input[^>]*id="question"[^>]*aria-invalid="true"/);
  t.match(wrong.body, 'value="2027-12-01T00:00"', 'what was filled in is kept');
  const created = await admin.submit('/admin/questions/new', fields);
  t.match(created.body, 'The question is saved.');
  const [row] = await app.sql<{ id: string }[]>`select id from questions`;
  const path = `/admin/questions/${row?.id}`;
  const changed = {
    ...fields,
    act: 'edit',
    question: 'Will the bridge at Sines open by May 2027?',
  };
  t.match((await admin.submit(path, changed)).body, 'Will the bridge at Sines open by May 2027?');
  t.match((await admin.submit(path, { act: 'publish' })).body, 'The question is published.');
  t.match((await admin.submit(path, { act: 'close' })).body, 'The question is closed.');
  const open = { act: 'reopen', closes_again_at: '2027-11-15T00:00' };
  t.match((await admin.submit(path, open)).body, 'The question is open again.');
  const late = await admin.send(path, { act: 'publish' });
  t.equal(late.status, 409);
  t.match(late.body, /role="alert"/);
  t.match(
    (await admin.submit(path, { act: 'void', note: 'Called off.' })).body,
    'The question is voided',
  );
  const acts = await app.sql`select act from audit_log where admin like 'human:%' order by id`;
  t.same(
    acts.map(({ act }) => act),
    ['create', 'update', 'publish', 'close', 'reopen', 'void'].map((one) => `question.${one}`),
  );
});

t.test('a suggestion is rejected with a reason', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const draft = await makeOpenQuestion(app, { publish: false, question: 'Will <i>it</i> be so?' });
  t.match((await admin.read('/admin')).body, 'Will &lt;i>it&lt;/i> be so?');
  const page = await admin.submit(`/admin/questions/${draft}`, {
    act: 'reject',
    reason: 'Nobody could tell its outcome.',
  });
  t.match(page.body, 'No suggestions or drafts.');
  t.match(page.body, 'Nobody could tell its outcome.', 'the audit log has the reason');
});

t.test('a resolution is previewed, decided, and pays just that', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const id = await makeOpenQuestion(app);
  const stated = [90, 70, 60].map((confidence) => ({ prediction: true, confidence }));
  await makeForecasts(app, id, stated);
  await until('the consensus', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
    return body.total_predictions === 3;
  });
  await act(app, id, 'close');
  const path = `/admin/questions/${id}`;
  t.match((await admin.read('/admin')).body, `href="${path}"`, 'it is due');
  const form = { act: 'resolve', outcome: 'no', resolution_note: 'As the register says.' };
  const preview = await admin.send(path, { ...form, step: 'preview' });
  t.equal(preview.status, 200);
  t.equal((await app.sql`select from resolutions`).length, 0, 'nothing is decided yet');
  const figure = (name: string): string =>
    new RegExp(`${name}</th><td class="n">([^<]*)`).exec(preview.body)?.[1] ?? '';
  t.equal(figure('Predictions'), '3');
  t.equal(figure('Lose points'), '3');
  t.equal(figure('The crowd was'), 'wrong');
  t.match(preview.body, /value="no" checked/, 'the form keeps what was chosen');
  const done = await admin.submit(path, { ...form, step: 'decide' });
  t.match(done.body, 'The question is resolved');
  const nets = await until('all are paid', async () => {
    const rows = await app.sql<{ net: number }[]>`select net from scores order by net`;
    return rows.length === 3 && rows.map(({ net }) => net);
  });
  const signed = (n: number) => `−${-n}`;
  t.equal(figure('Total points'), signed(nets.reduce((a, b) => a + b)));
  t.equal(figure('Lowest'), signed(nets[0] ?? 0));
  t.equal(figure('Highest'), signed(nets[2] ?? 0));
  const empty = await admin.send(path, { act: 'resolve', step: 'preview' });
  t.equal(empty.status, 400);
  const again = await admin.send(path, { ...form, outcome: 'yes', step: 'preview' });
  t.match(again.body, /Balances that change<\/th><td class="n">3</);
});

t.test('a dispute is upheld with another outcome or a void question, or rejected', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  for (const status of ['upheld', 'void', 'rejected']) {
    const id = await makeOpenQuestion(app);
    const [forecast] = await makeForecasts(app, id, [{ prediction: true, confidence: 80 }]);
    await act(app, id, 'close');
    await act(app, id, 'resolve', { outcome: false, resolution_note: 'As reported.' });
    const reason = 'The register was corrected <b>yesterday</b> and says the opposite by now.';
    const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
      key: forecast?.agent.key ?? '',
      body: { reason },
    });
    t.match((await admin.read('/admin')).body, 'corrected &lt;b>yesterday', status);
    const path = `/admin/disputes/${filed.body.dispute.id}`;
    const same = { act: 'upheld', outcome: 'no', note: 'It is as it was.' };
    const wrong = await admin.send(path, same);
    t.equal(wrong.status, 409, 'the same outcome is no other one');
    t.match(wrong.body, /<details open[^>]*><summary>Uphold/);
    const fields = { act: status, note: 'The register is clear.', outcome: 'yes' };
    t.match((await admin.submit(path, fields)).body, 'The dispute is decided.');
    const late = await admin.send(path, fields);
    t.equal(late.status, 409);
    t.match(late.body, /role="alert"/, 'that it was decided is said');
    const { body } = await app.call('GET', `/api/questions/${id}`);
    const outcomes = { upheld: true, void: null, rejected: false };
    t.equal(body.question.outcome, outcomes[status as keyof typeof outcomes]);
    t.equal(body.question.status, status === 'void' ? 'voided' : 'resolved');
  }
});

t.test('content is hidden by its address and shown again', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const id = await makeOpenQuestion(app);
  const [forecast] = await makeForecasts(app, id, [{ prediction: true, confidence: 80 }]);
  const subject = `${app.url}/predictions/${forecast?.prediction_id}`;
  const act = { act: 'hide', kind: 'prediction', reason: 'It names a private person.' };
  t.match(
    (await admin.submit('/admin/content', { ...act, subject })).body,
    'The content is hidden.',
  );
  const isHidden = async () =>
    (await app.sql`select from predictions where hidden_at is not null`).length === 1;
  t.ok(await isHidden());
  const back = { ...act, act: 'restore', subject: forecast?.prediction_id ?? '' };
  t.match((await admin.submit('/admin/content', back)).body, 'The content is visible again.');
  t.notOk(await isHidden());
  const none = await admin.send('/admin/content', { ...act, subject: id });
  t.equal(none.status, 404);
  t.match(none.body, `value="${id}"`);
});

t.test('agents are found, suspended and made active again; people by their address', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const human = await makeHuman(app, 'owner@people.dev');
  const agent = await makeAgent(app, { human, name: 'Zebra One' });
  const found = await admin.read('/admin/agents?q=zebra');
  t.match(found.body, 'owner@people.dev');
  const reason = 'It floods the threads.';
  await admin.submit(`/admin/agents/${agent.id}`, { act: 'suspend', reason });
  t.match((await admin.read('/admin/agents?of=suspended')).body, 'Zebra One');
  await admin.submit(`/admin/agents/${agent.id}`, { act: 'restore', reason });
  t.notMatch((await admin.read('/admin/agents?of=suspended')).body, 'Zebra One');
  const people = await admin.read('/admin/people?q=OWNER@');
  t.match(people.body, '<strong>owner@people.dev</strong>');
  t.notMatch(people.body, 'boss@people.dev');
});

t.test('a file goes in line by line, and what is refused is said and kept', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const question = {
    source: 'file',
    source_id: '1',
    question: 'Will the file be read to its end?',
    category: 'society',
    closes_at: '2027-05-31T00:00:00Z',
    resolution_date: '2027-06-02T00:00:00Z',
  };
  const lines = [
    JSON.stringify({ ...question, publish: true }),
    'no JSON',
    JSON.stringify({ type: 'agent', name: 'From A File', model: 'gpt-4o' }),
    JSON.stringify({ ...question, source_id: '2', category: 'nothing' }),
    JSON.stringify({ type: 'thing' }),
  ];
  const text = lines.join('\n');
  const check = await admin.send('/admin/import', { lines: text });
  t.match(check.body, 'Ready to import: 2 questions, 1 agent, 0 forecasts, 0 resolutions.');
  t.equal((await app.sql`select from questions`).length, 0, 'nothing is in yet');
  const { status, body } = await admin.send('/admin/import', { lines: text, step: 'import' });
  t.equal(status, 200);
  t.match(body, '2 lines imported, 0 already there, 3 refused.');
  for (const row of [
    /<td class="n">2<\/td><td>This line is not a JSON object/,
    /<td class="n">4<\/td><td>&quot;nothing&quot; is not a category/,
    /<td class="n">5<\/td><td>Unknown type: thing/,
  ]) {
    t.match(body, row);
  }
  t.match(body, /<textarea[^>]*>no JSON\n\{/, 'the refused lines alone are there again');
  const again = await admin.send('/admin/import', { lines: lines[0] ?? '', step: 'import' });
  t.match(again.body, '0 lines imported, 1 already there, 0 refused.');
});

t.test('what agents wrote stays text', async (t) => {
  const app = await start(t);
  const admin = await logIn(app);
  const human = await makeHuman(app, 'x@people.dev');
  await makeAgent(app, { human, name: '<script>alert(1)' });
  const id = await makeOpenQuestion(app, { question: '"><img src=x onerror=alert(1)> is it?' });
  for (const path of ['/admin/agents', `/admin/questions/${id}`, '/admin/questions']) {
    const { status, body } = await admin.read(path);
    t.equal(status, 200, path);
    t.notMatch(body, /<script>alert|<img src=x/, path);
    t.notMatch(body, /style="/, path);
  }
});
