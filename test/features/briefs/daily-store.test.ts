import type { Sql } from '../../../src/db/client.js';
import { type Answered, startApp, type TestApp } from '../../help/app.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { act } from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { makeForecasters, place } from './world.js';

/** Daily insights as readers get them. All data is created today, then moved to earlier days. */

const day_ms = 86_400_000;
const path = '/api/insights/daily';
/** Every date in this run is counted back from the same moment. */
const started_ms = Date.now();
const dateOf = (days_ago: number): string =>
  new Date(started_ms - days_ago * day_ms).toISOString().slice(0, 10);

const moveBack = async ({ sql }: TestApp, date: string): Promise<void> => {
  const at = `${date}T12:00:00.000Z`;
  await sql`update predictions set created_at = ${at} where created_at > now() - interval '1 hour'`;
  await sql`
    update questions
    set
      opens_at = ${at}::timestamptz - interval '9 days',
      published_at = ${at}::timestamptz - interval '1 minute',
      closed_at = case when closed_at is not null then ${at}::timestamptz end
    where published_at > now() - interval '1 hour'`;
  await sql`update resolutions set created_at = ${at} where created_at > now() - interval '1 hour'`;
};

const resolvedIn = ({ resolved }: Answered['body'], id: string) =>
  resolved.questions.find((one: { question_id: string }) => one.question_id === id);

const settled = (app: TestApp, revisions: number) =>
  until('all is settled', async () => {
    const [row] = await app.sql<{ done: number }[]>`
      select count(*)::integer as done from resolutions where state = 'done'`;
    return row?.done === revisions;
  });

t.test('days that are none are refused, and a day without anything is empty', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  for (const date of ['2026-02-30', 'today', dateOf(-2), '1969-12-31', '2026-01-01T00:00:00Z']) {
    const { status, body } = await app.call('GET', `${path}?date=${encodeURIComponent(date)}`);
    t.match({ status, body }, { status: 400, body: { code: 'INVALID_DATE' } }, date);
    t.equal(body.fields[0].path, 'query.date');
  }
  const { body, headers } = await app.call('GET', `${path}?date=2020-02-29`);
  t.match(body, {
    date: '2020-02-29',
    from: '2020-02-29T00:00:00.000Z',
    to: '2020-03-01T00:00:00.000Z',
    partial: false,
    movers: [],
    contested: [],
    resolved: { total: 0, scored: 0, crowd_brier: null, questions: [] },
    new: { total: 0 },
    closing_soon: { total: 0 },
    top_agents: [],
    families: [],
  });
  const again = { headers: { 'if-none-match': headers.get('etag') ?? '' } };
  t.equal((await app.call('GET', `${path}?date=2020-02-29`, again)).status, 304);
  const usual = (await app.call('GET', path)).body;
  t.ok([dateOf(1), dateOf(2)].includes(usual.date), 'yesterday, unless midnight just passed');
  const today = (await app.call('GET', `${path}?date=${usual.to.slice(0, 10)}`)).body;
  t.match(today, { partial: true });
});

/** The change of a headline between two times, computed from the record. */
const moveOf = async (sql: Sql, id: string, [from, to]: readonly [Date, Date], option?: number) => {
  const headlineAt = async (at: Date): Promise<number> => {
    const before = new Date(at.getTime() - 1);
    const found = (await recomputeConsensus(sql, undefined, before)).get(id) as {
      readonly forecast: number;
      readonly options?: readonly { readonly forecast: number }[];
    };
    return option === undefined ? found.forecast : found.options![option]!.forecast;
  };
  const [before, after] = [await headlineAt(from), await headlineAt(to)];
  return { before, after, change: Math.round(100 * (after - before)) / 100 };
};

