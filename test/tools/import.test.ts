import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createClient } from '#client/node.js';
import { Stopped } from '../../src/tools/command.js';
import { readRecords } from '../../src/tools/import/files.js';
import { type Item, makeItem, text_limits } from '../../src/tools/import/records.js';
import { makeCounts, runImport, upload } from '../../src/tools/import.js';
import { startApp } from '../help/app.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openImport } from './import-files.js';
import { convert } from './season-records.js';

const app = await startApp(t, { roles: ['api'] });
const { write, writeLines, run } = openImport(t, app);

const rows = () => app.sql`
  select question, category, subcategory, status, question_type, options, tags, weight,
    closes_at, source, source_id, description
  from questions
  order by source_id`;

t.beforeEach(async () => {
  await app.sql`truncate questions cascade`;
});

const pillars = new Map([['data', 'technology']]);
const options = { pillars, publish: false };
const least = {
  question: 'Will the ferry run on Sundays again?',
  category: 'society',
  closes_at: '2031-05-01',
};

const itemOf = (record: Record<string, unknown>): Item => {
  return makeItem('question', record, options).item;
};

t.test('texts of a CSV row become what each field holds', async (t) => {
  const item = itemOf({
    ...least,
    question: `  ${least.question}  `,
    category: '',
    subcategory: 'data',
    tags: '#Privacy| #Copyright |',
    options: 'red|green',
    question_type: 'multi',
    weight: '3',
    publish: 'Yes',
    opens_at: '2031-01-02 03:04',
    resolution_date: '2031-05-02T10:00:00+02:00',
    description: '',
    source: 'ferries',
    source_id: 17,
    colour: 'ignored',
  });
  t.same(item, {
    question: least.question,
    category: 'technology',
    subcategory: 'data',
    tags: ['#Privacy', '#Copyright'],
    options: ['red', 'green'],
    question_type: 'multi',
    weight: 3,
    publish: true,
    opens_at: '2031-01-02T03:04:00.000Z',
    closes_at: '2031-05-01T00:00:00.000Z',
    resolution_date: '2031-05-02T08:00:00.000Z',
    source: 'ferries',
    source_id: '17',
  });
});

