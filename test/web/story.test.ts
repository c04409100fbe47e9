import { Webhook } from 'standardwebhooks';
import type { Test } from 'tap';
import { startApp, type TestApp } from '../help/app.js';
import { type BrowserPage, openBrowser, without_chromium } from '../help/browser.js';
import { admin_email } from '../help/principals.js';
import { startReceiver } from '../help/receiver.js';
import { untilSettled } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';

/**
 * A person's first path through the pages in a browser, with and without scripts: an account, an
 * agent, a forecast that everyone sees immediately, the outcome, and the receipt.
 */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const receiver = await startReceiver();
t.teardown(receiver.close);
const app = await startApp(t, {
  env: {
    ADMIN_EMAILS: admin_email,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: receiver.ca_file,
  },
});
const browser = await openBrowser(t);
const operator = await makeHuman(app, admin_email);

const mailedLink = async ({ call }: TestApp, address: string): Promise<string> => {
  const found = await until(`a mail to ${address}`, async () => {
    const { body } = await call('GET', '/dev/outbox');
    return body.find(({ to }: { to: string }) => to === address)?.links[0] as string | undefined;
  });
  return found;
};

const password = 'correct horse battery';

/** Starts at the home page and signs up, until the account is verified and logged in. */
const signUp = async ({ page }: BrowserPage, address: string): Promise<void> => {
  await page.goto(app.url);
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('main').getByRole('link', { name: 'Sign up' }).click();
  await page.getByLabel('E-mail address').fill(address);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign up' }).click();
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor();
  await page.goto(await mailedLink(app, address));
  await page.getByRole('button', { name: 'Yes, this is my address' }).click();
  await page.getByLabel('E-mail address').fill(address);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'My agents' }).waitFor();
};

/** Registers an agent on the page and returns its key, which is shown once. */
const registerAgent = async ({ page }: BrowserPage, name: string): Promise<string> => {
  await page.goto(`${app.url}/account/agents`);
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Model').fill('claude-sonnet-4');
  await page.getByRole('button', { name: 'Register' }).click();
  return (await page.locator('#key').innerText()).trim();
};

/** Links an agent that registered itself, after an attempt with an invalid key. */
const linkAgent = async (t: Test, { page }: BrowserPage, name: string): Promise<string> => {
  const { body } = await app.call('POST', '/api/register', { body: { name, model: 'gpt-5' } });
  await page.goto(`${app.url}/link`);
  const key = page.getByLabel('key');
  await key.fill('sk_nonsense');
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  t.equal(await key.getAttribute('aria-invalid'), 'true', 'the field is marked');
  t.match(await page.getByRole('main').innerText(), /No agent has this key/);
  await key.fill(body.api_key);
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  await page.getByText('The agent is linked and can forecast now.').waitFor();
  return body.api_key;
};

/** A visitor who is logged in. */
const visitAs = async (token: string, javaScriptEnabled: boolean): Promise<BrowserPage> => {
  const visitor = await browser.visit({ javaScriptEnabled });
  const cookie = { name: 'session', value: token, url: app.url, httpOnly: true };
  await visitor.page.context().addCookies([cookie]);
  return visitor;
};

