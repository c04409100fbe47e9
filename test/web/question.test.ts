import { startApp, type TestApp } from '../help/app.js';
import { openBrowser, without_chromium } from '../help/browser.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { textOf } from './season.js';

const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

const read = async (app: TestApp, path: string): Promise<string> =>
  (await app.call('GET', path, { headers })).body;

const makePredictor = async (app: TestApp, model = 'claude-sonnet-4') => {
  const agent = await makeAgent(app, { human: await makeHuman(app), model });
  const predict = async (id: string, forecast: object, reasoning = makeReasoning()) => {
    const body = { ...forecast, reasoning };
    const placed = await app.call('POST', `/api/questions/${id}/predict`, { key: agent.key, body });
    if (placed.status !== 201) throw new Error(JSON.stringify(placed.body));
    return placed.body.prediction.id as string;
  };
  return { ...agent, predict };
};

const decide = async (app: TestApp, id: string, act: string, body: object): Promise<void> => {
  const path = `/api/admin/questions/${id}`;
  if (act === 'resolve') await app.call('POST', `${path}/close`, { admin: true });
  const { status } = await app.call('POST', `${path}/${act}`, { admin: true, body });
  if (status >= 300) throw new Error(`${act}: ${status}`);
};

t.test('a question without forecasts is whole, and says how to be the first', async (t) => {
  const app = await startApp(t);
  const description = 'By the first figure.\n\n- Later ones do not count.';
  const id = await makeOpenQuestion(app, { description });
  const answer = await app.call('GET', `/questions/${id}`, { headers });
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('vary'), 'Accept');
  const page: string = answer.body;
  for (const text of [
    'no forecasts yet',
    'href="/questions?category=society&amp;subcategory=benefits_public_good">Benefits &amp; Public Good</a>',
    '<p class="soft">No forecasts yet.</p>',
    '<li>Later ones do not count.</li>',
    `href="/questions/${id}?tab=data#snippet-title">Forecast this question</a>`,
    `href="/questions/${id}/feed.xml"`,
    'application/json+oembed',
    '"@type":"QAPage"',
    `<body data-live="question:${id} consensus:${id}">`,
  ]) {
    t.ok(page.includes(text), text);
  }
  t.notMatch(page, /style="|<script>|onclick=|undefined|NaN|\[object/);
  const data = await read(app, `/questions/${id}?tab=data`);
  t.match(data, `/api/questions/${id}/predict`);
  t.match(data, `href="/embed-builder?question=${id}"`);
});

t.test('the address answers each with what it asks for', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  const typeOf = async (accept: string): Promise<string> => {
    const answer = await app.call('GET', `/questions/${id}`, { headers: { accept } });
    t.equal(answer.headers.get('vary'), 'Accept');
    return (answer.headers.get('content-type') ?? '').split(';')[0] ?? '';
  };
  // Runs twice, because the second time the answers may come from the cache.
  for (const _ of [1, 2]) {
    t.equal(await typeOf('*/*'), 'text/html');
    t.equal(await typeOf('application/json'), 'application/json');
    t.equal(await typeOf('application/json;q=0.5, text/html'), 'text/html');
    t.equal(await typeOf('text/html;q=0.2, text/markdown;q=0.9'), 'text/markdown');
    t.equal(await typeOf('application/json;q=0, */*'), 'text/html');
  }
  const accept = { headers: { accept: 'application/json' } };
  const json = await app.call('GET', `/questions/${id}`, accept);
  t.same(json.body, (await app.call('GET', `/api/questions/${id}`)).body);
  const capitals = await read(app, `/questions/${id.toUpperCase()}`);
  t.match(capitals, `<link rel="canonical" href="${app.url}/questions/${id}"`);
  const brief = { headers: { accept: 'text/markdown' } };
  t.match((await app.call('GET', `/questions/${id}`, brief)).body, /^# /);
});

t.test('what is not there, and a draft, is a page that says so', async (t) => {
  const app = await startApp(t);
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const id of ['no-id', '00000000-0000-7000-8000-000000000000', draft]) {
    const answer = await app.call('GET', `/questions/${id}`, { headers });
    t.equal(answer.status, 404);
    t.match(answer.body, 'Page not found');
  }
});

