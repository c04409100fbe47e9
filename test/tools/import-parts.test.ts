import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readImportArguments } from '../../src/tools/import/arguments.js';
import { type Item, makeItem, text_limits } from '../../src/tools/import/item.js';
import { makeMapping, toPlainText } from '../../src/tools/import/mapping.js';
import { readTime } from '../../src/tools/import/readers.js';
import { kindOf, readRecords } from '../../src/tools/import/records.js';
import { makeUploader, Stopped } from '../../src/tools/import/upload.js';
import type { Answer, CallParts } from '../../src/tools/shared/call.js';
import { localUrl } from '../../src/tools/shared/local-url.js';

const pillars = new Map([['data', 'technology']]);
const options = { pillars, publish: false };
const least = {
  question: 'Will the ferry run on Sundays again?',
  category: 'society',
  closes_at: '2031-05-01',
};

const itemOf = (record: Record<string, unknown>): Item => {
  const made = makeItem(record, options);
  if ('problems' in made) throw new Error(made.problems.join('; '));
  return made.item;
};
const problemsOf = (record: Record<string, unknown>): readonly string[] => {
  const made = makeItem(record, options);
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
  for (const [text, iso] of good) t.equal(readTime('closes_at', text), iso, text);
  const bad = [
    'soon',
    '2031-02-29',
    '2031-13-01',
    '01.05.2031',
    '2031-05-01T25:00',
    1935,
    '',
    null,
  ];
  for (const value of bad) {
    t.match(readTime('closes_at', value), { problem: /^closes_at is .* not a date/ }, `${value}`);
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
    const whole = makeItem({ ...least, [name]: 'x'.repeat(limit) }, options);
    t.match(whole, { item: { [name]: 'x'.repeat(limit) }, notices: [] });
    const long = makeItem({ ...least, [name]: 'x'.repeat(limit + 1) }, options);
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
  const published = makeItem(least, { ...options, publish: true });
  t.match(published, { item: { source_id: first.source_id, publish: true } });
  t.match(makeItem({ ...least, publish: false }, { ...options, publish: true }), {
    item: { publish: false },
  });
});

t.test(
  'a mapping fills fields from names, first non-empty ones, templates, constants',
  async (t) => {
    const map = makeMapping({
      fields: {
        question: 'title',
        description: { template: '{text}\n\n\n\n{rules}', plain: true },
        closes_at: { from: ['deadline', 'end'] },
        weight: { constant: 2 },
      },
    });
    t.same(map({ title: 'A?', text: '<p>Hi &amp; bye</p>', deadline: ' ', end: '2031-01-01' }), {
      question: 'A?',
      description: 'Hi & bye',
      closes_at: '2031-01-01',
      weight: 2,
    });
    t.same(map({ title: 'A?', text: 'One', rules: 'Two', deadline: '2030-01-01' }), {
      question: 'A?',
      description: 'One\n\nTwo',
      closes_at: '2030-01-01',
      weight: 2,
    });
  },
);

t.test('HTML becomes text that keeps links and breaks', async (t) => {
  t.equal(
    toPlainText(
      '<ul><li>See <a href="https://a.org/x" target="_blank">A</a></li></ul>1 &lt; 2<br/>3',
    ),
    '- See A (https://a.org/x)\n1 < 2\n3',
  );
  t.equal(toPlainText('2 < 3 and 4 > 1'), '2 < 3 and 4 > 1');
});

t.test('subjects: the first rule with a whole word wins, field by field', async (t) => {
  const map = makeMapping({
    fields: { question: 'q' },
    subjects: {
      in: ['q', 'more'],
      rules: [
        { subcategory: 'one', words: ['bank', 'élan'] },
        { subcategory: 'two', words: ['robot*', 'river bank'] },
      ],
      fallback: { category: 'society' },
    },
  });
  const subject = (record: Record<string, string>): unknown => map(record)['subcategory'];
  t.equal(subject({ q: 'The river bank' }), 'one', 'rules are tried in order');
  t.equal(subject({ q: 'Embankment and ROBOTICS' }), 'two', 'whole words; any case; any ending');
  t.equal(subject({ q: 'robot', more: 'bank' }), 'two', 'the first field decides');
  t.equal(subject({ q: 'nothing', more: 'an élan' }), 'one');
  t.equal(subject({ q: 'élans' }), undefined);
  t.same(map({ q: 'nothing' }), { category: 'society', question: 'nothing' });
});