t.test('a day tells what was predicted, resolved and published on it', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
  const forecasters = await makeForecasters(app, 6);
  const [first] = forecasters;
  if (first === undefined) throw new Error('too few forecasters');
  const moving = await makeOpenQuestion(app);
  for (const { key } of forecasters.slice(0, 3)) {
    await place(app, { key, id: moving, prediction: true, confidence: 60 });
  }
  const before = dateOf(9);
  await moveBack(app, before);

  for (const { key } of forecasters.slice(3)) {
    await place(app, { key, id: moving, prediction: false, confidence: 80 });
  }
  const options = ['Copper', 'Tin', 'Zinc'];
  const yes = await makeOpenQuestion(app);
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  const soon = await makeOpenQuestion(app, {
    closes_at: new Date(Date.parse(`${dateOf(5)}T00:00:00Z`) + 9.5 * day_ms).toISOString(),
  });
  for (const [n, { key }] of forecasters.slice(0, 3).entries()) {
    await place(app, { key, id: yes, prediction: n < 2, confidence: 80 });
    await place(app, { key, id: multi, selected_option: options[n], confidence: 60 });
  }
  for (const id of [yes, multi]) await act(app, id, 'close');
  await act(app, yes, 'resolve', { outcome: true });
  await act(app, multi, 'resolve', { correct_options: ['Tin'] });
  await settled(app, 2);
  const date = dateOf(6);
  await moveBack(app, date);
  await app.sql`update questions set closes_at = ${`${dateOf(4)}T00:00:00Z`} where id = ${soon}`;

  const { body } = await app.call('GET', `${path}?date=${date}`);
  const [start, end] = [`${date}T00:00:00Z`, `${dateOf(5)}T00:00:00Z`].map((at) => new Date(at));
  const moved = await moveOf(app.sql, moving, [start!, end!]);
  t.match(body.movers, [{ question_id: moving, ...moved, predictions_before: 3 }]);
  t.equal(body.movers[0].predictions_after, 6);
  t.match(body.contested, [{ question_id: moving, predictions: 6, leader: { count: 3 } }]);
  t.equal(body.contested.length, 1);
  t.equal(body.new.total, 3);
  t.match(body.closing_soon, { total: 1, questions: [{ question_id: soon }] });

  // The median is 80 %. With three owners, n = 1 / (0.6 + 0.4 / 3) and d = 1.1436. The mean log odds
  // are ln(4) / 3, so the others are 61.35, 62.91 and 62.13 %. The mean of the four is 66.6 %, and
  // (0.666 − 1)² = 0.112. The agents' Brier scores are 0.04, 0.04 and 0.64.
  t.match(resolvedIn(body, yes), {
    outcome: 'YES',
    revision: 1,
    predictions: 3,
    crowd: 66.6,
    crowd_brier: 0.112,
    even_brier: 0.25,
    median_agent_brier: 0.04,
    best_agent_brier: 0.04,
  });
  // Each option got 60, 20 and 20 %, so all have the same chance, as in the even forecast.
  const even = { crowd: 33.33, crowd_brier: 0.333, even_brier: 0.333 };
  t.match(resolvedIn(body, multi), { outcome: 'Tin', ...even });
  t.match(body.resolved, { total: 2, scored: 2, better_than_even: 1 });
  const [best] = await app.sql`
    select agent_id as user_id, sum(net)::integer as points from scores group by 1 order by 2 desc`;
  t.match(body.top_agents[0], best ?? {});
  const sumOf = (member: 'predictions' | 'agents' | 'resolved'): number =>
    body.families.reduce((sum: number, row: Record<string, number>) => sum + (row[member] ?? 0), 0);
  t.equal(body.families.length, 5);
  t.same([sumOf('predictions'), sumOf('agents'), sumOf('resolved')], [9, 6, 6]);
  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  const same = await late.call('GET', `${path}?date=${date}`);
  t.strictSame(same.body, body, 'another process says the same');

  await act(app, yes, 'resolve', { outcome: false });
  await settled(app, 3);
  const fresh = await startApp(t, { stores: app.stores, roles: ['api'] });
  const anew = (await fresh.call('GET', `${path}?date=${date}`)).body;
  t.same(anew.movers, body.movers, 'what was counted stays');
  t.match(resolvedIn(anew, yes), {
    outcome: 'NO',
    revision: 2,
    crowd: 33.4,
    crowd_brier: 0.444,
    median_agent_brier: 0.64,
  });
  const today = (await fresh.call('GET', `${path}?date=${dateOf(0)}`)).body;
  t.equal(today.resolved.total, 0, 'it counts on the day of its first decision');
});

t.test('a move counts from three predictions before and one point on', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
  const forecasters = await makeForecasters(app, 5);
  const [a, b, c, d, e] = forecasters.map(({ key }) => key);
  const yes = (id: string, key: string | undefined, confidence: number) =>
    place(app, { key: key ?? '', id, prediction: true, confidence });
  const [few = '', near = '', far = ''] = await Promise.all(
    [1, 2, 3].map(() => makeOpenQuestion(app)),
  );
  for (const key of [a, b]) await yes(few, key, 60);
  for (const key of [a, b, c]) await yes(far, key, 60);
  for (const key of [a, b, c, d]) await yes(near, key, 60);
  const options = ['Copper', 'Tin', 'Zinc'];
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  const take = (key: string | undefined, selected_option: string) =>
    place(app, { key: key ?? '', id: multi, selected_option, confidence: 60 });
  for (const key of [a, b, c]) await take(key, 'Copper');
  await moveBack(app, dateOf(9));
  await yes(few, e, 90);
  await yes(far, e, 68);
  await yes(near, e, 61);
  await take(e, 'Tin');
  await moveBack(app, dateOf(6));
  const { body } = await app.call('GET', `${path}?date=${dateOf(6)}`);
  const ends = [dateOf(6), dateOf(5)].map((date) => new Date(`${date}T00:00:00Z`));
  const moveIn = (id: string, option?: number) => moveOf(app.sql, id, [ends[0]!, ends[1]!], option);
  t.ok(Math.abs((await moveIn(near)).change) < 1);
  t.equal(body.movers.length, 2);
  // Copper falls and Tin rises. The larger move is listed.
  const moves = await Promise.all([0, 1].map((option) => moveIn(multi, option)));
  const first = Math.abs(moves[0]!.change) >= Math.abs(moves[1]!.change) ? 0 : 1;
  t.match(body.movers, [
    { question_id: multi, option: options[first], ...moves[first] },
    { question_id: far, option: null, ...(await moveIn(far)) },
  ]);
});