t.test(
  'forecasts of each type have a headline, a chart, a table and a place by family',
  async (t) => {
    const app = await startApp(t);
    const one = await makePredictor(app);
    const other = await makePredictor(app, 'gpt-5');
    const binary = await makeOpenQuestion(app);
    await one.predict(binary, { probability: 70 });
    await other.predict(binary, { probability: 80 });
    const multi = await makeOpenQuestion(app, {
      question_type: 'multi',
      options: ['Ada', 'Bo', 'Cy'],
    });
    await one.predict(multi, { probabilities: { Ada: 20, Bo: 70, Cy: 10 } });
    const range = { min: 0, max: 1_000, unit: 'km' };
    const numeric = await makeOpenQuestion(app, { question_type: 'numeric', range });
    const quantiles = [200, 400, 700].map((value, n) => ({ value, p: [10, 50, 90][n] }));
    await one.predict(numeric, { quantiles });
    const days = { min: '2027-01-01T00:00:00Z', max: '2028-01-01T00:00:00Z' };
    const date = await makeOpenQuestion(app, { question_type: 'date', range: days });
    const months = ['2027-03-01T00:00:00Z', '2027-06-01T00:00:00Z', '2027-10-01T00:00:00Z'];
    await one.predict(date, {
      quantiles: months.map((value, n) => ({ value, p: [10, 50, 90][n] })),
    });
    const expected: readonly (readonly [string, RegExp, string])[] = [
      [binary, /<strong>7\d%<\/strong> <span>chance of Yes/, 'Median of the stated chances 75%'],
      [multi, /<strong>70%<\/strong> <span>chance of <bdi>Bo/, 'Median of the stated chances 70%'],
      [numeric, /<strong>400 km<\/strong> <span>median/, 'percentage 400 km'],
      [date, /<strong>1 Jun 2027<\/strong> <span>median/, 'percentage 1 Jun 2027'],
    ];
    for (const [id, figure, others] of expected) {
      const page = await until('the forecast', async () => {
        const body = await read(app, `/questions/${id}`);
        return figure.test(body) ? body : undefined;
      });
      t.match(textOf(page), others);
      t.match(textOf(page), 'weigh more. ');
      t.match(page, 'class="live-state"');
      t.match(page, /<svg [^>]*class="time-chart" role="img" aria-label="[^"]+"/);
      t.match(page, `href="/agents/${one.id}"`);
      t.notMatch(page, /undefined|NaN|\[object/);
      t.equal(page.includes('class="density"'), id === numeric || id === date);
      const data = await read(app, `/questions/${id}?tab=data`);
      t.match(data, /<th scope="col">Time \(UTC\)<\/th>/);
      const tab = await read(app, `/questions/${id}?tab=families`);
      t.match(tab, /aria-label="1 forecast of claude, /);
      const families = await read(app, `/questions/${id}?series=families&range=1d`);
      t.match(families, /data-series="claude"/);
      t.match(families, /aria-current="true">Day</);
    }
  },
);

t.test('a resolved question says first what happened, then what was expected', async (t) => {
  const app = await startApp(t);
  const agent = await makePredictor(app);
  const right = await makeOpenQuestion(app);
  const wrong = await makeOpenQuestion(app);
  const voided = await makeOpenQuestion(app);
  for (const id of [right, wrong, voided]) await agent.predict(id, { probability: 80 });
  await decide(app, right, 'resolve', { outcome: true, resolution_note: 'As the office said.' });
  await decide(app, wrong, 'resolve', { outcome: false });
  await decide(app, voided, 'void', { resolution_note: 'It was called off.' });
  const dispute = {
    reason: 'The figure that was published was a preliminary one, as its notes say.',
  };
  const body = { ...dispute, evidence_urls: ['https://www.reuters.com/final'] };
  await app.call('POST', `/api/questions/${right}/dispute`, { key: agent.key, body });
  const page = await until('the forecast is counted', async () => {
    const body = await read(app, `/questions/${right}`);
    return body.includes('No agent had forecast it') ? undefined : body;
  });
  t.match(page, /<strong dir="auto">Yes<\/strong>/);
  t.match(page, /Last forecast: <strong>80%<\/strong> chance of Yes\. The crowd was right\./);
  t.match(page, 'As the office said.');
  t.match(page, '"acceptedAnswer"');
  t.match(page, /Disputes about the outcome.*waiting for a decision.*preliminary one/s);
  t.match(page, /<summary>Changes \(\d\)<\/summary>.*Resolved/s);
  t.notMatch(page, 'Forecast this', 'nothing more can be forecast');
  await until('it is seen that the crowd was wrong', async () =>
    (await read(app, `/questions/${wrong}`)).includes('The crowd was wrong.'),
  );
  t.match(await read(app, `/questions/${voided}`), /<strong dir="auto">Voided.*called off/s);
});

t.test('texts of agents and admins stay texts, and only http links are links', async (t) => {
  const app = await startApp(t);
  const bad = '<img src=x onerror=alert(1)></script><script>alert(2)</script>';
  const id = await makeOpenQuestion(app, {
    question: `Is ${bad} shown as it was written, or does it run?`,
    description: `# ${bad}\n\n- [x](javascript:alert(3)) ${bad}\n\n**bold** javascript:alert(4)`,
    question_type: 'multi',
    options: [`${bad.slice(0, 90)}`, "it's '; rm -rf ~ #"],
    resolution_url: 'javascript:alert(5)',
  });
  const agent = await makePredictor(app);
  const text = makeReasoning().replace('EVIDENCE:', `EVIDENCE: ${bad} `);
  await agent.predict(id, { selected_option: bad.slice(0, 90), confidence: 60 }, text);
  const content = `${bad} and [here](javascript:alert(6)), which is said at some length by me.`;
  await app.call('POST', `/api/questions/${id}/comments`, { key: agent.key, body: { content } });
  const page = await until('the forecast and the comment', async () => {
    const tabs = ['summary', 'forecasts', 'discussion', 'families', 'data'];
    const bodies = await Promise.all(tabs.map((tab) => read(app, `/questions/${id}?tab=${tab}`)));
    const body = bodies.join();
    return body.includes('60%') && body.includes('said at some length') ? body : undefined;
  });
  t.notMatch(page, /<img src=x|<script>|href="javascript/);
  t.match(page, '&lt;img src=x onerror=alert(1)>');
  t.match(page, "it'\\''s '\\''; rm -rf", 'and no option ends the quotes of the command');
  const links = [...page.matchAll(/<a [^>]*href="(https?:[^"]+)"[^>]*>/g)];
  t.ok(links.length > 1);
  t.ok(links.every(([link]) => link.includes('rel="nofollow noopener ugc"')));
});

t.test('forecasts and comments go on by links, and are sorted by votes', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  const first = await makePredictor(app);
  const voted = await first.predict(id, { probability: 12 });
  const voter = await makePredictor(app);
  for (let n = 0; n < 10; n += 1) {
    const agent = n === 0 ? voter : await makePredictor(app);
    await agent.predict(id, { probability: 40 + n });
  }
  await app.call('POST', `/api/predictions/${voted}/upvote`, { key: voter.key });
  const page = await read(app, `/questions/${id}?tab=forecasts`);
  t.notMatch(page, `id="p-${voted}"`, 'the oldest is on the second page');
  const next = /href="([^"]+cursor=[^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
  t.match(await read(app, next ?? ''), `id="p-${voted}"`);
  const top = await read(app, `/questions/${id}?tab=forecasts&sort=top`);
  t.ok(top.indexOf(`id="p-${voted}"`) < top.indexOf('40% Yes') || !top.includes('40% Yes'));
  t.match(top, '1 vote for, 0 against');
  t.match(
    await read(app, `/questions/${id}?tab=forecasts&cursor=none&range=9y`),
    'This page of the list does not exist',
  );
});

t.test('threads are trees, and debates are those with replies', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  const [one, other] = [await makePredictor(app), await makePredictor(app)];
  const say = async (key: string, path: string, content: string): Promise<string> =>
    (await app.call('POST', path, { key, body: { content } })).body.comment.id;
  const root = await say(
    one.key,
    `/api/questions/${id}/comments`,
    'The newest survey points the other way: has anybody compared the two of them?',
  );
  await say(
    other.key,
    `/api/comments/${root}/reply`,
    'Its sample is from before the change, so that it says little about this autumn.',
  );
  await say(
    other.key,
    `/api/questions/${id}/comments`,
    'Nobody answers this remark about the harbour, which is a thread of its own.',
  );
  const page = await read(app, `/questions/${id}?tab=discussion`);
  t.match(page, /<li class="comment".*has anybody compared.*<ul class="thread">.*Its sample is/s);
  t.match(page, 'Nobody answers this remark');
  const debates = await read(app, `/questions/${id}?tab=discussion&comments=debates`);
  t.match(debates, 'Its sample is from before');
  t.notMatch(debates, 'Nobody answers this remark');
});

t.test('hidden reasons are not shown while the question is open', async (t) => {
  const app = await startApp(t, { env: { HIDE_REASONING: 'true' } });
  const id = await makeOpenQuestion(app);
  const agent = await makePredictor(app);
  await agent.predict(id, { probability: 70 });
  const page = await until('the forecast', async () => {
    const body = await read(app, `/questions/${id}`);
    return body.includes('70% Yes') ? body : undefined;
  });
  t.match(page, 'The reasoning is shown once the question closes');
  t.notMatch(page, /Evidence and analysis|class="chip"/);
});

const skip = without_chromium;
t.test('an open page shows a new forecast, and its chart under the keys', { skip }, async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  const agent = await makePredictor(app);
  const browser = await openBrowser(t);
  const page = await browser.open(`${app.url}/questions/${id}`, { width: 1_000, height: 800 });
  const has = (selector: string) =>
    page.evaluate<boolean>(`!!document.querySelector('${selector}')`);
  await until('the socket', () => has('html.live'));
  const made = await agent.predict(id, { probability: 64 });
  await until('the forecast', () => has(`[id="p-${made}"]`));
  await until('the chart', () => has('.plot[data-ready]'));
  await page.page.locator('.plot').focus();
  await page.page.keyboard.press('End');
  await page.page.getByText('64%').first().waitFor();
  t.match(await page.page.locator('.tip').textContent(), '64%');
  t.same(page.mistakes, []);
  t.ok(page.requests.every((url) => new URL(url).host === new URL(app.url).host));
});
