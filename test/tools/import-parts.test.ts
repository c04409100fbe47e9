import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { createClient } from '../../src/client/node.js';
import { Stopped } from '../../src/tools/command.js';
import { type Item, makeItem, readRecords, text_limits } from '../../src/tools/import/records.js';
import { makeCounts, runImport, upload } from '../../src/tools/import.js';

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

const writeTemporary = (t: Test, name: string, content: string): string => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-import-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
};

const readAll = async (file: string): Promise<readonly unknown[]> => {
  const entries: unknown[] = [];
  for await (const entry of readRecords(file)) entries.push(entry);
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
  const read = async (name: string, content: string): Promise<string> =>
    JSON.stringify(await readAll(writeTemporary(t, name, content)));
  t.match(await read('a.CSV', '{\nx\n'), '{"line":2,"record":{"{":"x"}}');
  t.match(await read('a.jsonl', 'a,b'), 'not valid JSON');
  t.match(await read('a.txt', '\uFEFF \n{"a":1}'), '"record":{"a":1}');
  t.match(await read('a.txt', 'a\nb\n'), '"record":{"a":"b"}');
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
  const said: string[] = [];
  const run = {
    client: createClient({ base_url: `http://127.0.0.1:${port}` }),
    progress: { show: () => undefined, say: (line: string) => void said.push(line) },
    counts: makeCounts(),
    cut: 0,
  };
  const itemsOf = (count: number) =>
    Array.from({ length: count }, (_, n) => {
      return { line: n + 1, item: { ...least, source_id: String(n) } };
    });
  return {
    said,
    calls: () => calls,
    async send(count: number) {
      await upload(run, 'question', itemsOf(count));
      return run.counts.question;
    },
  };
};

t.test('an item that makes a whole call unreadable is found, and the others go in', async (t) => {
  const { said, calls, send } = await uploadTo(t, (ids) =>
    ids.includes('5')
      ? { status: 400, body: { error: 'The body is not valid JSON.' } }
      : { status: 200, body: { results: ids.map((_, index) => ({ index, status: 'created' })) } },
  );
  t.same(await send(8), { created: 7, exists: 0, bad: 1 });
  t.same(said, ['line 6: The body is not valid JSON.']);
  t.equal(calls(), 7);
});

t.test('results are matched by their index, with every reason', async (t) => {
  const { said, send } = await uploadTo(t, () => ({
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
    const { send } = await uploadTo(t, () => ({ status, body: null }));
    await t.rejects(send(1), Stopped, `${status}`);
  }
  const { send } = await uploadTo(t, () => ({ status: 200, body: { results: [] } }));
  await t.rejects(send(1), Stopped, 'a result is missing');
});

t.test('arguments', async (t) => {
  const run = async (...argv: string[]): Promise<string> => {
    let said = '';
    t.equal(await runImport({ argv, screen: { write: (text) => (said += text) } }), 1);
    return said;
  };
  t.match(await run(), /^Usage/);
  t.match(await run('a', 'b'), /^Usage/);
  t.match(await run('a', '--fast'), /fast[\s\S]*Usage/);
  t.match(await run('a', '--url', 'nowhere', '--admin-key-file', 'package.json'), /--url takes/);
});
