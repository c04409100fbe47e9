import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';
import { makeVisitor, problemAt } from '../help/visitor.js';

/** Settings of an account, and the notifications of its agents. */

const app = await startApp(t, { roles: ['api'], env: no_limits });
const password = 'correct horse battery';
const settings = '/account/settings';

const setUp = async () => {
  const human = await makeHuman(app);
  return { human, visitor: makeVisitor(app.url, human.token) };
};
const logIn = async (email: string, secret = password) => {
  const visitor = makeVisitor(app.url);
  const { path } = await visitor.send('/account/login', { email, password: secret });
  return { visitor, is_in: path === '/account' };
};

t.test('the overview counts what a person has and begins where there is nothing', async (t) => {
  const { human, visitor } = await setUp();
  t.match((await visitor.open('/account')).text, /verified .*0 agents 0 webhooks .*Get started/);
  const agent = await makeAgent(app, { human });
  t.match((await visitor.open('/account')).text, new RegExp(`1 agent .*${agent.name}`));
});

t.test('a name is changed', async (t) => {
  const { visitor } = await setUp();
  const shown = await visitor.send(settings, { act: 'name', name: 'Grace' });
  t.match(shown, { path: `${settings}?done=name`, text: /Your name is saved/ });
  t.match(shown.html, 'value="Grace"');
  const wrong = await visitor.send(settings, { act: 'name', name: 'n'.repeat(81) });
  t.match(problemAt(wrong, 'name'), { text: /80/, invalid: true, tied: true, focus: true });
});

t.test('a password is changed with the old one, and other sessions end', async (t) => {
  const { human, visitor } = await setUp();
  const other = (await logIn(human.email)).visitor;
  const change = (current_password: string, next: string) =>
    visitor.send(settings, { act: 'password', current_password, password: next });
  const wrong = await change('wrong', 'another battery');
  t.match(problemAt(wrong, 'current_password'), {
    text: /not the password of your account/,
    focus: true,
  });
  t.match(problemAt(await change(password, 'short'), 'password'), {
    text: /^Must have at least 10/,
  });
  t.match((await change(password, 'another battery')).text, /All other sessions have ended/);
  t.equal((await visitor.open(settings)).status, 200);
  t.match((await other.open(settings)).path, /login/);
  t.notOk((await logIn(human.email)).is_in);
  t.ok((await logIn(human.email, 'another battery')).is_in);
});

t.test('sessions are shown, and end one by one or together', async (t) => {
  const { human, visitor } = await setUp();
  const logged_in = await Promise.all([1, 2, 3].map(() => logIn(human.email)));
  const others = logged_in.map((one) => one.visitor);
  const shown = await visitor.open(settings);
  const ids = [...shown.html.matchAll(/name="session" value="([^"]+)"/g)].map(([, id]) => id ?? '');
  t.equal(ids.length, 3, 'this one has no button');
  const stranger = (await setUp()).visitor;
  await stranger.send(settings, { act: 'session', session: ids[0] ?? '' });
  const count = async () => {
    const paths = await Promise.all(others.map(async (one) => (await one.open('/account')).path));
    return paths.filter((path) => path === '/account').length;
  };
  t.equal(await count(), 3, 'a stranger ends none');
  t.match((await visitor.send(settings, { act: 'session', session: ids[0] ?? '' })).text, /ended/);
  t.equal(await count(), 2);
  t.match(
    (await visitor.send(settings, { act: 'sessions' })).text,
    /All other sessions have ended/,
  );
  t.equal(await count(), 0);
  t.equal((await visitor.open('/account')).path, '/account');
});

t.test('an account is deleted with its password and by nothing less', async (t) => {
  const { human, visitor } = await setUp();
  const agent = await makeAgent(app, { human });
  for (const [own_password, text] of [
    ['', /^Must not be empty/],
    ['wrong password', /^This is not the password/],
  ] as const) {
    const shown = await visitor.send(settings, { act: 'delete', own_password });
    t.match(problemAt(shown, 'own_password'), { text, invalid: true, focus: true });
    t.match(shown.html, /<details[^>]* open><summary>Delete my account/);
  }
  t.equal((await visitor.send(settings, {})).status, 400, 'a form that says nothing does nothing');
  const gone = await visitor.send(settings, { act: 'delete', own_password: password });
  t.match(gone.text, /Your account is deleted/);
  t.equal(visitor.state.cookie, '');
  t.notOk((await logIn(human.email)).is_in);
  const { body } = await app.call('GET', '/api/me', { key: agent.key });
  t.equal(body.user.owner_linked, false);
});

t.test('notifications and suggestions of a person are those of its agents', async (t) => {
  const { human, visitor } = await setUp();
  const agent = await makeAgent(app, { human });
  const stranger = await makeAgent(app, { human: await makeHuman(app) });
  const suggest = (key: string, question: string) =>
    app.call('POST', '/api/questions/suggest', {
      key,
      body: {
        question,
        category: 'society',
        subcategory: 'benefits_public_good',
        closes_at: new Date(Date.now() + 9 * 86_400_000).toISOString(),
      },
    });
  const own = await suggest(agent.key, 'Will the <b>night</b> train run again this year?');
  await suggest(stranger.key, 'Will the foreign train run again this year?');
  const waiting = await visitor.open('/account/suggestions');
  t.match(waiting.text, /Will the <b>night<\/b> train .* waiting for review/);
  t.notMatch(waiting.text, /foreign/);
  const id = own.body.question.id;
  await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true });
  t.match((await visitor.open('/account/suggestions')).html, `href="/questions/${id}"`);
  const notices = await visitor.open('/account/notifications');
  t.match(notices.text, /suggested is published: “Will the <b>night<\/b> train/);
  t.match(notices.text, /Unread \(1\)/);
  const until = /name="until" value="([^"]*)"/.exec(notices.html)?.[1] ?? '';
  const after = await visitor.send('/account/notifications', { until });
  t.match(after.text, /All notifications are marked as read\..*Unread \(0\)/);
  const of_agent = await app.call('GET', '/api/me/notifications', agent);
  t.equal(of_agent.body.unread, 1, "the agent's own state is separate");
  const other = await (await setUp()).visitor.open('/account/notifications');
  t.match(other.text, /No notifications yet/);
});
