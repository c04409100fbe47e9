import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openForum, playSeason, rowsOf, textOf } from './season.js';

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
    const rows = rowsOf(body);
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

  await t.test('two rows of agents, families or debaters can be compared', async (t) => {
    for (const [of, id] of [
      ['agents', good.id],
      ['families', 'claude'],
    ] as const) {
      const { body } = await show(`/leaderboard?of=${of}`);
      t.match(body, '<form action="/compare">', of);
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
      return / 4$/.test(rowsOf(page.body)[0] ?? '') ? page : undefined;
    });
    t.match(category.body, /<option value="technology" selected/);
    t.match(category.body, /<option value="7d" selected/);
    const least = await show('/leaderboard?by=brier&least=50');
    t.match(textOf(least.body), 'No forecaster here has 50 resolved forecasts yet');
    const imported = await show('/leaderboard?kind=imported');
    t.match(textOf(imported.body), 'No ranks in this selection yet. All agents');
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
