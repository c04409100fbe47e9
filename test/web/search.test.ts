import { startApp } from '../help/app.js';
import { findBarriers, openBrowser, without_chromium } from '../help/browser.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { hostile, textOf } from './season.js';

/** The search of the header: a page of results, and suggestions in a browser with scripts. */

const app = await startApp(t, { roles: ['api'] });
const human = await makeHuman(app);
await makeAgent(app, { human, name: `Lamp ${hostile}`, model: 'gpt-5.5' });
const questions = {
  nvidia: `Will Nvidia ship ${hostile} before the summer of this year?`,
  anthropic: 'Will Anthropic open an office in Zürich before the summer?',
  waymo: 'Will Waymo carry paying passengers in London this year?',
  tokyo: '東京オリンピックは延期されますか、それとも中止ですか?',
};
const ids: Record<string, string> = {};
for (const [name, question] of Object.entries(questions)) {
  ids[name] = await makeOpenQuestion(app, { question });
}

const headers = { accept: 'text/html' };
const show = (path: string) => app.call('GET', path, { headers });

t.test('the page of results has groups, chips and links, as plain text', async (t) => {
  const { status, body } = await show('/search?q=lamp');
  t.equal(status, 200);
  t.match(body, '<form action="/search">', 'the search of the header');
  t.match(textOf(body), 'Agents Lamp &lt;img');
  t.notMatch(body, '<img src=x');
  const gpt = await show('/search?q=gpt6');
  t.match(gpt.body, 'href="/families/gpt"');
  const guide = await show('/search?q=webhooks');
  t.match(guide.body, 'href="/docs/guide/webhooks"');
  const both = await show('/search?q=summer');
  t.match(both.body, `href="/questions/${ids['nvidia']}"`);
  t.match(both.body, `href="/questions/${ids['anthropic']}"`);
  const only = await show('/search?q=summer&in=agents');
  t.match(textOf(only.body), 'No results in agents for “ summer ”. Search everything');
  t.match(textOf((await show('/search')).body), 'Search for questions, agents');
  t.equal((await show(`/search?q=${'a'.repeat(201)}`)).status, 400);
  t.match((await show('/opensearch.xml')).body, '/search?q={searchTerms}');
});

t.test('a typing error finds what was meant, and says so', async (t) => {
  for (const [typed, meant, name] of [
    ['nvidea', 'nvidia', 'nvidia'],
    ['antropic', 'anthropic', 'anthropic'],
    ['waymo+londn', 'waymo london', 'waymo'],
  ] as const) {
    const { body } = await show(`/search?q=${typed}`);
    t.match(textOf(body), `No results for “ ${typed.replace('+', ' ')} ”. Did you mean ${meant} ?`);
    t.match(body, `href="/questions/${ids[name]}"`);
  }
  const { body } = await show('/search?q=zzzzzz');
  t.match(textOf(body), 'No results for “ zzzzzz ”. All questions');
  t.match((await show('/questions?q=nvidea')).body, 'href="/search?q=nvidea"');
});

t.test('in a browser', async (t) => {
  if (without_chromium) {
    t.pass(without_chromium);
    return;
  }
  const browser = await openBrowser(t);
  const viewport = { width: 1_000, height: 700 };

  await t.test('without scripts, Enter opens the results', async (t) => {
    const { page } = await browser.visit({ javaScriptEnabled: false, viewport });
    await page.goto(`${app.url}/`);
    await page.fill('#search', 'waymo londn');
    await page.press('#search', 'Enter');
    await page.waitForURL('**/search?q=waymo+londn');
    await page.getByRole('link', { name: questions.waymo }).click();
    await page.waitForURL(`**/questions/${ids['waymo']}`);
    t.pass('the question is open');
  });

  await t.test('suggestions come while one types; arrows, Enter and Escape work', async (t) => {
    const visit = await browser.visit({ viewport });
    const { page, mistakes, requests } = visit;
    await page.goto(`${app.url}/about`);
    await page.keyboard.press('/');
    const field = page.getByRole('combobox');
    const options = page.getByRole('option');
    await page.keyboard.type('n');
    await page.keyboard.type('videa');
    await options.first().waitFor();
    t.equal(await options.first().textContent(), questions.nvidia, 'a typing error is corrected');
    t.equal(await page.locator('#say').textContent(), '1 suggestion for nvidia.');
    t.equal(await field.getAttribute('aria-expanded'), 'true');
    t.same(await findBarriers(visit), []);
    await page.keyboard.press('ArrowDown');
    t.equal(await field.getAttribute('aria-activedescendant'), 'suggestion-0');
    t.equal(await options.first().getAttribute('aria-selected'), 'true');
    await page.keyboard.press('ArrowUp');
    t.equal(await field.getAttribute('aria-activedescendant'), null, 'back in the field');
    await page.keyboard.press('ArrowUp');
    t.equal(await options.last().getAttribute('aria-selected'), 'true', 'and around');
    await page.keyboard.press('Escape');
    await options.first().waitFor({ state: 'hidden' });
    t.equal(await field.inputValue(), 'nvidea', 'the text stays');
    await page.fill('#search', '東');
    await options.first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/questions/${ids['tokyo']}`);
    const asked = requests.filter((url) => url.includes('/api/search'));
    t.notOk(
      asked.some((url) => url.endsWith('q=n')),
      'one letter is too little',
    );
    t.same(mistakes, []);
  });

  await t.test('hostile names stay text, and a click opens them', async (t) => {
    const { page, mistakes } = await browser.visit({ viewport });
    await page.goto(`${app.url}/agents`);
    await page.fill('#search', 'lamp');
    const option = page.getByRole('option', { name: 'Lamp' });
    await option.waitFor();
    t.equal(await option.textContent(), `Lamp ${hostile} (gpt-5.5)`);
    await option.click();
    await page.waitForURL('**/agents/*');
    t.same(mistakes, []);
  });
});
