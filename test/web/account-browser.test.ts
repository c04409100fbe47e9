import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { startHookApp } from '../features/webhooks/app.js';
import { no_limits } from '../help/app.js';
import { openBrowser, without_chromium } from '../help/browser.js';
import { makeAgent, makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';

/** The account pages in a real browser: webhooks without scripts, accessibility, copying a key. */

const options = { skip: without_chromium };
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

t.test('the account', options, async (t) => {
  const { app, receiver } = await startHookApp(t, no_limits);
  const browser = await openBrowser(t);
  const email = 'ada@example.org';
  const password = 'correct horse battery';

  t.test('without scripts a person comes from /link to a webhook that is called', async (t) => {
    const context = await browser.context({ javaScriptEnabled: false });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await page.goto(`${app.url}/link`);
    await page.getByRole('link', { name: 'Sign up' }).click();
    await page.getByLabel('E-mail address').fill(email);
    await page.getByLabel('Password').fill(password);
    await press('Sign up');
    await page.getByRole('link', { name: 'the outbox' }).click();
    await page.getByRole('link', { name: 'Open the link' }).first().click();
    await press('Yes, this is my address');
    await page.getByLabel('E-mail address').fill(email);
    await page.getByLabel('Password').fill('wrong password');
    await press('Log in');
    t.ok(await page.locator('#password:focus').count(), 'the focus is where it went wrong');
    await page.getByLabel('Password').fill(password);
    await press('Log in');
    const agent = await makeAgent(app);
    await page.getByLabel("The agent's key").fill(agent.key);
    await press('Link');
    t.match(await page.textContent('main'), /The agent is linked and can forecast now/);
    t.notOk(await page.getByRole('button', { name: 'Unlink' }).isVisible(), 'a second step');
    await page.getByText('Unlink this agent…').click();
    t.ok(await page.getByRole('button', { name: 'Unlink' }).isVisible());
    await page.getByRole('link', { name: 'Webhooks' }).first().click();
    await page.getByRole('link', { name: 'New webhook' }).click();
    await page.getByLabel('Address').fill(receiver.url('/hook'));
    await page.getByLabel('question.created').check();
    await press('Create');
    await page.getByRole('link', { name: 'I have copied the secret' }).click();
    await press('Send a test');
    t.match(await page.textContent('main'), /The test arrived/);
    t.equal(receiver.of('/hook').length, 1);
    await press('Log out');
    t.match(page.url(), /\/account\/login\?done=out$/);
  });

  t.test('every page of the account is open to all, in both themes and narrow', async (t) => {
    const human = await makeHuman(app);
    const name = 'W'.repeat(50);
    const { id } = await makeAgent(app, { human, name });
    const hook = await app.call('POST', '/api/webhooks', {
      token: human.token,
      body: { url: receiver.url(`/${'long'.repeat(60)}`), events: ['question.created'] },
    });
    const paths = [
      '/account/login',
      '/account/signup',
      '/account/check-mail',
      '/account/forgot',
      '/auth/verify',
      '/auth/verify?token=x',
      '/auth/reset',
      '/auth/reset?token=x',
      '/dev/outbox',
      '/account',
      '/account/agents',
      `/account/agents/${id}`,
      '/account/settings',
      '/account/notifications',
      '/account/suggestions',
      '/account/webhooks',
      '/account/webhooks/new',
      `/account/webhooks/${hook.body.id}`,
      `/account/webhooks/${hook.body.id}/edit`,
    ];
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.context({
        colorScheme,
        viewport: { width: 320, height: 700 },
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      const cookie = { name: 'session', value: human.token, url: app.url };
      await context.addCookies([cookie]);
      const page = await context.newPage();
      const mistakes: string[] = [];
      page.on('console', (said) => said.type() === 'error' && mistakes.push(said.text()));
      page.on('pageerror', (error) => mistakes.push(String(error)));
      page.on('request', (one) => one.url().startsWith(app.url) || mistakes.push(one.url()));
      for (const path of paths) {
        const answer = await page.goto(app.url + path);
        t.equal(answer?.status(), 200, path);
        await page.evaluate(() => {
          for (const one of document.querySelectorAll('details')) one.open = true;
        });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        t.ok(over <= 0, `${path} is ${over} px too wide`);
        // Scripts that a test evaluates are not subject to the content policy.
        await page.evaluate(axe);
        const found = await page.evaluate('axe.run()');
        const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
        t.same(
          violations.map((one) => `${one.id} ${one.nodes[0]?.html}`),
          [],
          `${path} ${colorScheme}`,
        );
      }
      t.same(mistakes, []);
      await page.goto(`${app.url}/account/agents/${id}`);
      await page.getByText('Replace key…').click();
      await page.getByRole('button', { name: 'Replace key' }).click();
      await page.getByRole('button', { name: 'Copy' }).first().click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      t.equal(copied, await page.textContent('#key'));
      await context.close();
    }
  });
});
