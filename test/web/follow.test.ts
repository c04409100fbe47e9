import type { Test } from 'tap';
import { startSmtp } from '../features/mail/smtp.js';
import { startApp } from '../help/app.js';
import { type BrowserPage, openBrowser, without_chromium } from '../help/browser.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * A person follows a question, with and without scripts: its headline moves, the bell and an e-mail
 * say so, and the link in the e-mail ends the e-mails.
 */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const smtp = await startSmtp(t);
const app = await startApp(t, { env: { SMTP_URL: smtp.url } });
const browser = await openBrowser(t);
const owner = await makeHuman(app);

const predict = async (question_id: string, probability: number): Promise<void> => {
  const { key } = await makeAgent(app, { human: owner });
  const { status } = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key,
    body: { probability, scale: 'percent', reasoning: makeReasoning() },
  });
  if (status !== 201) throw new Error(`not predicted: ${status}`);
};
/** Undoes the line breaks and escapes of quoted-printable. */
const decode = (text: string): string =>
  text
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );

const chooseAlerts = async ({ page }: BrowserPage): Promise<void> => {
  await page.goto(`${app.url}/account/settings`);
  await page.getByLabel('A question that I follow moves').check();
  await page.locator('#mail').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Your e-mail settings are saved.').waitFor();
};

const walk = async (t: Test, has_scripts: boolean): Promise<void> => {
  const human = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  await predict(id, 30);
  await until('the first forecast counts', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
    return body.total_predictions === 1;
  });
  const context = await browser.context({ javaScriptEnabled: has_scripts });
  await context.addCookies([{ name: 'session', value: human.token, url: app.url }]);
  const page = await context.newPage();
  await chooseAlerts({ page } as BrowserPage);

  await page.goto(`${app.url}/questions/${id}`);
  await page.getByRole('button', { name: 'Follow', exact: true }).click();
  if (has_scripts) {
    await page.getByRole('button', { name: 'Following' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Following' }).waitFor();
  } else {
    await page.getByText('You follow this now.').waitFor();
    await page.getByRole('link', { name: /Will the reading room/ }).waitFor();
  }

  for (const probability of [90, 95, 97]) await predict(id, probability);
  const mail = await until(
    'the mail arrives',
    () => smtp.taken.find(({ to }) => to === `<${human.email}>`),
    60_000,
    100,
  );
  const text = decode(mail.text);
  t.match(text, /Will the reading room .*moved from 30% to \d\d%/);

  if (has_scripts) {
    await page.goto(app.url);
    await page.getByRole('link', { name: 'Notifications, 1 unread' }).click();
  } else {
    await page.goto(`${app.url}/account`);
    await page.getByRole('link', { name: 'Notifications' }).click();
  }
  await page.getByText(/moved from 30% to \d\d%/).waitFor();
  await page.getByRole('button', { name: 'Mark all as read' }).click();
  await page.getByText('All notifications are marked as read.').waitFor();

  const link = /\/unsubscribe\/[\w-]+/.exec(text)?.[0] ?? '';
  await page.goto(app.url + link);
  await page.getByRole('button', { name: 'Unsubscribe', exact: true }).click();
  await page.getByText('You get no more alerts.').waitFor();
  const { body } = await app.call('GET', '/api/me/account/mail', human);
  t.match(body, { alerts: [], digest: 'off' });

  await page.goto(`${app.url}/following`);
  await page.getByRole('button', { name: /^Unfollow/ }).click();
  await page.getByText('You do not follow this any more.').waitFor();
  await page.getByText('You follow nothing yet').waitFor();
  await context.close();
};

for (const has_scripts of [true, false]) {
  t.test(
    `${has_scripts ? 'with' : 'without'} scripts: follow, move, bell, mail, unsubscribe`,
    (t) => walk(t, has_scripts),
  );
}

t.test('who is not logged in logs in first and comes back', async () => {
  const id = await makeOpenQuestion(app);
  const context = await browser.context({});
  const page = await context.newPage();
  const human = await makeHuman(app);
  await page.goto(`${app.url}/questions/${id}`);
  await page.getByRole('button', { name: 'Follow', exact: true }).click();
  await page.getByLabel('E-mail address').fill(human.email);
  await page.getByLabel('Password').fill('correct horse battery');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Follow', exact: true }).click();
  await page.getByText('You follow this now.').waitFor();
  await context.close();
});
