import fc from 'fast-check';
import type { Db, Sql } from '../../../src/db/client.js';
import {
  keyOf,
  listQuestions,
  readListQuery,
} from '../../../src/features/questions/lists-store.js';
import { type QuestionSort, sorts } from '../../../src/features/questions/schema.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { holds } from '../../help/property.js';
import { makeAgent } from '../../help/story.js';
import { t as root } from '../../help/tap.js';

/** Lists of questions that are written directly into the tables, with ties and many pages. */

interface Seeded {
  readonly status: 'draft' | 'open' | 'closed' | 'resolved' | 'voided';
  readonly closes_at: string;
  readonly resolved_at: string | null;
  readonly category: string;
  readonly tags: readonly string[];
  readonly options: readonly string[];
  readonly question: string;
  readonly description: string;
  readonly predictions: number;
  readonly yes: number;
  readonly no: number;
  readonly counts: readonly number[];
}

const base_ms = Date.parse('2027-01-01T00:00:00.000Z');
const at = (minutes: number): string => new Date(base_ms + minutes * 60_000).toISOString();

const seedOne = (fields: Partial<Seeded>): Seeded => ({
  status: 'open',
  closes_at: at(600),
  resolved_at: null,
  category: 'society',
  tags: [],
  options: [],
  question: 'Will the measured series end above its median?',
  description: '',
  predictions: 0,
  yes: 0,
  no: 0,
  counts: [],
  ...fields,
});

/** Stores the rows and returns their ids in the same order. */
const seed = async (rows: readonly Seeded[]): Promise<readonly string[]> => {
  const given = rows.map((row) => ({ id: makeId(), ...row }));
  await app.sql`
    with given as (
      select *
      from json_to_recordset(${JSON.stringify(given)}::text::json) as given (
        id uuid, status text, closes_at timestamptz, resolved_at timestamptz, category text,
        tags text[], options text[], question text, description text, predictions integer,
        yes integer, no integer, counts integer[]
      )
    ),
    added as (
      insert into questions (
        id, question, description, category, tags, question_type, options, status, timeframe,
        opens_at, closes_at, resolution_date, published_at, closed_at, resolved_at, voided_at,
        outcome
      )
      select
        id, question, description, category, tags,
        case when options = '{}' then 'binary' else 'multi' end, options, status,
        'mid', '2026-12-01', closes_at, closes_at,
        case when status <> 'draft' then now() end,
        case when status = 'closed' then now() end,
        resolved_at,
        case when status = 'voided' then now() end,
        case when status = 'resolved' then true end
      from given
    )
    insert into question_counts (
      question_id, prediction_count, yes_count, no_count, option_counts
    )
    select id, predictions, yes, no, counts
    from given`;
  return given.map(({ id }) => id);
};

const statuses = ['open', 'open', 'closed', 'resolved', 'voided', 'draft'] as const;

/** Rows with many equal sort keys, so that the id breaks ties. */
const many = (count: number): readonly Seeded[] =>
  Array.from({ length: count }, (_, n) => {
    const status = statuses[n % statuses.length] as Seeded['status'];
    const is_multi = n % 4 === 0;
    const some = n % 5;
    return seedOne({
      status,
      category: n % 50 === 0 ? 'industry' : 'society',
      closes_at: at((n * 7) % 11),
      resolved_at: status === 'resolved' ? at((n * 3) % 5) : null,
      options: is_multi ? ['a', 'b', 'c'] : [],
      ...(is_multi
        ? { predictions: some + 2, counts: [some, 1, 1] }
        : { predictions: some + 2, yes: some, no: 2 }),
      question: `Will the ${n % 3 === 0 ? 'harbour' : 'station'} of series ${n} be rebuilt?`,
      description: n % 7 === 0 ? 'The harbour again, and the harbour once more.' : '',
    });
  });

/** Reads with a key, because answers to anonymous callers are cached for a second. */
const app = await startApp(root, { roles: ['api'], env: { LIMIT_KEY: '1000000' } });
const { key } = await makeAgent(app);
const list = (query: string) => app.call('GET', `/api/questions?${query}`, { key });

const get = async (query: string) => {
  const { status, body } = await list(query);
  if (status !== 200) throw new Error(`${query}: ${status} ${JSON.stringify(body)}`);
  return body;
};

/** Replaces all stored questions with these rows and returns their ids. */
const begin = async (rows: readonly Seeded[]): Promise<readonly string[]> => {
  await app.sql`delete from question_counts`;
  await app.sql`delete from questions`;
  return seed(rows);
};

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly closes_at: string;
  readonly resolved_at: string | null;
  readonly prediction_count: number;
}

