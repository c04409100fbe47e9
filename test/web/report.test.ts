import { startApp } from '../help/app.js';
import { type BrowserPage, openBrowser, without_chromium } from '../help/browser.js';
import { admin_email } from '../help/principals.js';
import { closeQuestion, decideAndSettle } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/**
 * Reporting in a browser, with and without scripts: the link beside a text, the form, the queue of
 * the moderators and the public log. Then sharing, readable addresses, and disputes on pages.
 */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const app = await startApp(t, { env: { ADMIN_EMAILS: admin_email, LIMIT_COMMENTS: '100000' } });
const browser = await openBrowser(t);
const operator = await makeHuman(app, admin_email);
const author_owner = await makeHuman(app);
const author = await makeAgent(app, { human: author_owner, name: 'Opus Long View' });

const visitAs = async (token: string, javaScriptEnabled: boolean): Promise<BrowserPage> => {
  const visitor = await browser.visit({ javaScriptEnabled });
  const cookie = { name: 'session', value: token, url: app.url, httpOnly: true };
  await visitor.page.context().addCookies([cookie]);
  return visitor;
};

/** Browsers also report refusals that the test expects. */
const is_refusal = /status of 4\d\d/;
const mistakesOf = (...visitors: readonly BrowserPage[]): readonly string[] =>
  visitors.flatMap(({ mistakes }) => mistakes).filter((text) => !is_refusal.test(text));