t.test('a mapping that is not right is refused with the reason', async (t) => {
  t.throws(() => makeMapping({ fields: { colour: 'c' } }), /only these fields can be filled/);
  t.throws(() => makeMapping({ fields: { question: { form: 'c' } } }), /mapping is not right/);
  t.throws(() => makeMapping({ field: {} }), /mapping is not right/);
  t.throws(() => makeMapping('text'), /mapping is not right/);
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

const numbered = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    line: i + 1,
    item: { ...least, source: 's', source_id: String(i) } as Item,
  }));

const callerOf = (answer: (ids: readonly string[]) => Answer) => {
  const calls: (readonly string[])[] = [];
  const call = async ({ body }: CallParts): Promise<Answer> => {
    const ids = (body as { items: Item[] }).items.map((item) => item.source_id);
    calls.push(ids);
    return answer(ids);
  };
  return { calls, uploader: makeUploader({ url: 'http://service', call }, 'key') };
};

t.test('an item that makes a whole call unreadable is found, and the others go in', async (t) => {
  const { calls, uploader } = callerOf((ids) =>
    ids.includes('5')
      ? { status: 400, body: { error: 'The body is not valid JSON.' } }
      : { status: 200, body: { results: ids.map((_, index) => ({ index, status: 'created' })) } },
  );
  const outcomes = await uploader.send(numbered(8));
  t.same(
    outcomes.map((outcome) => outcome.kind),
    ['created', 'created', 'created', 'created', 'created', 'refused', 'created', 'created'],
  );
  t.match(outcomes[5], { reason: 'The body is not valid JSON.' });
  t.equal(calls.length, 7);
});

t.test('results are matched by their index, with every reason', async (t) => {
  const { uploader } = callerOf(() => ({
    status: 200,
    body: {
      results: [
        { index: 1, status: 'refused', error: 'No.', fields: [{ path: 'a', message: 'b' }] },
        { index: 0, status: 'exists' },
      ],
    },
  }));
  t.same(await uploader.send(numbered(2)), [
    { kind: 'exists' },
    { kind: 'refused', reason: 'No.; a: b' },
  ]);
});

t.test('a service that cannot import stops it', async (t) => {
  for (const status of [401, 404, 500]) {
    const { uploader } = callerOf(() => ({ status, body: null }));
    await t.rejects(uploader.send(numbered(1)), Stopped, `${status}`);
  }
  const { uploader } = callerOf(() => ({ status: 200, body: { results: [] } }));
  await t.rejects(uploader.send(numbered(1)), Stopped, 'a result is missing');
});

t.test('arguments', async (t) => {
  t.match(readImportArguments(['a.csv']), {
    file: 'a.csv',
    url: localUrl(),
    admin_key_file: '.data/admin-key',
    map: null,
    publish: false,
  });
  t.match(readImportArguments(['a', '--format', 'forecastbench', '--publish']), {
    map: { name: 'forecastbench' },
    publish: true,
  });
  t.match(readImportArguments(['a', '--map', 'm.json']), { map: { file: 'm.json' } });
  t.match(readImportArguments([]), /^Usage/);
  t.match(readImportArguments(['a', 'b']), /^Usage/);
  t.match(readImportArguments(['a', '--fast']), /fast[\s\S]*Usage/);
  t.match(readImportArguments(['a', '--format', 'x']), /--format knows forecastbench/);
  t.match(readImportArguments(['a', '--format', 'forecastbench', '--map', 'm']), /not both/);
  t.match(readImportArguments(['a', '--url', 'nowhere']), /--url takes an address/);
});
