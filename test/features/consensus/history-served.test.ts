import { type Test, t } from 'tap';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/accounts/index.js';
import { startApp, type TestApp } from '../../help/app.js';
import { consensusBySql } from '../../help/consensus-sql.js';
import { startLoad } from '../../help/load.js';
import { until } from '../../help/until.js';

/** Charts, moves and snapshots as clients read them, while agents predict. */

const options = ['Rises', 'Stays', 'Falls'];
const optionsOf = (n: number): readonly string[] => (n === 1 ? options : []);
const questions = [0, 1].map((n) => ({ id: questionId(n), options: optionsOf(n) }));
const agents_count = 40;

const startWorld = async (t: Test) => {
  const app = await startApp(t);
  const keys = Array.from({ length: agents_count }, makeApiKey);
  await seed(app.sql, { keys, questions: questions.length, optionsOf });
  return { app, agents: keys.map((key, n) => ({ id: agentId(n), key })) };
};

const path = (n: number, rest: string): string => `/api/questions/${questionId(n)}/${rest}`;

/** The newest state of a chart once it has so many predictions. */
const chartOf = (app: TestApp, n: number, total: number) =>
  until(`a chart of ${total}`, async () => {
    const { body } = await app.call('GET', path(n, 'chart?points=1000'));
    return body.total_predictions === total && body;
  });

t.test('a chart follows the log, and every process draws the same', async (t) => {
  const { app, agents } = await startWorld(t);
  const empty = await app.call('GET', path(0, 'chart'));
  t.match(empty.body, { total_predictions: 0, moments: 0, points: [], offset: 0 });
  const load = startLoad({ url: app.url, agents, questions, clients: 8 });
  for (let n = 0; load.acknowledged.length < 50; n += 1) {
    const { body } = await app.call('GET', path(n % 2, 'chart'));
    t.ok(body.total_predictions >= body.moments);
  }
  await load.reach(agents_count * questions.length);
  await load.stop();
  t.same(load.odd, []);
  const late = await startApp(t, { stores: app.stores, roles: ['api'] });
  for (const n of [0, 1]) {
    const chart = await chartOf(app, n, agents_count);
    const wanted = (await consensusBySql(app.sql)).get(questionId(n)) as Record<string, unknown>;
    const last = chart.points.at(-1);
    const { count: _, at: __, option_probabilities, option_percents, ...figures } = last;
    t.match(wanted, figures, 'the last point is the consensus of SQL');
    const of = (wanted['options'] ?? []) as { percent: number; mean_probability: number }[];
    t.same(
      option_percents,
      of.map(({ percent }) => percent),
    );
    t.same(
      option_probabilities,
      of.map(({ mean_probability }) => mean_probability),
    );
    const { body: live } = await app.call('GET', path(n, 'consensus'));
    t.equal(chart.offset, live.offset);
    t.strictSame(await chartOf(late, n, agents_count), chart, 'a process that was not there');
    const few = (await app.call('GET', path(n, 'chart?points=2'))).body;
    t.same([few.points.length, few.sampling], [2, 'lttb']);
    t.same(few.points.at(-1), last);
  }
});

t.test('what has not changed costs a client no body, and what has comes anew', async (t) => {
  const { app, agents } = await startWorld(t);
  const some = [questions[0] as (typeof questions)[number]];
  const first = startLoad({ url: app.url, agents: agents.slice(0, 5), questions: some });
  await first.reach(5);
  await first.stop();
  await chartOf(app, 0, 5);
  const kinds = ['chart', 'chart.svg', 'chart.png', 'drift'];
  const tags = new Map<string, string>();
  for (const kind of kinds) {
    const { status, headers } = await app.call('GET', path(0, kind));
    t.equal(status, 200, kind);
    tags.set(kind, headers.get('etag') ?? '');
    const again = await app.call('GET', path(0, kind), {
      headers: { 'if-none-match': tags.get(kind) ?? '' },
    });
    t.same([again.status, again.body], [304, ''], kind);
    t.equal(again.headers.get('etag'), tags.get(kind));
  }
  const second = startLoad({ url: app.url, agents: agents.slice(0, 6), questions: some, first: 5 });
  await second.reach(1);
  await second.stop();
  await chartOf(app, 0, 6);
  for (const kind of kinds) {
    const headers = { 'if-none-match': tags.get(kind) ?? '' };
    t.equal((await app.call('GET', path(0, kind), { headers })).status, 200, kind);
  }
});