/** Reads every page to the end, and runs `meanwhile` after each. */
const walk = async (
  query: string,
  meanwhile: (page: number) => Promise<unknown> = async () => undefined,
): Promise<readonly Shown[]> => {
  const rows: Shown[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < 100; page += 1) {
    const next: string = cursor === null ? '' : `&cursor=${cursor}`;
    const body = await get(`${query}${next}`);
    rows.push(...body.questions);
    cursor = body.next_cursor;
    if (cursor === null) return rows;
    await meanwhile(page);
  }
  throw new Error('the list does not end');
};

const contestOf = (row: Seeded): number => {
  const counts = row.options.length === 0 ? [row.yes, row.no] : row.counts;
  const [leader, runner_up] = [...counts].sort((a, b) => b - a) as [number, number];
  const total = counts.reduce((sum, n) => sum + n, 0);
  return runner_up === 0 ? 0 : Math.round(1000 * total ** (runner_up / leader));
};

/** The ascending sort key of a row. Ids break ties in the same direction. */
const sortKey: Readonly<Record<string, (row: Seeded) => number>> = {
  newest: () => 0,
  closing_soon: (row) => Date.parse(row.closes_at),
  most_predicted: (row) => row.predictions,
  least_predicted: (row) => row.predictions,
  contested: contestOf,
  recently_resolved: (row) => Date.parse(row.resolved_at ?? ''),
};
const ascending = ['closing_soon', 'least_predicted'];
const only: Readonly<Record<string, string>> = {
  closing_soon: 'open',
  recently_resolved: 'resolved',
};

root.test('each sort: all pages together show each question once, in order', async (t) => {
  const rows = many(66);
  const ids = await begin(rows);
  const all = rows.map((row, n) => ({ row, id: ids[n] as string }));
  for (const [sort, keyOfRow] of Object.entries(sortKey)) {
    for (const status of [undefined, 'all', 'open', 'resolved']) {
      const asked = status ?? only[sort] ?? 'all';
      const shown = all.filter(({ row }) => {
        if (row.status === 'draft') return false;
        if (sort === 'recently_resolved' && row.status !== 'resolved') return false;
        return asked === 'all' || row.status === asked;
      });
      const sign = ascending.includes(sort) ? 1 : -1;
      const expected = [...shown].sort(
        (a, b) => sign * (keyOfRow(a.row) - keyOfRow(b.row) || (a.id < b.id ? -1 : 1)),
      );
      const query = `sort=${sort}&limit=7${status === undefined ? '' : `&status=${status}`}`;
      const walked = await walk(query);
      t.same(pluck(walked, 'id'), pluck(expected, 'id'), query);
      t.equal((await get(query)).total, expected.length, `total of ${query}`);
      const counted = await get(`${query}&offset=9`);
      const later = pluck(expected.slice(9, 16), 'id');
      t.same(pluck(counted.questions, 'id'), later, `${query} from the tenth on`);
    }
  }
});

root.test(
  'pages stay right while questions are added, and times are told apart exactly',
  async (t) => {
    await begin(many(60));
    await app.sql`
    update questions
    set
      closes_at = closes_at - interval '1 microsecond' * (weight + ascii(substr(id::text, 36))),
      resolved_at = resolved_at + interval '1 microsecond' * ascii(substr(id::text, 35))`;
    for (const sort of sorts) {
      const before = await walk(`sort=${sort}&limit=100`);
      const query = `sort=${sort}&limit=4`;
      const walked = await walk(query, async (page) => page % 4 > 0 || seed(many(6)));
      const known = new Set(before.map(({ id }) => id));
      t.same(
        walked.map(({ id }) => id).filter((id) => known.has(id)),
        pluck(before, 'id'),
        sort,
      );
      t.equal(new Set(walked.map(({ id }) => id)).size, walked.length, `${sort}: nothing twice`);
    }
  },
);

root.test('contested: an even split of many comes first, unanimity last', async (t) => {
  const cases: Partial<Seeded>[] = [
    { yes: 500, no: 500 },
    { options: ['a', 'b', 'c'], counts: [200, 200, 200] },
    { yes: 5, no: 5 },
    { yes: 900, no: 100 },
    { options: ['a', 'b'], counts: [3, 1] },
    { options: ['a', 'b'], counts: [9, 0] },
    { yes: 700, no: 0 },
    {},
  ];
  const ids = await begin(cases.map((one) => seedOne(one)));
  const { questions } = await get('sort=contested');
  const order = questions.map(({ id }: Shown) => ids.indexOf(id));
  t.same(order.slice(0, 5), [0, 1, 2, 3, 4]);
  t.same([...order.slice(5)].sort(), [5, 6, 7]);
});

