import { no_limits, startApp } from '../../help/app.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Lists called newest are in the order of the forecasts' times, also of imported and revised ones. */

const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const day_ms = 86_400_000;
const opened_ms = Date.now() - 60 * day_ms;
const dayAt = (day: number): string => new Date(opened_ms + day * day_ms).toISOString();

const importItems = async (kind: string, items: readonly object[]) => {
  const { body } = await app.call('POST', `/api/admin/${kind}/import`, {
    admin: true,
    body: { items },
  });
  for (const one of body.results) {
    if (one.status === 'refused') throw new Error(JSON.stringify(one));
  }
  return body.results;
};

let made = 0;
const importQuestions = async (count: number): Promise<string[]> => {
  const items = Array.from({ length: count }, (_, n) => ({
    question: `Will the harbour office ${made + n + 1} publish its figures this year?`,
    category: 'society',
    closes_at: new Date(Date.now() + 30 * day_ms).toISOString(),
    opens_at: dayAt(0),
    publish: true,
    source: 'harbour',
    source_id: String(made + n + 1),
  }));
  made += count;
  const results = await importItems('questions', items);
  return results.map((one: { question_id: string }) => one.question_id);
};
/** Their sources are numbered as they were made. */
const sourceOf = (number: number) => ({ source: 'harbour', source_id: String(number) });

const importAgents = async (names: readonly string[]) =>
  (await importItems(
    'agents',
    names.map((name) => ({ name, model: 'gpt-5' })),
  )) as { agent_id: string; api_key: string }[];

type Row = Readonly<Record<string, string>>;

/** Walks a list page by page. Calls `between` after each page. */
const walk = async (
  path: string,
  {
    limit = 2,
    key,
    between,
  }: { limit?: number; key?: string; between?: (page: number) => Promise<unknown> } = {},
): Promise<Row[]> => {
  const rows: Row[] = [];
  let cursor = '';
  for (let page = 1; ; page += 1) {
    const query = `limit=${limit}${cursor}`;
    const answer = await app.call('GET', `${path}?${query}`, key === undefined ? {} : { key });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    rows.push(...answer.body.predictions);
    if (answer.body.next_cursor === null) return rows;
    cursor = `&cursor=${answer.body.next_cursor}`;
    await between?.(page);
  }
};

const namesOf = (rows: readonly Row[]): string[] => rows.map(({ user_name = '' }) => user_name);

t.test('the forecasts on a question, in pages of every size', async (t) => {
  const [id = ''] = await importQuestions(1);
  const source = sourceOf(made);
  const names = ['Ada', 'Bo', 'Cy', 'Di', 'Ed'];
  await importAgents(names);
  const forecast = (agent: string, day: number, probability: number) =>
    importItems('predictions', [{ ...source, agent, probability, forecast_at: dayAt(day) }]);
  for (const [n, day] of [30, 10, 50, 20, 40].entries()) await forecast(names[n]!, day, 40 + n);
  const path = `/api/questions/${id}/predictions`;
  const expected = ['Cy', 'Ed', 'Ada', 'Di', 'Bo'];
  for (const limit of [1, 2, 3, 5, 10]) {
    t.same(namesOf(await walk(path, { limit })), expected, `${path}, ${limit} a page`);
    t.same(namesOf(await walk(`/api/questions/${id}`, { limit })), expected, `with the question`);
  }

  t.test('a revision moves a forecast up, to its time', async (t) => {
    await forecast('Bo', 45, 70);
    const revised = ['Cy', 'Bo', 'Ed', 'Ada', 'Di'];
    for (const limit of [1, 2, 5]) t.same(namesOf(await walk(path, { limit })), revised);
    const [, bo] = await walk(path);
    t.match(bo, { created_at: dayAt(10), revised_at: dayAt(45) });
    const page = await app.call('GET', `/questions/${id}?tab=forecasts`, {
      headers: { accept: 'text/html' },
    });
    const found = [...page.body.matchAll(/class="agent">(\w+)<\/a>/g)].map(([, name]) => name);
    t.same(found, revised, 'the page has the same order');
    t.match(page.body, new RegExp(`revised <time dateTime="${dayAt(45)}"`, 'i'));
    t.match(page.body, new RegExp(`first forecast <time dateTime="${dayAt(10)}"`, 'i'));
  });

  t.test('a reader misses no forecast that is revised meanwhile', async (t) => {
    // The first page has Cy and Bo. Cy was read already, Di and Ada were not.
    const rows = await walk(path, {
      between: async (page) => {
        if (page === 1) {
          await forecast('Di', 51, 71);
          await forecast('Cy', 52, 72);
        }
        if (page === 2) await forecast('Ada', 53, 73);
        if (page === 3) await forecast('Di', 54, 74);
      },
    });
    t.same(
      namesOf(rows),
      ['Cy', 'Bo', 'Ed', 'Ada', 'Di', 'Cy', 'Ada', 'Di'],
      'the revised ones come again at the end',
    );
    t.match(rows.at(-1), { probability: 74 });
    t.same(
      namesOf(await walk(path)),
      ['Di', 'Ada', 'Cy', 'Bo', 'Ed'],
      'the next reader sees each once',
    );
  });

  t.test('a forecast placed meanwhile does not disturb the pages', async (t) => {
    await importAgents(['Flo']);
    const rows = await walk(path, {
      between: async (page) => {
        if (page === 1) await forecast('Flo', 55, 60);
      },
    });
    t.same(namesOf(rows), ['Di', 'Ada', 'Cy', 'Bo', 'Ed']);
    t.equal((await walk(path))[0]?.['user_name'], 'Flo');
  });

  t.test('times that differ by a microsecond, and equal times', async (t) => {
    await app.sql`
      update predictions p
      set created_at = ${dayAt(1)}::timestamptz + n / 2 * interval '1 microsecond', revised_at = null,
        revision = 0, revision_event_id = null
      from (
        select agent_id, row_number() over (order by id) as n
        from predictions
        where question_id = ${id}
      ) numbered
      where p.question_id = ${id} and p.agent_id = numbered.agent_id`;
    for (const limit of [1, 2, 4]) {
      t.same(namesOf(await walk(path, { limit })), ['Flo', 'Ed', 'Di', 'Cy', 'Bo', 'Ada']);
    }
  });

  t.test('a cursor of an older version, or a made-up one, is refused in words', async (t) => {
    const { body } = await app.call('GET', `${path}?limit=2`);
    const parts = JSON.parse(Buffer.from(body.next_cursor, 'base64url').toString());
    for (const [name, key] of [
      ['only an id', [parts[2]]],
      ['no time', ['soon', parts[2], parts[3]]],
      ['a day that does not exist', ['2026-02-30T00:00:00Z', parts[2], parts[3]]],
    ] as const) {
      const cursor = Buffer.from(JSON.stringify([parts[0], ...key])).toString('base64url');
      const refused = await app.call('GET', `${path}?limit=2&cursor=${cursor}`);
      t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, name);
      t.match(refused.body.error, 'no cursor to start again', name);
    }
  });
  t.end();
});

