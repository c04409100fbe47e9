import { timeText } from '../../src/kit/format.js';
import { act } from '../help/settling.js';
import { makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { openForum, rowsOf, showWithout, textOf } from './season.js';

const mixture = {
  chance: {
    questions: 7,
    headline_loss: 0.5,
    losses: [0.6, 0.5, 0.4, 0.45],
    weights: [0.1, 0.2, 0.4, 0.3],
  },
  number: { questions: 0, headline_loss: null, losses: null, weights: [0.5, 0.5] },
};

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
  t.match(textOf(empty), /No question is resolved yet\. No measurement is in force yet/);
  t.notMatch(textOf(empty), /0 resolved/);
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
  t.match(
    textOf(page),
    /Measurement 2 is in force since .* ρ = 0\.5000\. Measurement 3 comes into force on/,
    'number 3 is not in force',
  );
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

t.test(
  'it says how many are resolved, and when the next measurement comes into force',
  async (t) => {
    const { app, show } = await openForum(t);
    for (let n = 0; n < 2; n += 1) {
      const id = await makeOpenQuestion(app);
      await act(app, id, 'close');
      await act(app, id, 'resolve', { outcome: true, evidence_urls: [] });
    }
    const put = (number: number, fitted_at: Date, from_at: Date) => app.sql`
    insert into consensus_fits (number, rho, measured, questions, mixture, fitted_at, from_at)
    values (${number}, 0.5, 0.4, 9, ${JSON.stringify(mixture)}::text::json, ${fitted_at}, ${from_at})`;
    const now = Date.now();
    const at = (minutes: number) => new Date(now + minutes * 60_000);
    const seen = (text: string, without: string) =>
      showWithout(show, '/method', without).then((page) => t.match(textOf(page), text));
    await put(1, at(-1), at(4));
    const coming = `Measurement 1 comes into force on ${timeText(at(4))}`;
    await seen(
      `2 questions are resolved. No measurement is in force yet, so all candidates weigh the same. ${coming}`,
      'The first measurement',
    );
    await seen('Not measured yet. The loss is', 'The first measurement');
    await app.sql`delete from consensus_fits`;
    await put(1, new Date('2026-01-02T00:00:30Z'), new Date('2026-01-02T00:05:30Z'));
    await seen('Measurement 1 is in force since 2 Jan 2026, 00:05 UTC', coming);
    await seen('The next one is made soon after 3 Jan 2026, 00:00 UTC', coming);
    await seen('Measured on 7 resolved questions with forecasts by at least three owners.', coming);
  },
);