root.test('filters, alone and together', async (t) => {
  const ids = await begin([
    seedOne({ category: 'technology', tags: ['#LLM', '#GPU'] }),
    seedOne({ category: 'technology', tags: ['#GPU'], options: ['a', 'b'], counts: [0, 0] }),
    seedOne({ category: 'society', tags: ['#Climate'], status: 'closed' }),
    seedOne({ category: 'society', status: 'voided' }),
    seedOne({ category: 'society', status: 'draft', tags: ['#Climate'] }),
    seedOne({ category: 'industry', status: 'resolved', resolved_at: at(0) }),
  ]);
  await app.sql`update questions set subcategory = 'data' where id = ${ids[0] as string}`;
  await app.sql`update questions set timeframe = 'short' where id = ${ids[2] as string}`;
  const cases: [string, number[]][] = [
    ['', [5, 3, 2, 1, 0]],
    ['status=all', [5, 3, 2, 1, 0]],
    ['status=open', [1, 0]],
    ['status=closed', [2]],
    ['status=resolved', [5]],
    ['status=voided', [3]],
    ['category=technology', [1, 0]],
    ['category=society&status=open', []],
    ['subcategory=data', [0]],
    ['category=technology&subcategory=data', [0]],
    ['tag=%23LLM', [0]],
    ['tag=LLM', [0]],
    ['tag=GPU&question_type=multi', [1]],
    ['tag=Climate', [2]],
    ['tag=Climate&status=open', []],
    ['question_type=binary&status=open', [0]],
    ['timeframe=short', [2]],
    ['timeframe=mid&category=industry', [5]],
    ['sort=recently_resolved&status=open', []],
    ['status=&category=', [5, 3, 2, 1, 0]],
    ['q=%20%20', [5, 3, 2, 1, 0]],
    ['nothing=at-all&status=voided', [3]],
  ];
  for (const [query, expected] of cases) {
    const { total, questions } = await get(query);
    const found = questions.map(({ id }: Shown) => ids.indexOf(id));
    t.same(found, expected, query);
    t.equal(total, expected.length, query);
  }
  const invalid = ['status=draft', 'status=OPEN', 'sort=best', 'question_type=x', 'limit=0'];
  for (const [wrong, code] of [
    ...invalid.map((query) => [query, 'INVALID_REQUEST'] as const),
    ['category=nothing', 'INVALID_CATEGORY'],
    ['category=society&subcategory=data', 'INVALID_SUBCATEGORY'],
    ['tag=climate', 'INVALID_TAG'],
  ] as const) {
    const { status, body } = await list(wrong);
    t.same([status, body.code], [400, code], wrong);
  }
});

root.test(
  'a search finds words in their forms, phrases and exclusions; the best match first',
  async (t) => {
    const ids = await begin([
      seedOne({ question: 'Will the parliament vote on tariffs?', description: 'On a bridge.' }),
      seedOne({ question: 'Will the bridge over the sound be opened?' }),
      seedOne({ question: 'Will ferries run in winter?', description: 'Bridges, and a bridge.' }),
      seedOne({ question: 'Will the old bridge be torn down?', status: 'closed' }),
      seedOne({ question: 'Will a drafted bridge be seen?', status: 'draft' }),
    ]);
    const found = async (q: string, more = '') => {
      const { total, questions } = await get(`q=${encodeURIComponent(q)}${more}`);
      const order = questions.map(({ id }: Shown) => ids.indexOf(id));
      t.equal(total, order.length, q);
      return order;
    };
    t.same((await found('bridges')).slice(0, 2).sort(), [1, 3], 'in the question itself');
    t.same((await found('bridge')).slice(2), [2, 0], 'then by how often');
    t.same(await found('bridge', '&sort=newest'), [3, 2, 1, 0]);
    t.same(await found('bridge', '&status=open&sort=newest'), [2, 1, 0]);
    t.same(await found('"old bridge"'), [3]);
    t.same(await found('bridge -old', '&sort=newest'), [2, 1, 0]);
    t.same(await found('ferries or tariffs', '&sort=newest'), [2, 0]);
    t.same(await found('voting tariff'), [0]);
    t.same(
      await found('the', '&sort=newest'),
      [3, 1, 0],
      'a usual word, in titles, if it is alone',
    );
    for (const nothing of ['???', '""', "'", 'submarine']) t.same(await found(nothing), []);
  },
);

root.test('any search is answered with a list', async (t) => {
  await begin(many(12));
  const odd = fc.constantFrom(
    ...['"', "'", '\\', ':*', '& | !', '<->', '((', '-', '--', "';drop table", '%', '\u0301', '😀'],
    ...['or or', '-"a', 'a:b', 'harbour', '"the', '\u202e', 'ﬁ', 'İ', '\u0000', '​'],
  );
  const text = fc
    .array(fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 8 })), { maxLength: 8 })
    .map((parts) => [...parts.join(' ').toWellFormed()].slice(0, 200).join(''));
  const property = fc.asyncProperty(text, fc.constantFrom(...sorts), async (q, sort) => {
    const { status } = await list(`q=${encodeURIComponent(q)}&sort=${sort satisfies QuestionSort}`);
    const refused = q.includes('\0') || [...q].length > 200;
    if (status !== (refused ? 400 : 200)) throw new Error(`${status} for ${JSON.stringify(q)}`);
  });
  await holds(t, property, { numRuns: 200 });
});

