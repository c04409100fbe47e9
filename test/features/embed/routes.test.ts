import { startApp } from '../../help/app.js';
import { act, predict as predictAs } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The widget and oEmbed as served, for every question type and status. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });

const predict = async (id: string, forecast: Readonly<Record<string, unknown>>): Promise<void> => {
  await predictAs(app, agent, id, forecast);
  await until('the consensus', async () => {
    const consensus = await app.call('GET', `/api/questions/${id}/consensus`);
    return consensus.body.total_predictions === 1;
  });
};

/** The text that a reader sees, without title, style and script. */
const textOf = (page: string): string =>
  page
    .replace(/<head>.*<\/head>/s, '')
    .replaceAll(/<script>.*<\/script>/gs, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');

const options = ['Ganymede & Co', 'Callisto', 'Europa'];

t.test('a binary question shows its figures without a script', async (t) => {
  const id = await makeOpenQuestion(app, { question: 'Will 2 < 3 & "four" be in the paper?' });
  const before = await app.call('GET', `/embed/${id}`);
  t.match(textOf(before.body), /Open closes .* No forecasts yet 0 forecasts/);
  await predict(id, { prediction: true, confidence: 80 });
  const { status, headers, body } = await app.call('GET', `/embed/${id}`);
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  t.match(
    textOf(body),
    /80% chance of Yes Spread of the forecasts .* 1 forecast by AI agents, last on/,
  );
  const title = `<a href="${app.url}/questions/${id}" title="Will 2 &lt; 3 &amp; &quot;four&quot;`;
  t.ok(body.includes(title), 'the title leads to the page');
  t.ok(textOf(body).includes('Will 2 &lt; 3 &amp; &quot;four&quot; be in the paper?'));
  t.match(body, /<rect class="part" width="80%"/);
});

t.test('a multi question shows its options, and which of them happened', async (t) => {
  const id = await makeOpenQuestion(app, { question_type: 'multi', options });
  await predict(id, { selected_option: 'Callisto', confidence: 60 });
  const open = await app.call('GET', `/embed/${id}`);
  t.match(
    textOf(open.body),
    /60% chance of Callisto Ganymede &amp; Co 20% Callisto 60% Europa 20%/,
  );
  await act(app, id, 'close');
  await act(app, id, 'resolve', { correct_options: ['Europa'], resolution_note: 'As reported.' });
  const page = await until('the resolution', async () => {
    const { body } = await app.call('GET', `/embed/${id}`);
    return textOf(body).includes('Resolved') && textOf(body);
  });
  t.match(page, /Europa The crowd was wrong\. Last forecast: 60% for Callisto/);
  t.match(page, / Europa \(this happened\)/);
});

t.test('the chart has a line for what is forecast, from the first forecast on', async (t) => {
  const id = await makeOpenQuestion(app);
  const empty = await app.call('GET', `/embed/${id}?view=chart`);
  t.notMatch(empty.body, /class="time-chart"/);
  await predict(id, { prediction: true, confidence: 80 });
  const page = await until('the chart', async () => {
    const { body } = await app.call('GET', `/embed/${id}?view=chart`);
    return body.includes('class="time-chart"') && body;
  });
  t.match(page, /data-series="Chance of Yes"/);
  t.match(page, /aria-label="The consensus over time\. 80% chance of Yes · 1 forecast/);
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  await predict(multi, { selected_option: 'Europa', confidence: 60 });
  const lines = await until('the lines', async () => {
    const { body } = await app.call('GET', `/embed/${multi}?view=chart`);
    return body.includes('class="keys"') && body;
  });
  t.match(textOf(lines), /Europa 60% Ganymede &amp; Co 20% Callisto 20%/);
});

t.test('the outcome is what counts once there is one', async (t) => {
  const outcomes = [
    [true, 'right', 'was right'],
    [false, 'wrong', 'was wrong'],
  ] as const;
  for (const [outcome, sign, words] of outcomes) {
    const id = await makeOpenQuestion(app);
    await predict(id, { prediction: true, confidence: 80 });
    await act(app, id, 'close');
    await act(app, id, 'resolve', { outcome, resolution_note: 'As reported.' });
    for (const view of ['card', 'chart', 'compact']) {
      const page = await until('the resolution', async () => {
        const { body } = await app.call('GET', `/embed/${id}?view=${view}`);
        return body.includes('class="verdict"') && body;
      });
      const figure = outcome ? 'figure"><bdi>Yes' : 'figure not"><bdi>No';
      t.ok(page.includes(`<span class="${figure}</bdi>`), view);
      t.match(page, new RegExp(`<b class="${sign}">The crowd ${words}\\.</b>`), view);
      t.match(textOf(page), /Last forecast: 80% chance of Yes/, view);
    }
  }
});

t.test('every status has its own words', async (t) => {
  const draft = await makeOpenQuestion(app, { publish: false });
  const closed = await makeOpenQuestion(app);
  const voided = await makeOpenQuestion(app);
  const resolved = await makeOpenQuestion(app);
  await act(app, closed, 'close');
  await act(app, voided, 'void', { reason: 'The event was called off.' });
  await act(app, resolved, 'close');
  await act(app, resolved, 'resolve', { outcome: false, resolution_note: 'As reported.' });
  const say = (id: string, words: RegExp) =>
    until(String(words), async () => {
      const { status, body } = await app.call('GET', `/embed/${id}?view=compact`);
      return status === 200 && words.test(textOf(body));
    });
  t.ok(await say(closed, /^ ?Closed resolves by/));
  t.ok(await say(voided, /^ ?Voided without an outcome/));
  t.ok(await say(resolved, /^ ?Resolved on \d.* No No agent had forecast it/));
  for (const as of [{}, { admin: true }]) {
    const { status, body } = await app.call('GET', `/embed/${draft}`, as);
    t.equal(status, 404, 'a draft');
    t.match(textOf(body), /Question not found/);
  }
});

t.test('an unknown question is a page with status 404', async (t) => {
  const ids = ['01a1f8db-ec60-711e-9e0d-233d8b99a44d', 'nonsense', '%3Cscript%3E', 'x'.repeat(200)];
  for (const id of ids) {
    const { status, headers, body } = await app.call('GET', `/embed/${id}?theme=dark`);
    t.equal(status, 404, id);
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    t.match(headers.get('content-security-policy'), /frame-ancestors \*$/);
    t.match(body, /data-theme="dark" class="card"/);
    t.notMatch(body, /<script/);
  }
});

t.test('views and themes are what is asked for, and the usual ones where unknown', async (t) => {
  const id = await makeOpenQuestion(app);
  const look = async (query: string) => {
    const { status, body } = await app.call('GET', `/embed/${id}${query}`);
    return [status, /data-theme="(\w+)" class="(\w+)"/.exec(body)?.slice(1).join()];
  };
  t.same(await look(''), [200, 'auto,card']);
  t.same(await look('?view=chart&theme=light'), [200, 'light,chart']);
  t.same(await look('?view=compact&theme=dark'), [200, 'dark,compact']);
  t.same(await look('?view=hologram&theme=%22%3E%3Cscript%3E'), [200, 'auto,card']);
  t.same(await look('?view=constructor&theme=__proto__&lang=xx'), [200, 'auto,card']);
});

t.test('the page lets nothing in, everybody frame it, and is not sent twice', async (t) => {
  const id = await makeOpenQuestion(app);
  const { headers, body } = await app.call('GET', `/embed/${id}`);
  const policy = headers.get('content-security-policy') ?? '';
  t.match(policy, /^default-src 'none'; script-src 'sha256-\S{44}'; style-src 'sha256-\S{44}';/);
  t.match(policy, /base-uri 'none'; form-action 'none'; frame-ancestors \*$/);
  t.equal(headers.get('x-frame-options'), null);
  t.equal(headers.get('x-content-type-options'), 'nosniff');
  const hosts = [...body.matchAll(/(?:src|href|action)="([a-z]+:\/\/[^/"]+)/g)].map(
    ([, host]) => host,
  );
  t.same([...new Set(hosts)], [app.url]);
  const etag = headers.get('etag') ?? '';
  const again = await app.call('GET', `/embed/${id}`, { headers: { 'if-none-match': etag } });
  t.equal(again.status, 304);
  t.equal(again.body, '');
  const framed = await app.call('GET', '/account/login');
  t.match(framed.headers.get('content-security-policy'), /frame-ancestors 'none'/);
});

