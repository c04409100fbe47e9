import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { createClient } from '../../src/client/node.js';
import { type Item, makeItem, text_limits } from '../../src/tools/import/items.js';
import { kindOf, readRecords } from '../../src/tools/import/records.js';
import { readImportArguments } from '../../src/tools/import/run.js';
import { makeUpload, Stopped } from '../../src/tools/import/upload.js';
import { localUrl } from '../../src/tools/shared/arguments.js';

const pillars = new Map([['data', 'technology']]);
const options = { pillars, publish: false };
const least = {
  question: 'Will the ferry run on Sundays again?',
  category: 'society',
  closes_at: '2031-05-01',
};

const itemOf = (record: Record<string, unknown>): Item => {
  const made = makeItem('question', record, options);
  if ('problems' in made) throw new Error(made.problems.join('; '));
  return made.item;
};
const problemsOf = (record: Record<string, unknown>): readonly string[] => {
  const made = makeItem('question', record, options);
  return 'problems' in made ? made.problems : [];
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
    t.match(
      problemsOf({ ...least, closes_at: value }),
      [/^closes_at is .* not a date/],
      `${value}`,
    );
  }
});

t.test(
  'a subcategory that the taxonomy lacks is named where the category hangs on it',
  async (t) => {
    t.match(problemsOf({ question: 'Will it rain on the day?', subcategory: 'nonsense' }), [
      'category is missing, and the taxonomy has no subcategory "nonsense"',
    ]);
  },
);

t.test('everything that is wrong with a record is named at once', async (t) => {
  t.same(problemsOf({ weight: '2.5', tags: 7, publish: 'maybe', closes_at: 'soon' }), [
    'tags is 7 and not a list',
    'closes_at is "soon" and not a date or a time like 2027-03-31T12:00:00Z',
    'weight is "2.5" and not a whole number',
    'publish is "maybe" and not true or false',
    'question is missing',
    'category is missing',
  ]);
  t.match(problemsOf({ ...least, question: 'nul \0 inside the text' }), [/^question holds/]);
  t.match(problemsOf({ ...least, description: 'half \ud800 pair' }), [/^description holds/]);
  t.match(problemsOf({ ...least, tags: ['#A', {}] }), [/^tags is \{\} and not a text/]);
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

const writeTemporary = (t: Test, name: string, content: string): string => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-import-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
};

const readAll = async (file: string): Promise<readonly unknown[]> => {
  const entries: unknown[] = [];
  for await (const { at_byte: _, ...entry } of readRecords(file, await kindOf(file))) {
    entries.push(entry);
  }
  return entries;
};

t.test('NDJSON: line numbers count every line, and a bad line does not end it', async (t) => {
  const text = '\uFEFF{"a":1}\r\n\n{"a":\n[1]\n"x"\n{"a":2}';
  t.match(await readAll(writeTemporary(t, 'a.ndjson', text)), [
    { line: 1, record: { a: 1 } },
    { line: 3, problem: /^not valid JSON/ },
    { line: 4, problem: 'the line is JSON but not an object' },
    { line: 5, problem: 'the line is JSON but not an object' },
    { line: 6, record: { a: 2 } },
  ]);
});

t.test('CSV: quotes, rows over several lines, and rows that do not fit', async (t) => {
  const text = '\uFEFFquestion, tags\n"a ""b"", c",x|y\n"two\nlines",z\nlonely\n\nlast,w\n';
  const entries = await readAll(writeTemporary(t, 'a.csv', text));
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
    [{ line: 5, problem: /^not valid CSV/ }],
  );
});

t.test('the kind of a file comes from its name, else from its first character', async (t) => {
  t.equal(await kindOf(writeTemporary(t, 'a.CSV', '{')), 'csv');
  t.equal(await kindOf(writeTemporary(t, 'a.jsonl', 'a,b')), 'ndjson');
  t.equal(await kindOf(writeTemporary(t, 'a.txt', '\uFEFF \n{"a":1}')), 'ndjson');
  t.equal(await kindOf(writeTemporary(t, 'a.txt', 'a,b\n')), 'csv');
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** A service of another mind: it answers each call with what `answer` makes of its ids. */
const uploadTo = async (t: Test, answer: (ids: readonly string[]) => Answer) => {
  let calls = 0;
  const server = createServer(async (asked, reply) => {
    calls += 1;
    const { items } = JSON.parse(await text(asked)) as { items: { source_id: string }[] };
    const { status, body } = answer(items.map(({ source_id }) => source_id));
    reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const bad: [number, string][] = [];
  const upload = makeUpload({
    type: 'question',
    client: createClient({ base_url: `http://127.0.0.1:${port}` }),
    onBad: (line, reason) => bad.push([line, reason]),
    onDone: () => undefined,
    onSent: () => undefined,
  });
  return {
    bad,
    calls: () => calls,
    async send(count: number) {
      for (let n = 0; n < count; n += 1) {
        await upload.add({ line: n + 1, item: { ...least, source_id: String(n) } });
      }
      await upload.flush();
      return upload.counts;
    },
  };
};

t.test('an item that makes a whole call unreadable is found, and the others go in', async (t) => {
  const { bad, calls, send } = await uploadTo(t, (ids) =>
    ids.includes('5')
      ? { status: 400, body: { error: 'The body is not valid JSON.' } }
      : { status: 200, body: { results: ids.map((_, index) => ({ index, status: 'created' })) } },
  );
  t.same(await send(8), { created: 7, exists: 0, bad: 1 });
  t.same(bad, [[6, 'The body is not valid JSON.']]);
  t.equal(calls(), 7);
});

t.test('results are matched by their index, with every reason', async (t) => {
  const { bad, send } = await uploadTo(t, () => ({
    status: 200,
    body: {
      results: [
        { index: 1, status: 'refused', error: 'No.', fields: [{ path: 'a', message: 'b' }] },
        { index: 0, status: 'exists' },
      ],
    },
  }));
  t.same(await send(2), { created: 0, exists: 1, bad: 1 });
  t.same(bad, [[2, 'No.; a: b']]);
});

t.test('a service that cannot import stops it', async (t) => {
  for (const status of [401, 404, 500]) {
    const { send } = await uploadTo(t, () => ({ status, body: null }));
    await t.rejects(send(1), Stopped, `${status}`);
  }
  const { send } = await uploadTo(t, () => ({ status: 200, body: { results: [] } }));
  await t.rejects(send(1), Stopped, 'a result is missing');
});

t.test('arguments', async (t) => {
  t.match(readImportArguments(['a.csv']), {
    file: 'a.csv',
    url: localUrl(),
    admin_key_file: '.data/admin-key',
    publish: false,
  });
  t.match(readImportArguments(['a', '--publish']), { publish: true });
  t.match(readImportArguments([]), /^Usage/);
  t.match(readImportArguments(['a', 'b']), /^Usage/);
  t.match(readImportArguments(['a', '--fast']), /fast[\s\S]*Usage/);
  t.match(readImportArguments(['a', '--url', 'nowhere']), /--url takes an address/);
});
