import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { runImport } from '../../src/tools/import.js';
import { startApp, type TestApp } from '../help/app.js';
import { convert } from '../help/season.js';
import { until } from '../help/until.js';

interface Imported {
  readonly code: number;
  readonly output: string;
}

interface Bench {
  readonly app: TestApp;
  write(name: string, content: string): string;
  run(file: string, argv?: readonly string[], stop?: AbortController): Promise<Imported>;
  rows(): Promise<readonly Record<string, unknown>[]>;
}

const open = async (t: Test): Promise<Bench> => {
  const app = await startApp(t, { roles: ['api'] });
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-import-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const write = (name: string, content: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, content);
    return file;
  };
  const key_file = write('key', `${app.admin_key}\n`);
  return {
    app,
    write,
    async run(file, argv = [], stop) {
      let output = '';
      const screen = {
        write: (text: string) => {
          output += text;
        },
      };
      const code = await runImport({
        argv: [file, '--url', app.url, '--admin-key-file', key_file, ...argv],
        screen,
        patience_ms: 2_000,
        ...(stop === undefined ? {} : { stop: stop.signal }),
      });
      return { code, output };
    },
    rows: () => app.sql`
      select question, category, subcategory, status, question_type, options, tags, weight,
        closes_at, source, source_id, description
      from questions
      order by source_id`,
  };
};

const record = (n: number, more: Record<string, unknown> = {}) => ({
  question: `Will shipment number ${n} reach its harbour in time?`,
  category: 'industry',
  subcategory: 'transportation_mobility',
  closes_at: '2031-05-01',
  source: 'harbour',
  source_id: `h-${String(n).padStart(4, '0')}`,
  ...more,
});
const lines = (records: readonly unknown[]): string =>
  records.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`).join('');

t.test('bad lines are listed with number and reason, and the rest goes in', async (t) => {
  const { run, rows, write } = await open(t);
  const file = write(
    'questions.ndjson',
    lines([
      record(1),
      '{"question": "broken',
      record(3, { closes_at: 'next year' }),
      record(4, { category: 'sports' }),
      record(5, { opens_at: '2031-06-01' }),
      record(6, { question: 'Short?' }),
      record(7, { publish: true }),
      record(8, { question: `Is ${'it long '.repeat(70)}?` }),
    ]),
  );
  const { code, output } = await run(file);
  t.equal(code, 2);
  t.match(output, /^line 2: not valid JSON: .*\n/m);
  t.match(output, /^line 3: .*closes_at/m);
  t.match(output, /^line 4: "sports" is not a category/m);
  t.match(output, /^line 5: closes_at has to be later than opens_at/m);
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
  const { run, rows, write } = await open(t);
  const { source: _, source_id: __, ...nameless } = record(2);
  const file = write('questions.ndjson', lines([record(1), nameless]));
  t.match(await run(file, ['--publish']), { code: 0, output: /2 created, 0 there already, 0 bad/ });
  const before = await rows();
  t.match(before, [{ status: 'open' }, { status: 'open' }]);
  t.match(await run(file, ['--publish']), { code: 0, output: /0 created, 2 there already, 0 bad/ });
  t.same(await rows(), before);
});

t.test('CSV and NDJSON of the same questions are the same questions', async (t) => {
  const { run, rows, write } = await open(t);
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
  const ndjson = write('questions.jsonl', lines([{ ...record(1), source_id: 'h-1' }]));
  t.match(await run(ndjson), { code: 0, output: /0 created, 1 there already/ });
});

t.test('the example of a converter takes question sets of its format', async (t) => {
  const { run, rows, write } = await open(t);
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
  const file = write('set.ndjson', lines([own, plain]));
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
  const { run, rows, write } = await open(t);
  const all = 2_000;
  const file = write('many.ndjson', lines(Array.from({ length: all }, (_, n) => record(n))));
  const stop = new AbortController();
  const interrupted = run(file, [], stop);
  await until('a part of it is there', async () => (await rows()).length > 0);
  stop.abort();
  const { code, output } = await interrupted;
  t.equal(code, 1);
  t.match(output, /Interrupted; run the same command again to go on\.\n$/);
  const between = (await rows()).length;
  t.ok(between >= 100 && between < all, `${between} questions`);
  const { code: second_code, output: second } = await run(file);
  t.equal(second_code, 0);
  t.match(second, new RegExp(`${all - between} created, ${between} there already, 0 bad`));
  t.equal((await rows()).length, all);
});

t.test('when the service is the reason, one sentence says so and the exit code is 1', async (t) => {
  const { app, run, write } = await open(t);
  const file = write('questions.ndjson', lines([record(1)]));
  const wrong = write('wrong', 'not-the-admin-key-0123456789abcdefghij');
  t.match(await run(file, ['--admin-key-file', wrong]), {
    code: 1,
    output: /does not accept this admin key; see --admin-key-file\.\n$/,
  });
  t.match(await run(file, ['--admin-key-file', `${wrong}-absent`]), {
    code: 1,
    output: /absent: there is no such file or folder\.\n$/,
  });
  t.match(await run(`${file}-absent`), { code: 1, output: /absent: there is no such file/ });
  await app.stop();
  t.match(await run(file), {
    code: 1,
    output: /Nothing answers; start the service with npm start, or give --url/,
  });
});