t.test("an agent's forecasts on all questions", async (t) => {
  const first = made + 1;
  const questions = await importQuestions(5);
  const [agent] = await importAgents(['Gus']);
  const days = [30, 10, 50, 20, 40];
  const forecast = (n: number, day: number, probability: number) =>
    importItems('predictions', [
      { ...sourceOf(first + n), agent: 'Gus', probability, forecast_at: dayAt(day) },
    ]);
  for (const [n, day] of days.entries()) await forecast(n, day, 30 + n);
  await forecast(1, 45, 70);
  const expected = [2, 1, 4, 0, 3].map((n) => questions[n]);
  const asked = [
    { path: `/api/agents/${agent!.agent_id}/predictions` },
    { path: '/api/me/predictions', key: agent!.api_key },
  ];
  for (const { path, ...as } of asked) {
    for (const limit of [1, 2, 5]) {
      const rows = await walk(path, { ...as, limit });
      t.same(
        rows.map(({ question_id }) => question_id),
        expected,
        `${path}, ${limit} a page`,
      );
      t.notOk(
        Object.keys(rows[0]!).some((name) => /_key$/.test(name)),
        'no inner members',
      );
    }
  }
  const page = await app.call('GET', `/agents/${agent!.agent_id}`, {
    headers: { accept: 'text/html' },
  });
  const history: string = page.body.slice(page.body.indexOf('id="history"'));
  const linked = [...history.matchAll(/<td><a href="\/questions\/([^"]+)"/g)].map(([, id]) => id);
  t.same(linked, expected, 'the page has the same order');
  t.match(history, new RegExp(`revised <time dateTime="${dayAt(45)}"`, 'i'));

  const rows = await walk(asked[0]!.path, {
    between: async (number) => {
      if (number === 1) await forecast(0, 55, 80);
    },
  });
  t.same(
    rows.map(({ question_id }) => question_id),
    [2, 1, 4, 3, 0].map((n) => questions[n]),
    'a forecast revised meanwhile comes at the end',
  );
});

t.test(
  'latest activity is in the order of times, although an import is newest in the log',
  async (t) => {
    const [id = ''] = await importQuestions(1);
    const source = sourceOf(made);
    await importAgents(['Hal', 'Ivy']);
    await importItems('predictions', [
      { ...source, agent: 'Hal', probability: 61 },
      { ...source, agent: 'Ivy', probability: 62, forecast_at: dayAt(59) },
    ]);
    const page = await until('both are on the page', async () => {
      const { body } = await app.call('GET', '/', { headers: { accept: 'text/html' } });
      const ticker: string = body.slice(body.indexOf('id="ticker"'));
      return ticker.includes('Hal') && ticker.includes('Ivy') && ticker;
    });
    t.ok(page.indexOf('Hal') < page.indexOf('Ivy'));
    const { body } = await until('the consensus has both', async () => {
      const answer = await app.call('GET', `/api/questions/${id}/consensus`);
      return answer.body.total_predictions === 2 && answer;
    });
    t.not(body.updated_at, dayAt(59), 'the last forecast is not the one that was imported last');
  },
);