const makeContent = async (mark: string) => {
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}`;
  const reasoning = makeReasoning();
  const placed = await app.call('POST', `${path}/predict`, {
    key: author.key,
    body: { prediction: true, confidence: 70, reasoning },
  });
  const content = `Buy your ${mark} umbrellas in this shop before the season begins, says everybody.`;
  await app.call('POST', `${path}/comments`, { key: author.key, body: { content } });
  return { question_id, prediction_id: placed.body.prediction.id as string, content };
};

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with scripts' : 'without scripts';
  const mark = javaScriptEnabled ? 'lively' : 'quiet';

  t.test(`report → queue → hidden → log, ${how}`, async (t) => {
    const { question_id, content } = await makeContent(mark);
    const discussion = `${app.url}/questions/${question_id}?tab=discussion`;
    const { email } = await makeHuman(app);

    // A visitor is sent to log in, and comes back to the form.
    const visitor = await browser.visit({ javaScriptEnabled });
    const { page } = visitor;
    await page.goto(discussion);
    await page.locator('.comment').getByRole('link', { name: 'Report' }).click();
    await page.getByLabel('E-mail address').fill(email);
    await page.getByLabel('Password').fill('correct horse battery');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Report this comment' }).waitFor();
    t.match(await page.locator('blockquote').innerText(), content);
    await page.getByRole('radio', { name: 'Something else' }).check();
    await page.getByRole('button', { name: 'Send report' }).click();
    const note = page.getByLabel('Note for the moderators');
    t.equal(await note.getAttribute('aria-invalid'), 'true', 'this reason needs a note');
    await note.fill('It sells umbrellas.');
    await page.getByRole('button', { name: 'Send report' }).click();
    await page.getByText('The moderators have your report.').waitFor();
    await page.getByRole('link', { name: 'Back to the comment' }).click();
    await page.getByText(content).waitFor();
    await page.locator('.comment').getByRole('link', { name: 'Report' }).click();
    await page.getByRole('radio', { name: 'Spam' }).check();
    await page.getByRole('button', { name: 'Send report' }).click();
    await page.getByText('You have already reported this.').waitFor();

    const admin = await visitAs(operator.token, javaScriptEnabled);
    await admin.page.goto(`${app.url}/admin`);
    await admin.page
      .getByRole('navigation', { name: 'Administration' })
      .getByText('Reports')
      .click();
    const card = admin.page.locator('article', { hasText: content });
    t.match(await card.innerText(), /1 report[\s\S]*Something else[\s\S]*It sells umbrellas/);
    await card.getByText('Hide…', { exact: true }).click();
    t.match(await card.innerText(), 'Everybody can read this reason.');
    await card.locator('details[open]').getByLabel('Reason').fill(`Advertising of ${mark} goods.`);
    await card.locator('details[open]').getByRole('button', { name: 'Hide' }).click();
    await admin.page.getByText('The case is decided.').waitFor();
    t.equal(await admin.page.getByText(content).count(), 0, 'the queue is empty');

    await page.goto(discussion);
    t.notOk((await page.content()).includes(content), 'the comment is hidden');
    await page.getByRole('contentinfo').getByRole('link', { name: 'Moderation' }).click();
    const row = page.getByRole('row', { name: `Advertising of ${mark} goods.` });
    t.match(await row.innerText(), /Comment hidden[\s\S]*Will the reading room/);
    t.notOk((await page.content()).includes(content), 'and is not in the log');
    t.same(mistakesOf(visitor, admin), []);
  });

  t.test(`everything can be reported and shared from its own page, ${how}`, async (t) => {
    const { question_id, prediction_id } = await makeContent(mark);
    const { token } = await makeHuman(app);
    const person = await visitAs(token, javaScriptEnabled);
    const { page } = person;
    for (const [path, button, title] of [
      [`/questions/${question_id}`, 'Report this question', 'Report this question'],
      [`/predictions/${prediction_id}`, 'Report this forecast', 'Report this forecast'],
      [`/agents/${author.id}`, 'Report this agent', 'Report this agent'],
    ] as const) {
      await page.goto(app.url + path);
      await page.getByRole('button', { name: 'Share or report' }).click();
      const shared = await page.getByLabel('Address of this page').inputValue();
      const is_agent = path.startsWith('/agents');
      t.equal(shared, app.url + (is_agent ? '/a/Opus-Long-View' : path));
      const copy = page.getByRole('button', { name: 'Copy link' });
      t.equal(await copy.count(), javaScriptEnabled ? 1 : 0);
      t.ok(await page.getByRole('img', { name: 'Share card' }).isVisible());
      await page.getByRole('link', { name: button }).click();
      await page.getByRole('heading', { name: title }).waitFor();
    }
    for (const path of ['/leaderboard', '/families/claude']) {
      await page.goto(app.url + path);
      await page.getByRole('button', { name: 'Share or report' }).click();
      t.equal(await page.getByLabel('Address of this page').inputValue(), app.url + path);
    }
    t.same(mistakesOf(person), []);
  });

  t.test(`an owner disputes a resolution for an agent and withdraws it, ${how}`, async (t) => {
    const { question_id } = await makeContent(mark);
    const sibling = await makeAgent(app, { human: author_owner });
    await app.call('POST', `/api/questions/${question_id}/predict`, {
      key: sibling.key,
      body: { prediction: false, confidence: 60, reasoning: makeReasoning() },
    });
    await closeQuestion(app, question_id);
    await decideAndSettle(app, question_id, 'resolve', { outcome: true });
    const address = `${app.url}/questions/${question_id}`;
    const link = { name: 'Dispute this resolution' };

    const stranger = await visitAs((await makeHuman(app)).token, javaScriptEnabled);
    await stranger.page.goto(address);
    await stranger.page.getByRole('link', link).click();
    await stranger.page.getByText('None of your agents forecast this question.').waitFor();
    t.equal(await stranger.page.getByRole('button', { name: 'File' }).count(), 0);

    const owner = await visitAs(author_owner.token, javaScriptEnabled);
    const { page } = owner;
    await page.goto(address);
    await page.getByRole('link', link).click();
    await page.getByLabel('Agent').selectOption({ label: author.name });
    await page.getByLabel('What is wrong with the outcome?').fill('Too short.');
    await page.getByRole('button', { name: 'File the dispute' }).click();
    const reason = page.getByLabel('What is wrong with the outcome?');
    t.equal(await reason.getAttribute('aria-invalid'), 'true');
    const text = 'The register shows that the room opened one day after the term had begun.';
    await reason.fill(text);
    await page.getByLabel('Addresses of evidence').fill('https://register.city-archive.org/doors');
    await page.getByRole('button', { name: 'File the dispute' }).click();
    await page.getByText('The dispute is filed.').waitFor();
    await page.goto(address);
    await page.getByText(text).waitFor();
    await page.getByRole('link', link).click();
    await page.getByRole('button', { name: 'Withdraw' }).click();
    await page.getByText('The dispute is withdrawn.').waitFor();
    const { body } = await app.call('GET', `/api/questions/${question_id}/disputes`);
    t.match(body.disputes, [{ status: 'withdrawn', user_id: author.id, reason: text }]);
    t.same(mistakesOf(owner, stranger), []);
  });
}

t.test('a device with a menu for sharing gets a button for it', async (t) => {
  const { page } = await browser.visit();
  await page.addInitScript(() => {
    Object.assign(navigator, {
      share: (shared: { url: string }) => {
        document.title = `shared ${shared.url}`;
        return Promise.resolve();
      },
    });
  });
  await page.goto(`${app.url}/families/claude`);
  await page.getByRole('button', { name: 'Share or report' }).click();
  await page.getByRole('button', { name: 'Share', exact: true }).click();
  t.equal(await page.title(), `shared ${app.url}/families/claude`);
});
