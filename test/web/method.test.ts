import { t } from '../help/tap.js';
import { openForum, rowsOf, showWithout, textOf } from './season.js';

t.test('the weights and scores of the candidates, in the API and on the page', async (t) => {
  const { app, show } = await openForum(t);
  const get = async (query = '') => (await app.call('GET', `/api/consensus/fits${query}`)).body;
  t.same(await get(), { total: 0, fits: [], next_cursor: null });
  const { status, body: empty } = await show('/method');
  t.equal(status, 200);
  t.same(
    rowsOf(empty)
      .filter((row) => row.includes('%'))
      .map((row) => row.slice(-7)),
    ['25.0% –', '25.0% –', '25.0% –', '25.0% –', '50.0% –', '50.0% –'],
    'before the first fit, all weights are equal',
  );
  const mixture = {
    chance: {
      questions: 7,
      headline_loss: 0.5,
      losses: [0.6, 0.5, 0.4, 0.45],
      weights: [0.1, 0.2, 0.4, 0.3],
    },
    number: { questions: 0, headline_loss: null, losses: null, weights: [0.5, 0.5] },
  };
  for (const [number, when, fit] of [
    [1, '2 days', null],
    [2, '1 day', mixture],
    [3, '-1 day', { ...mixture, chance: { ...mixture.chance, questions: 8 } }],
  ] as const) {
    await app.sql`
      insert into consensus_fits (number, rho, measured, questions, mixture, fitted_at, from_at)
      select ${number}, 0.5, 0.4, 9, ${fit && JSON.stringify(fit)}::text::json,
        moment - interval '1 minute', moment
      from (select now() - ${when}::interval as moment) m`;
  }
  const page = await showWithout(show, '/method', '25.0% –');
  t.match(textOf(page), /Measurement 2, in force since .* ρ = 0\.5000/, 'number 3 is not in force');
  t.same(
    rowsOf(page)
      .slice(0, 5)
      .map((row) => /[\d.]+(% [\d.]+)?$/.exec(row)?.[0]),
    ['10.0% 0.6000', '20.0% 0.5000', '40.0% 0.4000', '30.0% 0.4500', '0.5000'],
  );
  const { total, fits, next_cursor } = await get('?limit=2');
  t.equal(total, 3);
  t.same(
    fits.map((fit: { number: number }) => fit.number),
    [3, 2],
  );
  t.match(fits[1].mixture.chance, {
    questions: 7,
    headline_loss: 0.5,
    candidates: [
      { name: 'median', weight: 0.1, loss: 0.6 },
      { name: 'mean_log_odds', weight: 0.2, loss: 0.5 },
      { name: 'pooled', weight: 0.4, loss: 0.4 },
      { name: 'half_extremized', weight: 0.3, loss: 0.45 },
    ],
  });
  const rest = await get(`?limit=2&cursor=${next_cursor}`);
  t.match(rest, { fits: [{ number: 1, mixture: null }], next_cursor: null });
});