/** Prepends `explain` to the outermost statement. SQL fragments stay unchanged. */
const explaining = (sql: Sql): Db => {
  const call = (strings: TemplateStringsArray, ...values: readonly unknown[]) => {
    const is_statement = strings[0]?.trimStart().startsWith('with keys') === true;
    if (!is_statement) return sql(strings, ...(values as never[]));
    const first = `explain (analyze, costs off, buffers off) ${strings[0]}`;
    const texts = [first, ...strings.slice(1)];
    return sql(Object.assign(texts, { raw: texts }), ...(values as never[]));
  };
  return Object.assign(call, { unsafe: sql.unsafe }) as unknown as Db;
};

/** The plan of the first page of a list, or of the page after this many rows. */
const readPlan = async (query: string, after = 0) => {
  const request = readListQuery(Object.fromEntries(new URLSearchParams(query)), false);
  const page = { limit: 20, after: null, offset: 0 };
  const shown = after === 0 ? [] : await listQuestions(app.sql, request, { ...page, limit: after });
  const last = shown[after - 1];
  const rows = (await listQuestions(explaining(app.sql), request, {
    ...page,
    after: last === undefined ? null : keyOf(last),
  })) as unknown as { 'QUERY PLAN': string }[];
  const text = rows.map((row) => row['QUERY PLAN']).join('\n');
  return { text, ms: Number(/Execution Time: ([\d.]+)/.exec(text)?.[1]) };
};

root.test('with 10,000 questions the usual lists read an index and not the table', async (t) => {
  await begin(many(2_000));
  for (let n = 0; n < 4; n += 1) await seed(many(2_000));
  await app.sql`vacuum analyze questions, question_counts, question_words`;
  const usual: [string, string][] = [
    ['status=open', 'questions_status_created'],
    ['', 'questions_pkey'],
    ['category=industry', 'questions_category_created'],
    ['sort=closing_soon', 'questions_closing'],
    ['sort=recently_resolved', 'questions_resolved'],
    ['sort=most_predicted&status=open', 'questions_status_created|questions_closing'],
    ['sort=contested&status=open', 'questions_status_created|questions_closing'],
    ['q=1711', 'newest_matches'],
  ];
  for (const [query, index] of usual) {
    const plan = await readPlan(query);
    t.match(plan.text, new RegExp(`using (${index})|on (${index})`), query);
    t.notMatch(plan.text, /Seq Scan on questions/, query);
    const second = await readPlan(query, 20);
    t.notMatch(second.text, /Seq Scan on questions/, `${query}, the next page`);
    t.comment(`${query}: ${plan.ms} ms, next ${second.ms} ms`);
  }
});

root.test('by ids, source and times, together and alone', async (t) => {
  const ids = await begin([
    seedOne({ closes_at: at(10) }),
    seedOne({ closes_at: at(20) }),
    seedOne({ closes_at: at(30) }),
    seedOne({ status: 'draft' }),
  ]);
  const [first, second, third, draft] = ids as [string, string, string, string];
  await app.sql`
    update questions q
    set
      source = 'survey', source_id = 'n' || n,
      created_at = '2026-12-01T00:00:00.123456Z'::timestamptz + make_interval(days => n::integer)
    from unnest(${[first, second, third]}::uuid[]) with ordinality as o (id, n)
    where q.id = o.id`;
  const find = async (query: string) =>
    pluck((await get(`sort=closing_soon&${query}`)).questions, 'id');
  t.same(await find(`ids=${third},${draft},${first},${makeId()}`), [first, third]);
  t.same(await find('source=survey&source_id=n2'), [second]);
  t.same(await find('source=survey'), [first, second, third]);
  t.same(await find('source=other'), []);
  t.same(await find('created_after=2026-12-02T00:00:00.123Z'), [first, second, third]);
  t.same(await find('created_after=2026-12-02T00:00:00.124Z'), [second, third]);
  t.same(await find(`closes_before=${at(20)}`), [first]);
  t.same(await find(`closes_before=${at(31)}&ids=${second},${third}`), [second, third]);
  t.same(
    await find('created_after=2026-12-02T23:59:00.123%2B23:59'),
    [first, second, third],
    'no zone is that far',
  );
  for (const query of [
    'ids=x',
    'created_after=2026-02-30T00:00:00Z',
    'created_after=yesterday',
    'closes_before=2026-13-01',
  ]) {
    t.equal((await list(query)).status, 400, query);
  }
});
