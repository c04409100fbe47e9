import { makeId } from '../../src/kit/ids.js';
import { whileRebuilding } from '../features/leaderboards/world.js';
import { no_limits, startApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { predict } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import type { Any } from './world.js';

/**
 * A cursor belongs to one list, which is one path with its filters and order. Each case was written
 * from the documentation alone.
 */

const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const day_ms = 86_400_000;
const human = await makeHuman(app);
const agents = await Promise.all(Array.from({ length: 8 }, () => makeAgent(app, { human })));
const [first_agent, second_agent] = agents as [(typeof agents)[0], (typeof agents)[0]];
const technology = { category: 'technology', subcategory: 'research_academia' };
const makeQuestions = (count: number, fields: object = {}) =>
  Promise.all(
    Array.from({ length: count }, (_, n) =>
      makeOpenQuestion(app, {
        closes_at: new Date(Date.now() + (40 + n) * day_ms).toISOString(),
        ...fields,
      }),
    ),
  );
const of_technology = await makeQuestions(45, technology);
const [one = '', other = ''] = await makeQuestions(12);
for (let n = 0; n < 3; n += 1) await makeOpenQuestion(app, { publish: false });
for (const agent of agents) {
  for (const id of [one, other])
    await predict(app, agent, id, { prediction: true, confidence: 60 });
}
for (const [n, id] of [one, other, one, other, one, other].entries()) {
  const content = `The shelves of reading room ${n} arrive by train in the second half of this year.`;
  const { key } = agents[n] as (typeof agents)[0];
  const said = await app.call('POST', `/api/questions/${id}/comments`, { key, body: { content } });
  if (said.status !== 201) throw new Error(JSON.stringify(said.body));
}

/** Two webhooks of one agent, each with deliveries. */
const hooks = await Promise.all(
  ['a', 'b'].map(async (name) => {
    const body = { url: `https://example.org/${name}`, events: ['question.created'] };
    const made = await app.call('POST', '/api/webhooks', { key: first_agent.key, body });
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    const id: string = made.body.webhook?.id ?? made.body.id;
    for (let n = 0; n < 5; n += 1) {
      const event_id = makeId();
      await app.sql`
        insert into deliveries
          (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, delivered_at)
        values (${id}, ${event_id}, delivery_id(${id}, ${event_id}), ${n}, current_date,
          'delivered', now(), now())`;
    }
    return id;
  }),
);

const ask = (path: string, key = first_agent.key) =>
  path.startsWith('/api/admin')
    ? app.call('GET', path, { admin: true })
    : app.call('GET', path, /^\/api\/(?:me|webhooks)/.test(path) ? { key } : {});
const withCursor = (path: string, cursor: string): string =>
  `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`;
const cursorOf = async (path: string): Promise<string> => {
  const { status, body } = await ask(path);
  if (status !== 200 || typeof body.next_cursor !== 'string') {
    throw new Error(`no cursor of ${path}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
  }
  return body.next_cursor;
};
const idsOf = (rows: readonly Any[]): readonly string[] => rows.map(({ id }) => id);
const questionsAt = async (path: string): Promise<readonly string[]> => {
  const { status, body } = await ask(path);
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  return idsOf(body.questions);
};

const { deps } = await openParts(t, { stores: app.stores });
await whileRebuilding(deps, () =>
  until('the directory and the board have the agents', async () => {
    const { total } = (await ask('/api/agents')).body;
    return total >= 8 && (await ask('/api/leaderboard?by=points')).body.total >= 8;
  }),
);

const at_one = `/api/questions/${one}`;
const at_other = `/api/questions/${other}`;
const list = '/api/questions?limit=10';
const foreign: readonly (readonly [from: string, to: string])[] = [
  [list, '/api/agents?limit=5'],
  ['/api/agents?limit=5', list],
  [`${list}&sort=newest`, `${list}&sort=closing_soon`],
  [`${list}&sort=closing_soon`, `${list}&sort=newest`],
  [`${list}&sort=most_predicted`, list],
  [`${list}&category=technology`, `${list}&category=society`],
  [`${list}&category=technology`, list],
  [list, `${list}&category=technology`],
  [list, `${list}&status=open`],
  [list, `${list}&q=reading`],
  [list, `${list}&created_after=2026-01-01T00:00:00Z`],
  [`${at_one}/predictions?limit=3`, `${at_other}/predictions?limit=3`],
  [`${at_one}/comments?limit=2`, `${at_other}/comments?limit=2`],
  [`${at_one}/predictions?limit=3`, `${at_one}/comments?limit=2`],
  [`${at_one}/comments?limit=2`, `${at_one}/comments?limit=2&sort=new`],
  [`/api/webhooks/${hooks[0]}/deliveries?limit=2`, `/api/webhooks/${hooks[1]}/deliveries?limit=2`],
  [
    `/api/webhooks/${hooks[0]}/deliveries?limit=2&status=delivered`,
    `/api/webhooks/${hooks[0]}/deliveries?limit=2&status=exhausted`,
  ],
  ['/api/leaderboard?by=points&limit=3', '/api/leaderboard?by=brier&limit=3'],
  ['/api/leaderboard?by=points&limit=3', '/api/leaderboard?by=points&period=7d&limit=3'],
  ['/api/leaderboard?by=points&limit=3', '/api/leaderboard?by=points&category=technology&limit=3'],
  ['/api/admin/questions?status=draft&limit=2', '/api/admin/audit?limit=2'],
  ['/api/admin/questions?status=draft&limit=2', '/api/admin/questions?limit=2'],
  ['/api/admin/questions?limit=2', list],
  ['/api/admin/audit?limit=2', '/api/admin/questions?limit=2'],
  [list, '/api/events?limit=10'],
  ['/api/events?limit=10', list],
];
const plain = (path: string): string =>
  path
    .replace(one, 'one')
    .replace(other, 'other')
    .replace(hooks[0] ?? '', 'a')
    .replace(hooks[1] ?? '', 'b');
for (const [from, to] of foreign) {
  t.test(`the cursor of ${plain(from)} is refused at ${plain(to)}`, async (t) => {
    const { status, body } = await ask(withCursor(to, await cursorOf(from)));
    t.match({ status, code: body.code }, { status: 400, code: 'INVALID_REQUEST' });
    t.equal(body.fields?.[0]?.path, 'query.cursor');
  });
}

const own: readonly (readonly [from: string, to: string])[] = [
  [list, list],
  [`${at_one}/predictions?limit=3`, `${at_one}/predictions?limit=3`],
  [`${at_one}/comments?limit=2`, `${at_one}/comments?limit=2`],
  ['/api/leaderboard?by=points&limit=3', '/api/leaderboard?by=points&limit=3'],
  ['/api/agents?limit=5', '/api/agents?limit=5'],
  ['/api/events?limit=10', '/api/events?limit=10'],
  ['/api/admin/audit?limit=2', '/api/admin/audit?limit=2'],
  [`/api/webhooks/${hooks[0]}/deliveries?limit=2`, `/api/webhooks/${hooks[0]}/deliveries?limit=2`],
  [list, `${list}&include=consensus`],
];
for (const [from, to] of own) {
  t.test(`the cursor of ${plain(from)} is taken at ${plain(to)}`, async (t) => {
    t.equal((await ask(withCursor(to, await cursorOf(from)))).status, 200);
  });
}

t.test('own cursors lead through the whole list', async (t) => {
  const path = '/api/questions?category=technology&limit=20';
  const pages: (readonly string[])[] = [];
  for (let next: string | null = path; next !== null; ) {
    const { body } = await ask(next);
    pages.push(idsOf(body.questions));
    next = body.next_cursor === null ? null : withCursor(path, body.next_cursor);
  }
  t.same(
    pages.map(({ length }) => length),
    [20, 20, 5],
  );
  t.same([...pages.flat()].sort(), [...of_technology].sort());
});

t.test('limit, the order of members and unknown members do not matter', async (t) => {
  const path = '/api/questions?category=technology&sort=newest';
  const all = await questionsAt(`${path}&limit=100`);
  const cursor = await cursorOf(`${path}&limit=20`);
  t.same(await questionsAt(`${path}&limit=7&cursor=${cursor}`), all.slice(20, 27));
  t.same(await questionsAt(`${path}&limit=100&cursor=${cursor}`), all.slice(20));
  const turned = `/api/questions?cursor=${cursor}&limit=20&sort=newest&category=technology&utm_source=x`;
  t.same(await questionsAt(turned), all.slice(20, 40));
});

t.test('a default that is named is the same list, or is refused', async (t) => {
  const all = await questionsAt('/api/questions?limit=100');
  const cursor = await cursorOf('/api/questions?limit=20');
  const { status, body } = await ask(`/api/questions?sort=newest&limit=20&cursor=${cursor}`);
  if (status === 200) t.same(idsOf(body.questions), all.slice(20, 40));
  else t.equal(status, 400);
});

t.test('the cursor of an address works in the body of the same question', async (t) => {
  const all = await questionsAt('/api/questions?status=open&limit=100');
  const cursor = await cursorOf('/api/questions?status=open&limit=20');
  const query = { status: 'open', limit: 20, cursor };
  const { status, body } = await app.call('POST', '/api/questions/query', { body: query });
  t.equal(status, 200);
  t.same(idsOf(body.questions), all.slice(20, 40));
});

t.test('the cursor of an agent shows another agent only its own rows', async (t) => {
  const path = '/api/me/predictions?limit=1';
  const cursor = await cursorOf(path);
  const { status, body } = await ask(withCursor(path, cursor), second_agent.key);
  if (status === 400) return;
  t.equal(status, 200);
  for (const { user_id } of body.predictions) t.equal(user_id, second_agent.id);
});

t.test('broken cursors are refused', async (t) => {
  const path = '/api/questions?limit=20';
  const cursor = await cursorOf(path);
  const broken = [
    'abc',
    `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`,
    cursor.slice(0, -3),
    '\0',
    'x'.repeat(5_000),
    '-1',
    '{"id":1}',
    '[]',
  ];
  for (const text of broken) {
    const { status, body } = await ask(withCursor(path, text));
    t.equal(status, 400, text.slice(0, 60));
    t.equal(body.fields?.[0]?.path, 'query.cursor');
  }
});

t.test('an empty cursor is the first page', async (t) => {
  const all = await questionsAt('/api/questions?limit=20');
  t.same(await questionsAt('/api/questions?cursor=&limit=20'), all);
});

t.test('the link to the next page leads to the end, each row once', async (t) => {
  let path = '/api/questions?category=technology&q=reading&limit=20';
  const ids: string[] = [];
  while (path !== '') {
    const { status, body, headers } = await ask(path);
    t.equal(status, 200, path);
    ids.push(...idsOf(body.questions));
    path = /<([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '';
  }
  t.same(ids.sort(), [...of_technology].sort());
});

t.test('a cursor stays right while rows are added', async (t) => {
  const path = '/api/questions?category=technology&sort=newest';
  const all = await questionsAt(`${path}&limit=100`);
  const cursor = await cursorOf(`${path}&limit=20`);
  await makeQuestions(5, technology);
  t.same(await questionsAt(`${path}&limit=20&cursor=${cursor}`), all.slice(20, 40));
});