t.test('times: what is read, and what is refused', async (t) => {
  const good: readonly (readonly [string, string])[] = [
    ['2031-05-01', '2031-05-01T00:00:00.000Z'],
    ['2031-05-01T10:20', '2031-05-01T10:20:00.000Z'],
    ['2031-05-01T10:20:30', '2031-05-01T10:20:30.000Z'],
    ['2031-05-01 10:20:30.5', '2031-05-01T10:20:30.500Z'],
    ['2031-05-01T10:20:30z', '2031-05-01T10:20:30.000Z'],
    ['2031-05-01T10:20:30-0230', '2031-05-01T12:50:30.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ];
  for (const [text, iso] of good) {
    t.equal(itemOf({ ...least, closes_at: text })['closes_at'], iso, text);
  }
  const bad: readonly unknown[] = [
    'soon',
    '2031-02-29',
    '2031-13-01',
    '01.05.2031',
    '2031-05-01T25:00',
    1935,
    {},
  ];
  for (const value of bad) {
    t.same(itemOf({ ...least, closes_at: value })['closes_at'], value, 'left to the service');
  }
});

t.test('what cannot be read is left to the service', async (t) => {
  const odd = { weight: '2.5x', tags: 7, publish: 'maybe', category: 'data' };
  t.match(itemOf(odd), odd);
});

t.test('a text at its limit stays whole; one character more is cut, with a notice', async (t) => {
  for (const [name, limit] of Object.entries(text_limits)) {
    const whole = makeItem('question', { ...least, [name]: 'x'.repeat(limit) }, options);
    t.match(whole, { item: { [name]: 'x'.repeat(limit) }, notices: [] });
    const long = makeItem('question', { ...least, [name]: 'x'.repeat(limit + 1) }, options);
    t.match(long, {
      item: { [name]: `${'x'.repeat(limit - 1)}…` },
      notices: [`${name} was cut from ${limit + 1} to ${limit} characters`],
    });
  }
  const pair = itemOf({ ...least, question: `${'x'.repeat(498)}😀😀` });
  t.equal(pair.question, `${'x'.repeat(498)}…`, 'no character is torn apart');
});

t.test('a record without a source is known by its content', async (t) => {
  const first = itemOf(least);
  t.equal(first.source, 'import');
  t.match(first.source_id, /^[0-9a-f]{32}$/);
  t.equal(itemOf(Object.fromEntries(Object.entries(least).reverse())).source_id, first.source_id);
  t.not(itemOf({ ...least, weight: 2 }).source_id, first.source_id);
  const published = makeItem('question', least, { ...options, publish: true });
  t.match(published, { item: { source_id: first.source_id, publish: true } });
  t.match(makeItem('question', { ...least, publish: false }, { ...options, publish: true }), {
    item: { publish: false },
  });
});

const readAll = async (file: string): Promise<readonly unknown[]> => {
  const entries: unknown[] = [];
  for await (const entry of readRecords(file)) entries.push(entry);
  return entries;
};

t.test('NDJSON: line numbers count every line, and a bad line does not end it', async (t) => {
  const text = '\uFEFF{"a":1}\r\n\n{"a":\n[1]\n"x"\n{"a":2}';
  t.match(await readAll(write('a.ndjson', text)), [
    { line: 1, record: { a: 1 } },
    { line: 3, problem: /^not valid JSON/ },
    { line: 4, problem: 'the line is JSON but not an object' },
    { line: 5, problem: 'the line is JSON but not an object' },
    { line: 6, record: { a: 2 } },
  ]);
});

t.test('CSV: quotes, rows over several lines, and rows that do not fit', async (t) => {
  const text = '\uFEFFquestion, tags\n"a ""b"", c",x|y\n"two\nlines",z\nlonely\n\nlast,w\n';
  const entries = await readAll(write('a.csv', text));
  t.match(
    entries.filter((entry) => 'record' in (entry as object)),
    [
      { line: 2, record: { question: 'a "b", c', tags: 'x|y' } },
      { line: 3, record: { question: 'two\nlines', tags: 'z' } },
      { record: { question: 'last', tags: 'w' } },
    ],
  );
  t.match(
    entries.filter((entry) => 'problem' in (entry as object)),
    [{ line: 5, problem: 'the row has 1 cell, but the header has 2' }],
  );
});

t.test('the kind of a file comes from its name, else from its first character', async (t) => {
  const read = async (name: string, content: string): Promise<string> =>
    JSON.stringify(await readAll(write(name, content)));
  t.match(await read('a.CSV', '{\nx\n'), '{"line":2,"record":{"{":"x"}}');
  t.match(await read('a.jsonl', 'a,b'), 'not valid JSON');
  t.match(await read('a.txt', '\uFEFF \n{"a":1}'), '"record":{"a":1}');
  t.match(await read('a.txt', 'a\nb\n'), '"record":{"a":"b"}');
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** A fake service that answers each call with the result of `answer` for the call's ids. */
const uploadTo = async (answer: (ids: readonly string[]) => Answer) => {
  let calls = 0;
  const server = createServer(async (request, reply) => {
    calls += 1;
    const { items } = JSON.parse(await text(request)) as { items: { source_id: string }[] };
    const { status, body } = answer(items.map(({ source_id }) => source_id));
    reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const said: string[] = [];
  const sending = {
    client: createClient({ base_url: `http://127.0.0.1:${port}` }),
    progress: { show: () => undefined, say: (line: string) => void said.push(line) },
    ...makeCounts(),
  };
  const itemsOf = (count: number) =>
    Array.from({ length: count }, (_, n) => {
      return { line: n + 1, item: { ...least, source_id: String(n) } };
    });
  return {
    said,
    calls: () => calls,
    async send(count: number) {
      await upload(sending, 'question', itemsOf(count));
      return sending.counts.question;
    },
  };
};

t.test('an item that makes a whole call unreadable is found, and the others go in', async (t) => {
  const { said, calls, send } = await uploadTo((ids) =>
    ids.includes('5')
      ? { status: 400, body: { error: 'The body is not valid JSON.' } }
      : { status: 200, body: { results: ids.map((_, index) => ({ index, status: 'created' })) } },
  );
  t.same(await send(8), { created: 7, exists: 0, bad: 1 });
  t.same(said, ['line 6: The body is not valid JSON.']);
  t.equal(calls(), 7);
});

t.test('results are matched by their index, with every reason', async (t) => {
  const { said, send } = await uploadTo(() => ({
    status: 200,
    body: {
      results: [
        { index: 1, status: 'refused', error: 'No.', fields: [{ path: 'a', message: 'b' }] },
        { index: 0, status: 'exists' },
      ],
    },
  }));
  t.same(await send(2), { created: 0, exists: 1, bad: 1 });
  t.same(said, ['line 2: No.; a: b']);
});

t.test('a service that cannot import stops it', async (t) => {
  for (const status of [401, 404, 500]) {
    const { send } = await uploadTo(() => ({ status, body: null }));
    await t.rejects(send(1), Stopped, `${status}`);
  }
  const { send } = await uploadTo(() => ({ status: 200, body: { results: [] } }));
  await t.rejects(send(1), Stopped, 'a result is missing');
});

t.test('arguments', async (t) => {
  const say = async (...argv: string[]): Promise<string> => {
    let said = '';
    t.equal(await runImport({ argv, screen: { write: (text) => (said += text) } }), 2);
    return said;
  };
  t.match(await say(), /^An argument is missing\.\n\nUsage/);
  t.match(await say('a', 'b'), /^There is an extra argument: b\.\n\nUsage/);
  t.match(await say('a', '--fast'), /fast[\s\S]*Usage/);
  t.match(
    await say('a', '--url', 'nowhere', '--admin-key-file', 'package.json'),
    /--url must be an address/,
  );
});

const record = (n: number, more: Record<string, unknown> = {}) => ({
  question: `Will shipment number ${n} reach its harbour in time?`,
  category: 'industry',
  subcategory: 'transportation_mobility',
  closes_at: '2031-05-01',
  source: 'harbour',
  source_id: `h-${String(n).padStart(4, '0')}`,
  ...more,
});
t.test('bad lines are listed with number and reason, and the rest goes in', async (t) => {
  const file = writeLines('questions.ndjson', [
    record(1),
    '{"question": "broken',
    record(3, { closes_at: 'next year' }),
    record(4, { category: 'sports' }),
    record(5, { opens_at: '2031-06-01' }),
    record(6, { question: 'Short?' }),
    record(7, { publish: true }),
    record(8, { question: `Is ${'it long '.repeat(70)}?` }),
  ]);
  const { code, output } = await run(file);
  t.equal(code, 4);
  t.match(output, /^line 2: not valid JSON: .*\n/m);
  t.match(output, /^line 3: .*closes_at/m);
  t.match(output, /^line 4: "sports" is not a category/m);
  t.match(output, /^line 5: closes_at must be later than opens_at/m);
  t.match(output, /^line 6: .*question/m);
  t.match(output, /^line 8: question was cut from 564 to 500 characters\n/m);
  t.match(
    output,
    /questions: 3 created, 0 there already, 5 bad\. 1 texts were cut to their limit\.\n$/,
  );
  t.match(await rows(), [
    { source_id: 'h-0001', status: 'draft', subcategory: 'transportation_mobility', weight: 1 },
    { source_id: 'h-0007', status: 'open' },
    { source_id: 'h-0008', status: 'draft' },
  ]);
});

t.test('a second run leaves everything as it is', async (t) => {
  const { source: _, source_id: __, ...nameless } = record(2);
  const file = writeLines('questions.ndjson', [record(1), nameless]);
  t.match(await run(file, ['--publish']), { code: 0, output: /2 created, 0 there already, 0 bad/ });
  const before = await rows();
  t.match(before, [{ status: 'open' }, { status: 'open' }]);
  t.match(await run(file, ['--publish']), { code: 0, output: /0 created, 2 there already, 0 bad/ });
  t.same(await rows(), before);
});

t.test('CSV and NDJSON of the same questions are the same questions', async (t) => {
  const csv = write(
    'questions.csv',
    'question,subcategory,question_type,options,tags,weight,closes_at,source,source_id\n' +
      '"Which port, of these, leads?",transportation_mobility,multi,Gdansk|Trieste,' +
      '#Aviation,4,2031-05-01,harbour,h-1\n' +
      'Will it be a record year here?,transportation_mobility,,,,,2031-05-01T12:00,harbour,h-2\n',
  );
  t.match(await run(csv), { code: 0, output: /2 created/ });
  t.match(await rows(), [
    {
      question: 'Which port, of these, leads?',
      category: 'industry',
      question_type: 'multi',
      options: ['Gdansk', 'Trieste'],
      tags: ['#Aviation'],
      weight: 4,
    },
    { question_type: 'binary', options: [], closes_at: new Date('2031-05-01T12:00:00Z') },
  ]);
  const ndjson = writeLines('questions.jsonl', [{ ...record(1), source_id: 'h-1' }]);
  t.match(await run(ndjson), { code: 0, output: /0 created, 1 there already/ });
});

t.test('the example of a converter takes question sets of its format', async (t) => {
  const own = {
    source: 'fairs',
    source_id: 'f-1',
    question: 'Will the electricity price in Norland fall below 3 cents?',
    background: '<p>Prices fell &amp; rose.</p>',
    resolution_criteria: 'Decided by the exchange.',
    url: 'https://fairs.dev/f-1',
    opens_at: '2025-01-01T00:00:00+00:00',
    closes_at: '2025-06-01T00:00:00+00:00',
    frozen_at: '2025-02-01T00:00:00+00:00',
    crowd_probability: 0.4,
    resolved_on: null,
    resolved_to: null,
  };
  const plain = { ...own, source_id: 'f-2', question: 'Will the hedgehog sleep longer this year?' };
  const file = writeLines('set.ndjson', [own, plain]);
  const made = write('made.ndjson', convert(file));
  t.match(await run(made, ['--publish']), { code: 0, output: /2 created/ });
  t.match(await rows(), [
    {
      category: 'industry',
      subcategory: 'energy_utilities',
      description: 'Prices fell & rose.\n\nDecided by the exchange.',
      closes_at: new Date('2025-06-01T00:00:00Z'),
    },
    { category: 'society', subcategory: null },
  ]);
});

t.test('an interrupted import goes on where it was', async (t) => {
  const all = 1_000;
  const file = writeLines(
    'many.ndjson',
    Array.from({ length: all }, (_, n) => record(n)),
  );
  const stop = new AbortController();
  const interrupted = run(file, [], stop);
  await until('a part of it is there', async () => (await rows()).length > 0);
  stop.abort();
  const { code, output } = await interrupted;
  t.equal(code, 1);
  t.match(output, /Interrupted\. Run the same command again to continue\.\n$/);
  const between = (await rows()).length;
  t.ok(between >= 100 && between < all, `${between} questions`);
  const { code: second_code, output: second } = await run(file);
  t.equal(second_code, 0);
  t.match(second, new RegExp(`${all - between} created, ${between} there already, 0 bad`));
  t.equal((await rows()).length, all);
});

t.test('when the service is the reason, one sentence and the exit code say so', async (t) => {
  const file = writeLines('questions.ndjson', [record(1)]);
  const wrong = write('wrong', 'not-the-admin-key-0123456789abcdefghij');
  t.match(await run(file, ['--admin-key-file', wrong]), {
    code: 1,
    output: /does not accept this admin key\. See --admin-key-file\.\n$/,
  });
  t.match(await run(file, ['--admin-key-file', `${wrong}-absent`]), {
    code: 1,
    output: /absent: there is no such file or folder\.\n$/,
  });
  t.match(await run(`${file}-absent`), { code: 1, output: /absent: there is no such file/ });
  await app.stop();
  t.match(await run(file), {
    code: 3,
    output: /Nothing answers\. Start the service with npm start, or give --url/,
  });
});
