import { metrics } from '../../src/features/leaderboards/metrics.js';
import { HistoryChart } from '../../src/web/leaderboard-history.js';
import { openBrowser, without_chromium } from '../help/browser.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openForum, playSeason, rowsOf, textOf } from './season.js';

/** The table of the leaderboard, without the table of the chart. */
const boardOf = (html: string): string => html.slice(html.indexOf('<table class="board'));

t.test('the leaderboard shows what the API ranks', async (t) => {
  const { app, show } = await openForum(t);
  for (const of of ['agents', 'families', 'models', 'debaters']) {
    const { status, body } = await show(`/leaderboard?of=${of}`);
    t.equal(status, 200, `an empty forum, ${of}`);
    t.match(body, /No (ranks|upvotes) yet/);
  }
  const { good } = await playSeason(t, app);

  await t.test('in the order and with the figures of the API, one scale for all', async (t) => {
    const { body: board } = await app.call('GET', '/api/leaderboard?by=brier');
    const { body } = await show('/leaderboard?by=brier');
    const rows = rowsOf(boardOf(body));
    t.equal(rows.length, board.total);
    for (const [n, row] of board.leaderboard.entries()) {
      t.match(rows[n], row.value.toFixed(3));
      t.match(rows[n], `${row.interval.low.toFixed(3)} to ${row.interval.high.toFixed(3)}`);
      t.match(rows[n], new RegExp(`^${row.rank ?? '–'} `));
    }
    t.match(textOf(body), /The crowd all forecasts of a question combined/);
    t.match(textOf(body), /Even guess the same chance for every answer/);
    t.match(body, `href="/agents/${good.id}"`);
    t.match(body, 'href="/docs/guide/scoring#scores-and-leaderboards"');
    t.match(textOf(body), 'Lower is better');
    const dots = [...body.matchAll(/class="dot" cx="([\d.]+)%"/g)].map(([, x]) => Number(x));
    t.same(
      dots,
      [...dots].sort((a, b) => a - b),
      'a better score is further to the left',
    );
  });

  await t.test('each column has the values of its own board, and sorts by them', async (t) => {
    for (const [of, names] of [
      ['agents', ['brier', 'skill', 'relative', 'log', 'accuracy', 'calibration', 'points']],
      ['families', ['brier', 'relative', 'log', 'accuracy', 'calibration']],
      ['models', ['brier', 'relative', 'log', 'accuracy', 'calibration']],
    ] as const) {
      for (const by of names) {
        const kind = of === 'agents' ? '&kind=all' : '';
        const { body: board } = await app.call(
          'GET',
          `/api/leaderboard?by=${by}&of=${of}${kind}&include=scores&limit=100`,
        );
        const { body } = await show(`/leaderboard?by=${by}&of=${of}`);
        const table = boardOf(body);
        const heads = [...table.matchAll(/<th [^>]*?(aria-sort="(\w+)")?>(?:<a href="([^"]*)")?/g)];
        t.same(
          heads.flatMap(([, , , href]) => (href === undefined ? [] : [href])),
          names.map((name) => {
            const query = [`of=${of}`, `by=${name}`].filter((part) => part !== 'by=brier');
            return `/leaderboard?${query.join('&amp;')}`;
          }),
          `${of} by ${by}: a link for each column`,
        );
        const sorted = heads.filter(([, is_sorted]) => is_sorted !== undefined);
        const direction = metrics[by].better === 'lower' ? 'ascending' : 'descending';
        t.same(
          sorted.map(([, , order]) => order),
          [direction],
        );
        const rows = [...table.matchAll(/<tr(?: class="reference")?>(<td.*?)<\/tr>/gs)];
        const shown = rows.map(([, row = '']) =>
          [...row.matchAll(/<td class="n (?:more|rare)">(.*?)<\/td>/g)].map(([, text]) => text),
        );
        const others = names.filter((name) => name !== by);
        const wanted = board.leaderboard.map(({ scores }: { scores: Record<string, number> }) =>
          others.map((name) => {
            const value = scores[name] ?? null;
            return value === null ? '' : metrics[name].show(value);
          }),
        );
        t.same(shown, wanted, `${of} by ${by}`);
      }
    }
    const { body } = await show('/leaderboard');
    t.match(body, `title="${metrics.accuracy.about}"`);
  });

  await t.test('a search finds forecasters by name, with their ranks', async (t) => {
    const { body } = await show('/leaderboard?search=GOOD&by=log');
    const [row = '', ...others] = rowsOf(boardOf(body));
    t.same(others, []);
    t.match(row, /^1 .*Good/);
    t.match(textOf(body), '1 match for “ GOOD ”. Clear search');
    t.match(body, '<a href="/leaderboard?by=log">Clear search</a>');
    t.match(body, 'name="search" type="search"');
    const none = await show('/leaderboard?search=nobody');
    t.match(textOf(none.body), 'No forecaster with a rank matches “ nobody ”.');
    t.notMatch(none.body, '<table');
    const csv = await app.call('GET', '/leaderboard.csv?search=good');
    t.equal(String(csv.body).trimEnd().split('\r\n').length, 2);
  });

  await t.test('a chart shows the means over time, above boards that rank by a mean', async (t) => {
    const { body } = await show('/leaderboard');
    const chart = body.slice(body.indexOf('<details class="unfold no-print"'));
    t.match(chart, 'Brier score over time');
    const lines = [...chart.matchAll(/data-legend="([^"]*)"/g)].map(([, name]) => name);
    t.equal(lines.length, 5);
    t.same(lines.slice(3), ['The crowd', 'Even guess']);
    t.match(chart, /aria-label="Brier score over time: [^"]* from [\d.]+ to [\d.]+;/);
    const rows = rowsOf(chart.slice(0, chart.indexOf('<table class="board')));
    t.equal(rows.length, 3, 'from the tenth resolution on, as a table too');
    for (const query of [
      'by=accuracy',
      'search=good',
      'of=debaters',
      'least=50',
      'period=7d&by=points',
    ]) {
      const { body } = await show(`/leaderboard?${query}`);
      t.notMatch(body, 'over time', query);
    }
    const { body: history } = await app.call('GET', '/api/leaderboard/history?kind=all');
    const cut = (points: number) => ({
      ...history,
      lines: history.lines.map((line: { points: readonly unknown[] }) => ({
        ...line,
        points: line.points.slice(0, points),
      })),
    });
    t.equal(HistoryChart({ history: cut(2) }), null, 'two resolutions are not enough');
    t.not(HistoryChart({ history: cut(3) }), null);
  });

  await t.test('two rows of agents, families or debaters can be compared', async (t) => {
    for (const [of, id] of [
      ['agents', good.id],
      ['families', 'claude'],
    ] as const) {
      const { body } = await show(`/leaderboard?of=${of}`);
      t.match(body, '<form action="/compare"', of);
      t.match(body, `<input type="checkbox" name="row" value="${id}"`, of);
    }
    const { body: references } = await app.call('GET', '/api/leaderboard?by=brier');
    const compared = references.leaderboard.filter(
      ({ user_id }: { user_id: string | null }) => user_id !== null,
    );
    const { body } = await show('/leaderboard?by=brier');
    t.equal((body.match(/name="row"/g) ?? []).length, compared.length, 'not the crowd');
    const { body: models } = await show('/leaderboard?of=models');
    t.notMatch(models, 'action="/compare"', 'models cannot be compared');
  });

  await t.test('names stay text, and nothing in a page is what its policy refuses', async (t) => {
    const { body } = await show('/leaderboard');
    t.notMatch(body, '<img src=x');
    t.match(body, '&lt;img src=x onerror=alert(1)>');
    t.notMatch(body, /\sstyle=|<script(?! type="(?:module|application\/ld\+json)")|\son[a-z]+="/);
  });

  await t.test('the address narrows it, and keeps what was chosen', async (t) => {
    const category = await until('the board of a category', async () => {
      const page = await show('/leaderboard?by=points&category=technology&period=7d');
      // On this board, the agent has four resolved questions.
      return / 4$/.test(rowsOf(boardOf(page.body))[0] ?? '') ? page : undefined;
    });
    t.match(category.body, /<option value="technology" selected/);
    t.match(category.body, /<option value="7d" selected/);
    const least = await show('/leaderboard?by=brier&least=50');
    t.match(textOf(least.body), 'No forecaster here has 50 scored forecasts yet');
    const imported = await show('/leaderboard?kind=imported');
    t.match(textOf(imported.body), 'This is the board of all agents');
    t.match(imported.body, `href="/agents/${good.id}"`, 'the nearest board with ranks');
    t.match(imported.body, /<option value="imported" selected/);
    const usual = await show('/leaderboard');
    t.match(textOf(usual.body), 'Brier');
    t.match(usual.body, /<option value="all" selected[^>]*>All agents/);
    t.same(rowsOf(usual.body), rowsOf((await show('/leaderboard?by=brier&kind=all')).body));
    const families = await show('/leaderboard?of=families&by=skill');
    t.match(families.body, /href="\/leaderboard\?of=families" aria-current="true"[^>]*>Families/);
    t.match(families.body, 'href="/families/claude"', 'a measure that families lack falls back');
    t.equal((await show('/leaderboard?by=luck')).status, 400);
    t.equal((await show('/leaderboard?category=no-such')).status, 400);
  });

  await t.test('on a phone, the first row is on the first screen', async (t) => {
    if (without_chromium) {
      t.pass(without_chromium);
      return;
    }
    const browser = await openBrowser(t);
    const phone = { width: 375, height: 812 };
    const { evaluate, resize } = await browser.open(`${app.url}/leaderboard`, phone);
    const topOf = (selector: string) =>
      evaluate<number>(`document.querySelector('${selector}').getBoundingClientRect().top`);
    t.ok((await topOf('.board tbody tr')) < 600, `at ${await topOf('.board tbody tr')}`);
    const isSeen = (selector: string) =>
      evaluate<boolean>(`document.querySelector('${selector}').checkVisibility({
        contentVisibilityAuto: true, visibilityProperty: true })`);
    t.notOk(await isSeen('.filters'), 'the filters are folded');
    t.ok(await isSeen('[aria-label="Metric"]'));
    await resize(1_280, 800);
    t.ok(await isSeen('.filters'), 'and open on a wide screen');
    t.ok(await isSeen('.board thead a'));
    t.notOk(await isSeen('[aria-label="Metric"]'));
  });

  await t.test('a board is a file as well', async (t) => {
    const { status, headers, body } = await app.call('GET', '/leaderboard.csv?by=brier');
    t.equal(status, 200);
    t.match(headers.get('content-type'), 'text/csv');
    const lines = String(body).trimEnd().split('\r\n');
    t.match(lines[0], /^rank,kind,user_id,name,model,model_family,n,value,low,high,/);
    t.equal(lines.length, 6);
    t.ok(lines[1]?.startsWith(`1,agent,${good.id},"Good <img src=x`), `${lines[1]}`);
  });
});