t.test('closing and resolving leave a snapshot each, as SQL counts', async (t) => {
  const { app, agents } = await startWorld(t);
  const load = startLoad({ url: app.url, agents, questions, clients: 8 });
  await load.reach(agents_count * questions.length);
  await load.stop();
  const bodies = [{ outcome: true }, { correct_options: [options[0]] }];
  for (const [n, { id }] of questions.entries()) {
    await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true, body: {} });
    const body = { resolution_note: 'As the ministry announced on its page.', ...bodies[n] };
    const done = await app.call('POST', `/api/admin/questions/${id}/resolve`, {
      admin: true,
      body,
    });
    t.equal(done.status, 202);
    const found = await until('both', async () => {
      const answer = await app.call('GET', path(n, 'snapshots'));
      const ends = answer.body.snapshots.filter(
        (one: { reason: string }) => one.reason !== 'hourly',
      );
      return ends.length === 2 && ends.reverse();
    });
    const wanted = (await consensusBySql(app.sql)).get(id) as object;
    const { body: live } = await app.call('GET', path(n, 'consensus'));
    for (const [at, reason] of ['closed', 'resolved'].entries()) {
      t.match(found[at], { ...wanted, offset: live.offset, reason });
    }
    const { question } = (await app.call('GET', `/api/questions/${id}`)).body;
    t.equal(found[1].taken_at, question.resolved_at);
    const newest = (await app.call('GET', path(n, 'snapshots?limit=1'))).body;
    t.equal(newest.snapshots[0].taken_at, found[1].taken_at);
    t.equal(newest.snapshots.length, 1);
    const rest = await app.call('GET', path(n, `snapshots?limit=1&cursor=${newest.next_cursor}`));
    t.equal(rest.body.snapshots[0].taken_at, found[0].taken_at);
    t.equal((await chartOf(app, n, agents_count)).points.at(-1).count, agents_count);
  }
});

t.test('what is no question, no range or no cursor is refused', async (t) => {
  const { app } = await startWorld(t);
  const kinds = ['snapshots', 'chart', 'chart.svg', 'chart.png', 'drift'];
  for (const kind of kinds) {
    for (const id of ['nothing', agentId(1)]) {
      const { status, body } = await app.call('GET', `/api/questions/${id}/${kind}`);
      t.same([status, body.code], [404, 'QUESTION_NOT_FOUND'], `${kind} of ${id}`);
    }
  }
  const refused = [
    'chart?points=1',
    'chart?points=1001',
    'chart.svg?theme=pink',
    'chart.svg?width=319',
    'chart.svg?width=1201',
    'snapshots?cursor=abc',
    'snapshots?limit=0',
  ];
  for (const rest of refused) t.equal((await app.call('GET', path(0, rest))).status, 400, rest);
  for (const rest of [
    'chart.svg?width=320',
    'chart.svg?width=1200',
    'chart.png?width=1200',
    'chart?points=1000',
  ]) {
    t.equal((await app.call('GET', path(0, rest))).status, 200, rest);
  }
});

t.test('pictures as PNG are limited for each address, and 304 costs none', async (t) => {
  const app = await startApp(t, { roles: ['api'], env: { LIMIT_PICTURES: '2' } });
  await seed(app.sql, { keys: [makeApiKey()], questions: 1, optionsOf: () => [] });
  const png = (headers = {}) => app.call('GET', path(0, 'chart.png'), { headers });
  const first = await png();
  t.equal(first.status, 200);
  const known = { 'if-none-match': first.headers.get('etag') ?? '' };
  for (let n = 0; n < 3; n += 1) t.equal((await png(known)).status, 304);
  t.equal((await png()).status, 200);
  const third = await png();
  t.same([third.status, third.body.code], [429, 'RATE_LIMITED']);
  t.match(third.headers.get('retry-after'), /^[1-9]\d*$/);
  t.equal((await app.call('GET', path(0, 'chart.svg'))).status, 200);
  const { limits } = (await app.call('GET', '/api/limits')).body;
  const own = limits.find(({ name }: { name: string }) => name === 'pictures');
  t.match(own, { setting: 'LIMIT_PICTURES', limit: 2, left: 0, per: 'address' });
});

t.test('a draft is drawn for admins only', async (t) => {
  const { app } = await startWorld(t);
  const made = await app.call('POST', '/api/admin/questions', {
    admin: true,
    body: {
      question: 'Will the second bridge be open to traffic before the winter?',
      category: 'society',
      closes_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
    },
  });
  const { id } = made.body.question;
  for (const kind of ['snapshots', 'chart', 'chart.svg', 'chart.png', 'drift']) {
    t.equal((await app.call('GET', `/api/questions/${id}/${kind}`)).status, 404);
    const shown = await app.call('GET', `/api/questions/${id}/${kind}`, { admin: true });
    t.equal(shown.status, 200, kind);
    t.equal((await app.call('GET', `/api/questions/${id}/${kind}`)).status, 404);
  }
});