t.test('oEmbed gives one iframe for an address of this service', async (t) => {
  const id = await makeOpenQuestion(app, { question: 'Will "this" <b>be</b> quoted rightly?' });
  const page = await app.call('GET', `/embed/${id}?theme=dark`);
  const found = /type="application\/json\+oembed" href="([^"]+)"/.exec(page.body)?.[1] ?? '';
  const { pathname, search } = new URL(found.replaceAll('&amp;', '&'));
  const { status, body } = await app.call('GET', pathname + search);
  t.equal(status, 200);
  t.match(body, { version: '1.0', type: 'rich', provider_name: 'Prediction Forum', width: 600 });
  t.equal(body.title, 'Will "this" <b>be</b> quoted rightly?');
  t.match(
    body.html,
    new RegExp(`^<iframe class="forecast" src="${app.url}/embed/${id}\\?theme=dark" width="600"`),
  );
  t.match(body.html, /title="Will &quot;this&quot; &lt;b&gt;be/);
  const question = encodeURIComponent(`${app.url}/api/questions/${id}`);
  const units = `${app.url}/api/questions/${id}/chart.png?width=600`;
  t.match(body, { thumbnail_url: units, thumbnail_width: 1200, thumbnail_height: 940 });
  const small = await app.call('GET', `/oembed?url=${question}&maxwidth=300&maxheight=160`);
  t.match(small.body, { width: 300, height: 160, thumbnail_url: undefined });
  t.match(small.body.html, /width="300" height="160"/);
  const tiny = await app.call('GET', `/oembed?url=${question}&maxwidth=50&maxheight=40`);
  t.match(tiny.body, { width: 50, height: 40 });
});

t.test('oEmbed knows no other address, and no draft', async (t) => {
  const id = await makeOpenQuestion(app);
  const draft = await makeOpenQuestion(app, { publish: false });
  const others = [
    `${app.url}/embed/${draft}`,
    `${app.url}/embed/01a1f8db-ec60-711e-9e0d-233d8b99a44d`,
    `${app.url}/embed/nonsense`,
    `${app.url}/health`,
    `https://evil.example/embed/${id}`,
    `${app.url}@evil.example/embed/${id}`,
    `${app.url.replace('//', '//user:secret@')}/embed/${id}`,
    `javascript:${app.url}/embed/${id}`,
    `/embed/${id}`,
    'nonsense',
  ];
  for (const url of others) {
    const answer = await app.call('GET', `/oembed?url=${encodeURIComponent(url)}`);
    t.match(answer, { status: 404, body: { code: 'QUESTION_NOT_FOUND' } }, url);
  }
  const url = encodeURIComponent(`${app.url}/embed/${id}`);
  for (const query of ['', '?url=', `?url=${url}&format=xml`, `?url=${url}&maxwidth=0`]) {
    const answer = await app.call('GET', `/oembed${query}`);
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});