const predict = async (key: string, question: string, confidence: number) => {
  const reasoning = makeReasoning();
  const { status, body } = await app.call('POST', `/api/questions/${question}/predict`, {
    key,
    body: { prediction: true, confidence, reasoning },
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return { id: body.prediction.id as string, bottom_line: reasoning.slice(-60).trim() };
};

/** Opens a section first, and then confirms the action in it. */
const confirm = async ({ page }: BrowserPage, summary: string, button = summary): Promise<void> => {
  const opened = page.locator('details', { has: page.getByText(`${summary}…`, { exact: true }) });
  await opened.locator('summary').click();
  await opened.getByRole('button', { name: button, exact: true }).click();
};

const resolveAsYes = async (visitor: BrowserPage, question: string): Promise<void> => {
  const { page } = visitor;
  await page.goto(`${app.url}/admin/questions/${question}`);
  await confirm(visitor, 'Close now');
  await page.getByText('The question is closed.').waitFor();
  await page.getByRole('radio', { name: 'Yes' }).check();
  await page.getByLabel('Note').fill('The library announced it.');
  await page.getByRole('button', { name: 'Preview points' }).click();
  await page.getByText('Preview of the points for this outcome').waitFor();
  await page.getByRole('button', { name: 'Resolve and pay' }).click();
  await page.getByText('The question is resolved').waitFor();
};

/** Browsers also report refusals that the test expects. */
const is_refusal = /status of 4\d\d/;
const mistakesOf = (...visitors: readonly BrowserPage[]): readonly string[] =>
  visitors.flatMap(({ mistakes }) => mistakes).filter((text) => !is_refusal.test(text));

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with scripts' : 'without scripts';
  const mark = javaScriptEnabled ? 'lively' : 'quiet';

  t.test(`the first run of a person, ${how}`, async (t) => {
    const person = await browser.visit({ javaScriptEnabled });
    const { page } = person;
    await signUp(person, `${mark}@people.dev`);
    const [cookie] = await page.context().cookies();
    t.match(cookie, { name: 'session', httpOnly: true, sameSite: 'Lax' });
    const key = await registerAgent(person, `${mark} registered`);
    t.match(key, /^sk_/);
    const other_key = await linkAgent(t, person, `${mark} linked`);
    await page.goto(`${app.url}/account/agents`);
    for (const name of ['registered', 'linked']) {
      t.equal(await page.getByRole('link', { name: `${mark} ${name}` }).count(), 1);
    }
    t.notOk((await page.content()).includes(key), 'no later page shows the key');

    const question = await makeOpenQuestion(app);
    const seen = await browser.visit({ javaScriptEnabled });
    const address = `${app.url}/questions/${question}`;
    await seen.page.goto(address);
    /** Waits until the page shows the text. Without scripts, the test reloads the page. */
    const shows = async (text: string): Promise<number> => {
      const since = performance.now();
      const place = seen.page.getByRole('main').getByText(text).first();
      if (!javaScriptEnabled) {
        await until(`${text} on the page`, async () => {
          await seen.page.reload();
          return place.isVisible();
        });
        return 0;
      }
      await place.waitFor();
      return performance.now() - since;
    };
    if (javaScriptEnabled) await seen.page.locator('html.live').waitFor({ state: 'attached' });
    const { id } = await predict(key, question, 73);
    const late_ms = await shows('73%');
    t.ok(late_ms < allow(1_000), `the forecast was there after ${late_ms.toFixed()} ms`);
    if (!javaScriptEnabled) await predict(other_key, question, 91);
    const content = `The permit of branch ${mark} was granted already, which this does not consider.`;
    await seen.page.goto(`${address}?tab=discussion`);
    if (javaScriptEnabled) await seen.page.locator('html.live').waitFor({ state: 'attached' });
    await app.call('POST', `/api/questions/${question}/comments`, { key, body: { content } });
    await shows(content);

    const admin = await visitAs(operator.token, javaScriptEnabled);
    await resolveAsYes(admin, question);
    await shows('The library announced it.');
    await untilSettled(app.sql, question);
    const { body } = await app.call('GET', `/api/predictions/${id}/receipt`);
    await page.goto(`${app.url}/predictions/${id}`);
    t.match(await page.getByRole('main').innerText(), String(Math.abs(body.receipt.result.net)));
    t.same(mistakesOf(person, seen, admin), []);
  });

  t.test(`webhooks at the pages of an account, ${how}`, async (t) => {
    const { token } = await makeHuman(app);
    const person = await visitAs(token, javaScriptEnabled);
    const { page } = person;
    const path = `/${mark}`;
    await page.goto(`${app.url}/account/webhooks`);
    await page.getByRole('link', { name: 'New webhook' }).click();
    await page.getByLabel('Address').fill('http://people.dev/');
    await page.getByRole('checkbox', { name: 'prediction.placed' }).check();
    await page.getByRole('button', { name: 'Create' }).click();
    t.equal(await page.getByLabel('Address').getAttribute('aria-invalid'), 'true');
    await page.getByLabel('Address').fill(receiver.url(path));
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = (await page.locator('#signing-secret').innerText()).trim();
    await page.getByRole('link', { name: 'I have copied the secret' }).click();
    const hook = page.url();
    t.notOk((await page.content()).includes(secret), 'no later page shows the secret');
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('The test arrived.').waitFor();

    const agent = await makeAgent(app, { human: { token, email: '' } });
    await predict(agent.key, await makeOpenQuestion(app), 64);
    const [, first] = await receiver.waitFor(path, 2);
    const event = new Webhook(secret).verify(first?.body ?? '', first?.headers as never);
    t.match(event, { event: 'prediction.placed' });
    await until('it is delivered', async () => {
      await page.goto(hook);
      return (
        (await page.locator('#deliveries ~ *').getByText('delivered', { exact: true }).count()) > 0
      );
    });
    receiver.script(path, { status: 500 });
    await page.locator('#deliveries ~ *').getByRole('link', { name: 'prediction.placed' }).click();
    await page.getByRole('button', { name: /again/i }).click();
    const [, , again] = await receiver.waitFor(path, 3);
    t.equal(again?.headers['webhook-id'], first?.headers['webhook-id']);
    await until('the attempt is told', async () => {
      await page.reload();
      return page.getByText('answered 500').isVisible();
    });

    await page.goto(hook);
    await confirm(person, 'Rotate secret');
    const next_secret = (await page.locator('#signing-secret').innerText()).trim();
    t.not(next_secret, secret);
    await page.goto(hook);
    await confirm(person, 'Replay past events', 'Replay');
    await page.getByText('The replay has started').waitFor();
    const [, , , replayed] = await receiver.waitFor(path, 4);
    const { headers, body } = replayed!;
    t.match(new Webhook(next_secret).verify(body, headers as never), {
      event: 'prediction.placed',
    });
    await page.goto(hook);
    await confirm(person, 'Delete this webhook', 'Delete');
    await page.getByText('The webhook is deleted.').waitFor();
    t.same(mistakesOf(person), []);
  });

  t.test(`an admin hides a forecast and shows it again, ${how}`, async (t) => {
    const admin = await visitAs(operator.token, javaScriptEnabled);
    const { page } = admin;
    const question = await makeOpenQuestion(app);
    const { key } = await makeAgent(app, { human: await makeHuman(app) });
    const { id, bottom_line } = await predict(key, question, 58);
    const address = `${app.url}/questions/${question}`;
    const shown = (wanted: boolean) =>
      until(`the text is ${wanted ? '' : 'not '}there`, async () => {
        await page.goto(address);
        return (await page.content()).includes(bottom_line) === wanted;
      });
    await shown(true);
    await page.goto(`${app.url}/admin`);
    const summary = 'Hide a forecast’s text or a comment'.replace('’', "'");
    await page.getByText(`${summary}…`).click();
    await page
      .getByLabel('Address or id of the forecast or comment')
      .fill(`${app.url}/predictions/${id}`);
    await page.locator('#hide-reason').fill('It repeats an advertisement.');
    await page.getByRole('button', { name: 'Hide', exact: true }).click();
    await page.getByText('The content is hidden.').waitFor();
    await shown(false);
    await page.goto(`${app.url}/admin`);
    await page.getByText('Restore…').first().click();
    await page.locator(`#restore-${id}`).fill('A mistake of mine.');
    await page.getByRole('button', { name: 'Restore', exact: true }).click();
    await page.getByText('The content is visible again.').waitFor();
    await shown(true);
    t.same(mistakesOf(admin), []);
  });
}
