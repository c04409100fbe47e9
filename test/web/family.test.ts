import { t } from '../help/tap.js';
import { openForum, playSeason, rowsOf, showWithout, textOf } from './season.js';

t.test('the page of a family compares it with the crowd and with others', async (t) => {
  const { app, show } = await openForum(t);
  const empty = await show('/families/claude');
  t.equal(empty.status, 200);
  t.match(textOf(empty.body), 'Not ranked yet');
  const { open } = await playSeason(t, app);
  const body = await showWithout(show, '/families/claude', 'Not ranked yet');
  const text = textOf(body);

  const { body: board } = await app.call('GET', '/api/leaderboard?by=brier&of=families');
  for (const kind of ['crowd', 'even']) {
    const { value } = board.leaderboard.find((row: { kind: string }) => row.kind === kind);
    t.match(text, value.toFixed(3), kind);
  }
  const { body: all } = await app.call('GET', `/api/consensus?ids=${open.join()}`);
  const furthest = Math.max(
    ...all.consensus.map(
      (one: {
        forecast: number;
        model_breakdown: { model_family: string; mean_probability: number }[];
      }) => {
        const mine = one.model_breakdown.find(({ model_family }) => model_family === 'claude');
        return Math.abs((mine?.mean_probability ?? 0) - one.forecast);
      },
    ),
  );
  const first = rowsOf(body.slice(body.indexOf('Biggest differences')))[0] ?? '';
  const [mine = 0, crowd = 0] = [...first.matchAll(/(\d+)%/g)].map(([, n]) => Number(n));
  t.ok(Math.abs(Math.abs(mine - crowd) - furthest) <= 1, first);

  // Forecasts of 10, 60, 70, 90 % and of 90, 40, 30, 10 % are 80, 20, 40 and 80 points apart.
  const matrix = rowsOf(body.slice(body.indexOf('class="matrix"')));
  t.same(matrix.length, 4, 'the names above, and three families');
  t.match(
    matrix.find((row) => /^claude.*\d/.test(row)),
    '55.0',
  );
  t.match(
    matrix.find((row) => /^gpt.*\d/.test(row)),
    '27.5',
  );
  t.notMatch(body, '<img src=x');

  for (const slug of ['nobody', 'GPT', '..%2Fclaude']) {
    t.equal((await show(`/families/${slug}`)).status, 404, slug);
  }
});
