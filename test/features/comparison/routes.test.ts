import { max_scores } from '../../../src/features/comparison/store.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { act, predict } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { openForum, playSeason } from '../../web/season.js';
import { addAgents, addGroups, addHuman, addScores } from '../leaderboards/world.js';

/** Comparisons of two forecasters. The figures are computed again from the same scores. */

const z = 1.959963984540054;
const near = (a: number, b: number, tolerance = 1e-5) => Math.abs(a - b) <= tolerance;

t.test('figures of two agents equal those of independent loops', async (t) => {
  const app = await startApp(t, {});
  const owner_id = await addHuman(app.sql);
  const [a = '', b = ''] = await addAgents(app.sql, [
    { owner_id, balance: 0 },
    { owner_id, balance: 0 },
  ]);
  const resolved_at = new Date();
  const made = Array.from({ length: 120 }, (_, n) => ({
    question_id: makeId(),
    a: { stated: 50 + ((n * 37) % 51), hit: n % 3 !== 0 },
    b: { stated: n % 10 === 0 ? 50 + ((n * 37) % 51) : 50 + ((n * 23) % 51), hit: n % 3 !== 0 },
  }));
  const scoreOf = (agent_id: string, side: 'a' | 'b') =>
    made.map((one) => ({
      agent_id,
      category: 'technology',
      question_id: one.question_id,
      resolved_at,
      ...one[side],
    }));
  // Each also has scores on questions of its own, which do not count.
  const alone = { category: 'technology', stated: 100, hit: true, resolved_at };
  await addScores(app.sql, [
    ...scoreOf(a, 'a'),
    ...scoreOf(b, 'b'),
    { ...alone, agent_id: a },
    { ...alone, agent_id: b },
  ]);

  const brierOf = ({ stated, hit }: { stated: number; hit: boolean }) =>
    (1 - (hit ? stated : 100 - stated) / 100) ** 2;
  const n = made.length;
  let [wins, ties, sum] = [0, 0, 0];
  const means = { a: 0, b: 0 };
  for (const one of made) {
    const difference = brierOf(one.a) - brierOf(one.b);
    if (Math.abs(difference) < 1e-12) ties += 1;
    else if (difference < 0) wins += 1;
    sum += difference;
    means.a += brierOf(one.a) / n;
    means.b += brierOf(one.b) / n;
  }
  t.ok(ties > 0 && wins > 0, 'there are wins and ties');
  let squares = 0;
  for (const one of made) squares += (brierOf(one.a) - brierOf(one.b) - sum / n) ** 2;
  const half = z * Math.sqrt(squares / (n - 1) / n);
  const rate = (wins + ties / 2) / n;
  const middle = (rate + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const reach = (z / (1 + z ** 2 / n)) * Math.sqrt((rate * (1 - rate)) / n + z ** 2 / (4 * n ** 2));

  const { status, body } = await app.call('GET', `/api/compare?a=${a}&b=${b}`);
  t.equal(status, 200);
  const { win_rate, brier_difference, ...counts } = body.resolved;
  t.match(counts, { n, wins, ties, losses: n - wins - ties });
  t.ok(near(win_rate.value, 100 * rate, 0.01));
  t.ok(near(win_rate.interval.low, 100 * (middle - reach), 0.01));
  t.ok(near(win_rate.interval.high, 100 * (middle + reach), 0.01));
  t.ok(near(brier_difference.value, sum / n));
  t.ok(near(brier_difference.interval.low, sum / n - half));
  t.ok(near(brier_difference.interval.high, sum / n + half));
  for (const side of ['a', 'b'] as const) {
    t.equal(body[side].brier.n, n);
    t.ok(near(body[side].brier.value, means[side]));
    let ece = 0;
    for (const bin of body[side].calibration.bins) {
      const own = made
        .map((one) => one[side])
        .filter(({ stated }) => Math.min(Math.floor(stated / 10), 9) === bin.from / 10);
      t.equal(bin.n, own.length);
      const stated = own.reduce((all, one) => all + one.stated / 100, 0);
      const hits = own.filter(({ hit }) => hit).length;
      ece += Math.abs(stated - hits) / n;
      if (own.length > 0) t.ok(near(bin.frequency, (100 * hits) / own.length, 0.01));
    }
    t.ok(near(body[side].calibration.ece, ece));
  }

  const { body: swapped } = await app.call('GET', `/api/compare?a=${b}&b=${a}`);
  t.equal(swapped.resolved.wins, counts.losses);
  t.ok(near(swapped.resolved.brier_difference.value, -sum / n));

  await addGroups(
    app.sql,
    made.map(({ question_id }) => ({
      kind: 'family',
      name: 'kimi',
      share: 0.9,
      category: 'technology',
      resolved_at,
      question_id,
    })),
  );
  const { body: mixed } = await app.call('GET', `/api/compare?a=kimi&b=${b}`);
  t.equal(mixed.resolved.n, n, 'a family can be compared with an agent');
  t.ok(near(mixed.a.brier.value, 0.01));
});

t.test('compares at most the newest scores of each forecaster', async (t) => {
  const app = await startApp(t, {});
  const owner_id = await addHuman(app.sql);
  const [a = '', b = ''] = await addAgents(app.sql, [
    { owner_id, balance: 0 },
    { owner_id, balance: 0 },
  ]);
  /** Scores of question number 1 to n. Higher numbers are older. Only `a` was right. */
  const fill = (n: number) => app.sql`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, net, resolved_at, settled_at
    )
    select
      md5(n::text)::uuid, agent.id, gen_random_uuid(), 1, 'technology', 'binary', 2, 0.5, 5000, true,
      true, agent.brier, 0, now() - n * interval '1 minute', now()
    from generate_series(1, ${n}::integer) as n,
      (values (${a}::uuid, 0.1), (${b}::uuid, 0.2)) as agent (id, brier)
    on conflict do nothing`;
  for (const [given, compared] of [
    [max_scores, max_scores],
    [max_scores + 1, max_scores],
  ] as const) {
    await fill(given);
    // A response is cached for a second, so the second request swaps the sides.
    const [first, second] = given === max_scores ? [a, b] : [b, a];
    const { body } = await app.call('GET', `/api/compare?a=${first}&b=${second}`);
    t.equal(body.resolved.n, compared);
    t.equal(body.resolved.wins, first === a ? compared : 0);
  }
});

t.test('lists the largest differences of families and of agents', async (t) => {
  const { app } = await openForum(t);
  const { good, even, open } = await playSeason(t, app);
  const forecastsOf = async (id: string) => {
    const { body } = await app.call('GET', `/api/agents/${id}/predictions?limit=100`);
    return new Map<string, { probability: number; outcome: boolean | null }>(
      body.predictions.map((one: { question_id: string }) => [one.question_id, one]),
    );
  };
  const [mine, theirs] = [await forecastsOf(good.id), await forecastsOf(even.id)];
  const gap = (id: string) => {
    const [a, b] = [mine.get(id), theirs.get(id)];
    const brier = (one = a) => ((one?.probability ?? 0) / 100 - (one?.outcome ? 1 : 0)) ** 2;
    return Math.abs(brier(a) - brier(b));
  };
  const gaps = [...mine.keys()].filter((id) => !open.includes(id)).map(gap);
  for (const [a, b] of [
    ['claude', 'gpt'],
    [good.id, even.id],
  ]) {
    const { body } = await app.call('GET', `/api/compare?a=${a}&b=${b}`);
    t.equal(body.resolved.n, 12);
    t.equal(body.open.n, open.length);
    const shown = body.open.largest.map((one: { a: number; b: number }) => Math.abs(one.a - one.b));
    t.same(shown, [40, 40, 20, 10]);
    const { largest } = body.resolved;
    t.equal(largest.length, 8);
    const sorted = gaps.sort((one, other) => other - one);
    for (const [n, one] of largest.entries()) {
      t.ok(near(gap(one.question_id), sorted[n] ?? 0), 'in the order of the differences');
      const p = (mine.get(one.question_id)?.probability ?? 0) / 100;
      t.equal(one.outcome, mine.get(one.question_id)?.outcome);
      t.ok(near(one.a.forecast, one.outcome ? p : 1 - p));
      t.ok(near(one.a.brier, (1 - one.a.forecast) ** 2));
    }
  }

  const [hidden = ''] = open;
  await app.sql`
    update predictions set hidden_at = now()
    where agent_id = ${good.id} and (question_id = ${hidden} or question_id <> all (${open as string[]}::uuid[]))`;
  // A response is cached for a second, so a query that was not sent before is used.
  const { body } = await app.call('GET', `/api/compare?b=${even.id}&a=${good.id}`);
  t.same(body.resolved.largest, [], 'hidden forecasts are not listed');
  t.equal(body.resolved.n, 12, 'but their scores count');
  t.equal(body.open.n, open.length - 1);
});

t.test('compares questions with options by the option that differs most', async (t) => {
  const app = await startApp(t, {});
  const human = await makeHuman(app);
  const [a, b] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  const id = await makeOpenQuestion(app, {
    question_type: 'multi',
    options: ['Red', 'Green', 'Blue'],
  });
  await predict(app, a, id, { selected_option: 'Red', confidence: 60 });
  await predict(app, b, id, { probabilities: { Red: 30, Green: 65, Blue: 5 } });
  const { body } = await app.call('GET', `/api/compare?a=${a.id}&b=${b.id}`);
  t.match(body.open, { n: 1, largest: [{ option: 'Green', a: 20, b: 65 }] });
  t.match(body.resolved, { n: 0, win_rate: null, brier_difference: null, largest: [] });
  await act(app, id, 'close');
  const { body: later } = await app.call('GET', `/api/compare?b=${b.id}&a=${a.id}`);
  t.equal(later.open.n, 0, 'closed questions are not open');
});

t.test('refuses unknown forecasters and a comparison with itself', async (t) => {
  const app = await startApp(t, {});
  const { id } = await makeAgent(app, { human: await makeHuman(app) });
  const ask = (query: string) => app.call('GET', `/api/compare?${query}`);
  for (const query of [`a=claude&b=${makeId()}`, 'a=nobody&b=gpt', `a=${id}&b=x`]) {
    t.match(await ask(query), { status: 404, body: { code: 'AGENT_NOT_FOUND' } }, query);
  }
  for (const query of ['a=gpt&b=GPT', `a=${id}&b=${id.toUpperCase()}`, 'a=gpt', '']) {
    t.match(await ask(query), { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});
