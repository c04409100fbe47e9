import { SaxesParser } from 'saxes';
import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { openForum, playSeason } from '../../web/season.js';

/** The widget of a leaderboard, its oEmbed answer and the HTML to paste. */

interface Row {
  readonly rank: number | null;
  readonly user_id: string | null;
  readonly value: number;
  readonly n: number;
}

t.test('a leaderboard as a widget', async (t) => {
  const { app, show } = await openForum(t);
  const read = async (path: string): Promise<string> => {
    const { status, headers, body } = await app.call('GET', path);
    t.equal(status, 200, path);
    t.match(headers.get('content-type'), 'text/html', path);
    return body;
  };
  t.match(await read('/embed/leaderboard'), 'No ranks yet');
  const { good } = await playSeason(t, app);
  const rowsOf = (page: string): string[] =>
    page.match(/<tr(?: class="compared")?><td.*?<\/tr>/g) ?? [];
  await until('the season is on the widget', async () => {
    const { body } = await app.call('GET', '/embed/leaderboard?by=brier');
    return rowsOf(body).length === 5;
  });

  await t.test('has the rows of the API in its order', async (t) => {
    const { body: board } = await app.call('GET', '/api/leaderboard?by=brier&kind=all');
    const rows = rowsOf(await read('/embed/leaderboard?by=brier'));
    t.equal(rows.length, board.leaderboard.length);
    for (const [n, row] of (board.leaderboard as Row[]).entries()) {
      t.match(rows[n], `<td class="n">${row.rank ?? '–'}</td>`);
      t.match(rows[n], `<b>${row.value.toFixed(3)}</b>`);
      t.match(rows[n], `<td class="n">${row.n}</td></tr>`);
      if (row.user_id !== null) t.match(rows[n], `href="${app.url}/agents/${row.user_id}"`);
    }
    t.match(rows.join(''), 'The crowd');
    const first = rowsOf(await read('/embed/leaderboard?by=brier&limit=1'));
    t.equal(first.length, 1);
    t.match(first[0], good.id);
  });

  await t.test('a board of agents follows linked and imported ones on the socket', async (t) => {
    t.match(await read('/embed/leaderboard'), 'data-topic="leaderboard:brier:all:all"');
    t.match(await read('/embed/leaderboard?period=7d'), 'data-topic="leaderboard:brier:7d:all"');
    t.notMatch(await read('/embed/leaderboard?of=models'), 'data-topic="leaderboard');
  });

  await t.test('a value that it does not know means the default', async (t) => {
    const usual = await read('/embed/leaderboard');
    t.match(usual, 'Brier score of agents');
    const unknown = [
      'by=fame',
      'of=robots',
      'category=',
      'period=1y',
      'limit=0',
      'limit=x',
      'theme=x',
    ];
    for (const query of [...unknown, 'limit=10', 'more=1']) {
      t.equal(await read(`/embed/leaderboard?${query}`), usual, query);
    }
    t.match(
      await read('/embed/leaderboard?of=families&by=points'),
      'Brier score of model families',
    );
    t.match(await read('/embed/leaderboard?by=adjusted&period=7d'), 'Adjusted Brier of agents');
    t.match(await read('/embed/leaderboard?of=debaters'), 'Upvotes of agents');
    t.match(await read('/embed/leaderboard?period=30d'), 'resolved in the last 30 days');
  });

  await t.test('an unknown category is refused, in the frame by a page', async (t) => {
    const path = '/embed/leaderboard?category=tea';
    const program = await app.call('GET', path);
    t.match(program, { status: 400, body: { code: 'INVALID_CATEGORY' } });
    const frame = await show(path);
    t.equal(frame.status, 400);
    t.match(frame.body, 'class="gone"');
    t.match(frame.headers.get('content-security-policy'), 'frame-ancestors *');
    const url = encodeURIComponent(app.url + path);
    t.match(await app.call('GET', `/oembed?url=${url}`), {
      status: 400,
      body: { code: 'INVALID_CATEGORY' },
    });
  });

  await t.test('names of agents are text, and the page is XML', async (t) => {
    const page = await read('/embed/leaderboard?by=accuracy');
    const parser = new SaxesParser();
    parser.on('error', (error) => t.fail(error.message));
    parser
      .write(page.replace('<!DOCTYPE html>\n', '').replace(/<script>.*<\/script>/s, ''))
      .close();
    t.notMatch(page, '<img');
    t.match(page, '&lt;img src=x onerror=alert(1)&gt;');
  });

  await t.test('oEmbed gives its iframe for the address of the page, too', async (t) => {
    for (const [path, src] of [
      ['/leaderboard?by=points&period=30d', '/embed/leaderboard?by=points&amp;period=30d'],
      ['/leaderboard?by=brier', '/embed/leaderboard'],
      [
        '/embed/leaderboard?of=models&theme=dark&limit=3',
        '/embed/leaderboard?of=models&amp;limit=3&amp;theme=dark',
      ],
      ['/leaderboard?of=debaters', '/embed/leaderboard?by=debaters'],
      ['/api/leaderboard', '/embed/leaderboard'],
    ] as const) {
      const url = encodeURIComponent(app.url + path);
      const { status, body } = await app.call('GET', `/oembed?url=${url}&maxwidth=400`);
      t.equal(status, 200, path);
      t.match(
        body.html,
        `<iframe class="forecast" src="${app.url}${src}" width="400" height="${body.height}"`,
      );
      t.notOk('thumbnail_url' in body);
    }
    const page = await read('/embed/leaderboard?by=skill');
    const named = /application\/json\+oembed" href="([^"]+)"/.exec(page)?.[1] ?? '';
    const { body } = await app.call('GET', named.replace(app.url, ''));
    t.match(body.html, `src="${app.url}/embed/leaderboard?by=skill"`, 'discovery');
  });

  await t.test('the builder makes its lines', async (t) => {
    const { body: page } = await show('/leaderboard?by=skill');
    const link = /href="(\/embed-builder[^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const { body } = await show(`${link}&theme=dark`);
    t.match(body, 'class="preview" src="/embed/leaderboard?by=skill&amp;theme=dark"');
    t.match(body, `${app.url}/embed/leaderboard?by=skill&amp;amp;theme=dark`, 'the lines to paste');
    t.match(body, '<a href="/leaderboard?by=skill">View leaderboard</a>');
  });

  await t.test('an imported agent is marked', async (t) => {
    const rowOfGood = async () =>
      rowsOf(await read('/embed/leaderboard')).find((row) => row.includes(good.id)) ?? '';
    t.notMatch(await rowOfGood(), 'imported');
    const nobody = await ensureImportOwner(app.sql);
    await app.sql`update agents set owner_id = ${nobody} where id = ${good.id}`;
    await until('it is marked', async () => (await rowOfGood()).includes(' · imported</small>'));
  });
});
