import { fetchBytes } from '../features/exports/world.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { ask, openImports, past, source } from './records.js';
import type { Any, Fields } from './world.js';

/** Real-life files: encodings, separators, headers, numbers, quotes, line endings. */

const { app, write, run, send, questionOf, predictionsOn } = await openImports(t);

const head = 'question,subcategory,closes_at,source,source_id';
let files = 0;
/** Each file has its own ids, because existing ids would hide a fault. */
const idOf = (id: string): string => `${files}-${id}`;

const placeholder = /<(\w+)(?:\|([^<>]*))?>/g;
const unquote = (text: string): string => text.replace(/^ *"|" *$/g, '');
const textOf = (id: string, text?: string): string => unquote(text ?? `Will ${id} be imported?`);

/** `HEAD` becomes the header. `<id>` or `<id|text>` becomes a row, or a line of NDJSON. */
const expand = (text: string, name: string, by = ','): string => {
  const row = (id: string, title = textOf(id)) =>
    [title, 'data', '2035-12-01', source, idOf(id)].join(by);
  const line = (id: string, title = textOf(id)) =>
    JSON.stringify({ ...ask(idOf(id)), question: title });
  return text
    .replaceAll('HEAD', head.replaceAll(',', by))
    .replace(placeholder, (_, id, title) => (name.endsWith('.csv') ? row : line)(id, title));
};

const countQuestions = async (): Promise<number> => {
  const [counted] = await app.sql<{ count: number }[]>`
    select count(*)::integer as count from questions`;
  return counted!.count;
};

/**
 * A file, the ids that are imported, and the messages. The messages give a reason for each bad
 * line, or one reason why nothing is sent.
 */
type Case = readonly [
  what: string,
  text: string,
  made?: string,
  said?: Readonly<Record<number, string>> | string,
  more?: { readonly name?: string; readonly by?: string; readonly encoding?: BufferEncoding },
];

const check = async ([what, text, made = '', said = {}, more = {}]: Case): Promise<void> => {
  files += 1;
  const { name = 'in.csv', by = ',', encoding = 'utf8' } = more;
  const before = await countQuestions();
  const file = write(name, Buffer.from(expand(text, name, by), encoding));
  const { code, output } = await run(file, ['--publish']);
  const reasons = typeof said === 'string' ? [] : Object.entries(said);
  t.equal(code, typeof said === 'string' ? 1 : reasons.length > 0 ? 4 : 0, `${what}: ${output}`);
  if (typeof said === 'string') t.match(output, said, what);
  for (const [line, reason] of reasons) {
    t.match(output, new RegExp(`^line ${line}: .*${reason}`, 'm'), `${what}: line ${line}`);
  }
  if (reasons.length > 0) t.match(output, ` ${reasons.length} bad`, what);
  const ids = made.split(' ').filter((id) => id !== '');
  for (const id of ids) {
    const [, , title] = [...text.matchAll(placeholder)].find((one) => one[1] === id)!;
    const stored = (await questionOf(idOf(id)))?.question;
    // A title is stored as one line.
    t.equal(
      stored,
      textOf(id, title).replace(/\s*[\t\n\r\u2028]\s*/g, ' '),
      `${what}: ${id}; ${output}`,
    );
  }
  t.equal(await countQuestions(), before + ids.length, `${what}: nothing else went in`);
};

const latin1 = { encoding: 'latin1' } as const;
const json = { name: 'in.json' };
const ndjson = { name: 'in.ndjson' };
const utf16 = { name: 'in.txt', encoding: 'utf16le' } as const;
const weather = 'Will rain, snow or hail come first?';
const span = '"Will this text\r\non two lines\nor three be kept?"';

const cases: Readonly<Record<string, readonly Case[]>> = {
  'bytes that are not UTF-8, before anything is sent': [
    ['Latin-1', 'HEAD\r\n<1>\r\n<2|Will the café open?>\r\n', '', 'Line 3 is not', latin1],
    ['Windows-1252', '<1>\n<2|Will \x93it\x94 be?>', '', 'Line 2 is not', { ...latin1, ...ndjson }],
    ['UTF-16 with its mark', '\ufeffHEAD\n<1>\n', '', 'Line 1 is not valid UTF-8', utf16],
    ['UTF-16 without a mark', 'HEAD\n<1>\n', '', 'Line 1 is not text', utf16],
    ['big-endian UTF-16', 'þÿ\0H\0E\0A\0D\0\n', '', 'Line 1 is not valid UTF-8', latin1],
    ['Shift-JIS', 'HEAD\n<1>\n<2>\n<3|Is \x93\x8c\x8b\x9e it?>', '', 'Line 4 is not', latin1],
    ['surrogates', 'HEAD\n<1|Will \xed\xa0\xbd\xed\xb8\x80 be used?>', '', 'Line 2 is not', latin1],
    ['a character cut off', 'HEAD\n<1>\n<2> \xe2\x82', '', 'Line 3 is not', latin1],
    ['an overlong zero', 'HEAD\n<1|Will \xc0\x80 end it here?>\n', '', 'Line 2 is not', latin1],
    ['line ends of all kinds', 'HEAD\r\n"one\ntwo\rthree"\n<1|naïve>', '', 'Line 5 is not', latin1],
    ['a real U+FFFD', 'HEAD\n<1|Will the \ufffd sign be kept?>\n', '1'],
    ['a mark', '\ufeffHEAD\r\n<1>\r\n', '1'],
    ['a mark and quotes', `\ufeff"${head.replaceAll(',', '","')}"\r\n<1>\r\n`, '1'],
    ['a mark before NDJSON', '\ufeff<1>\n', '1', {}, { name: 'in.txt' }],
  ],
  separators: [
    ['semicolons', `HEAD\n<1|${weather}>\n`, '1', {}, { by: ';' }],
    ['tabulators', `HEAD\n<1|${weather};>\n`, '1', {}, { by: '\t' }],
    ['sep=;', 'sep=;\r\nHEAD\r\n<1>\r\n<2|bad>\r\n', '1', { 4: 'question' }, { by: ';' }],
    ['a mark and sep=tab', '\ufeffsep=\t\r\nHEAD\r\n<1>\r\n', '1', {}, { by: '\t' }],
    ['sep=, and a quoted column', 'sep=,\nHEAD,"a;b;c;d;e;f;g"\n<1>,x\n', '1'],
    ['a separator that patterns know', 'sep=|\nHEAD\n<1|Will 27" do?>\n', '1', {}, { by: '|' }],
    ['semicolons in a row', 'HEAD\n<1|Will a; b; c; d; e; f; g happen?>\n', '1'],
  ],
  headers: [
    ['capitals, blanks', ' Question ,SUBCATEGORY, Closes_At ,Source,SOURCE_ID\n<1>\n', '1'],
    ['what is not seen', '\u200bquestion,subcategory\u00a0,closes_at,source,source_id\n<1>\n', '1'],
    ['blanks within', 'Question,Subcategory,Closes At,Source,Source ID\n<1>\n', '1'],
    ['a column twice', 'HEAD,closes_at\n<1>,2036\n', '', 'the column closes_at appears twice'],
    ['in another case', 'HEAD,Question \n<1>,<2>\n', '', 'the column question appears twice'],
    ['an unknown one', 'HEAD,note,note\n<1>,a,b\n', '', 'Line 1: the column note appears twice'],
    ['columns without names', 'HEAD,,\n<1>,,\n', '1'],
    ['no header', '<1>\n<2>\n', '', 'Line 1 is not a header'],
    ['a header alone', 'HEAD\r\n'],
    ['NDJSON called CSV', '{"question":"Will it?"}\n', '', 'Line 1 is NDJSON'],
    ['a JSON list', '[\n {\n  "a": 1\n }\n]\n', '', 'one object per line', json],
    ['such a list in a line', '[{"question":"Will it?"}]\n', '', 'one object per line', ndjson],
  ],
  'line ends and cells over several lines': [
    ['mixed', 'HEAD\r\n<1>\n<2|bad>\r<3>\r\n<4|bad>\n\r\n<5|bad>', '1 3', { 3: '', 5: '', 7: '' }],
    ['a long cell', `HEAD\r\n<1|${span}>\r\n<2|bad>\r\n`, '1', { 5: '' }],
    ['a bad one', 'HEAD,description\n<1|bad>,"1\n2\n3"\n<2>,x\n<3|bad>,x\n', '2', { 2: '', 6: '' }],
    ['U+2028', 'HEAD\n<1|Will U+2028 (\u2028) end it?>\n<2|b\v>\n<3|b\f>\n', '1', { 3: '', 4: '' }],
    ['empty ones', '\nHEAD\n\n   \n,,,,\n<1>\n<2|bad>\n\n', '1', { 7: '' }],
    ['NDJSON', '<1|Is a\u2028b one?>\r\n\r\n{"a":\r\n<2>', '1 2', { 3: 'not valid' }, ndjson],
  ],
  'quotes and cells': [
    [
      'one never closed',
      'HEAD\n<1>\n<2>\n<3|"Will it?>\n<4>\n<5>\n',
      '1 2 4 5',
      { 4: 'quote opens' },
    ],
    ['further on', 'HEAD,d\n<1|"Will\nit?">,"never\n<2>,x\n', '2', { 3: 'a quote opens here' }],
    ['within a cell', 'HEAD\n<1|Will the 27" screen be sold?>\n<2>\n', '1 2'],
    [
      'then a comma',
      'HEAD\n<1|Will "rain, snow" come?>\n',
      '',
      { 2: 'has 6 cells, but the header has 5' },
    ],
    ['then a long cell', 'HEAD,d\n<1|Will 27" screens sell?>,"1\n2"\n<2|bad>,x\n', '1', { 4: '' }],
    ['then text', 'HEAD\n<1|"Will "this" be clean?">\n<2>\n', '2', { 2: 'text follows a' }],
    ['with backslashes', 'HEAD\n<1|"Will \\"this\\" do?">\n<2>\n', '2', { 2: 'text follows a' }],
    ['blanks around', `HEAD\n<1| "${weather}" >\n`, '1'],
    ['too many', `HEAD\n<1|${weather}>\n<2>\n`, '2', { 2: 'has 6 cells, but the header has 5' }],
    ['too few', 'HEAD\nWill this do?,data\n<2>\n', '2', { 2: 'has 2 cells, but the header has 5' }],
    ['optional ones', 'HEAD,weight,tags\n<1>\n', '', { 2: 'has 5 cells, but the header has 7' }],
    ['empty ones more', 'HEAD\n<1>,,,\n', '1'],
  ],
  'values as programs write them': [
    ['weights of pandas', 'HEAD,weight\n<1>,2.0\n<2>,0x3\n', '1', { 3: 'weight' }],
    ['ids like numbers', 'HEAD\n<007>\n<1e5>\n<0x1F>\n<7>\n', '007 1e5 0x1F 7'],
    ['NaN', '{"question":"Will it?","weight":NaN}\n', '', { 1: 'not valid JSON' }, ndjson],
    ['Python', "{'a': None}\n{'a': 1}\n", '', { 1: 'not valid JSON', 2: 'not valid JSON' }, ndjson],
  ],
};

t.test('exports of questions go back in', async (t) => {
  const asked: readonly Fields[] = [
    {
      ...ask('back-1', ['A|B', '=C', '"D", ü']),
      question: 'Which of these odd options will it be?',
      subcategory: 'hardware_compute',
      tags: ['#GPU'],
      description: 'one\r\ntwo, "three"; four',
    },
    { ...ask('back-2'), question: '=SUM of all papers above 100 in 2035?' },
    {
      ...ask('back-3'),
      question: 'How many degrees will it be by then?',
      question_type: 'numeric',
      range: { min: -5, max: 5.5, open_max: true },
    },
  ];
  t.match(await send(asked), { code: 0 });
  const names = 'question options tags description closes_at range question_type'.split(' ');
  const contentOf = (question: Any) => names.map((name) => question[name]);
  for (const form of ['format=csv', 'format=csv&excel=true', 'format=ndjson']) {
    const exported = await until('they are exported', async () => {
      const { bytes } = await fetchBytes(`${app.url}/api/export/questions?${form}`);
      return bytes.includes('back-3') && bytes.toString();
    });
    const name = form === 'format=ndjson' ? 'in.ndjson' : 'in.csv';
    const renamed = exported.replaceAll('back-', `${form}-`);
    const { code, output } = await run(write(name, renamed), ['--publish']);
    t.equal(code, 0, `${form}: ${output}`);
    t.match(output, /3 created/, form);
    for (const n of [1, 2, 3]) {
      const back = await questionOf(`${form}-${n}`);
      t.same(contentOf(back), contentOf(await questionOf(`back-${n}`)), `${form}: ${n}`);
    }
  }
});

for (const [what, all] of Object.entries(cases)) {
  t.test(`files: ${what}`, async () => {
    for (const one of all) await check(one);
  });
}

t.test('an empty file is said to be empty', async (t) => {
  for (const text of ['', '\ufeff\r\n\r\n']) {
    t.match(await run(write('in.csv', text)), { code: 0, output: /^The file is empty\./ });
  }
});

t.test('a key twice in a line of NDJSON has its last value', async (t) => {
  const line = JSON.stringify(ask('twice')).replace(/}$/, ',"question":"Will the last text win?"}');
  t.match(await send([line]), { code: 0 });
  t.match(await questionOf('twice'), { question: 'Will the last text win?' });
});

t.test('equal reasons are grouped', async (t) => {
  const rows = Array.from({ length: 350 }, (_, n) => `Will number ${n} happen?,,2035-12-01,g,${n}`);
  const { code, output } = await run(write('in.csv', `${[head, ...rows].join('\n')}\nbad,data,,,`));
  t.equal(code, 4);
  t.match(output, /^line 2: .*\nline 3: .*\nline 4: .*\nline 352: .*\n350 lines: .*\nquestions: /);
});

t.test('a character over the boundary of two chunks stays whole', async (t) => {
  const [before, after] = [`${head},description\n`, 'Will it stay whole?,data,2035-12-01,g,whole,'];
  const filling = 'x'.repeat(9_000);
  const rows = Array.from({ length: 7 }, (_, n) => `bad,data,2035-12-01,g,${n},${filling}\n`).join(
    '',
  );
  const missing = 65_535 - before.length - rows.length - after.length;
  const text = `${before}${rows}${after}${'x'.repeat(missing)}é\n`;
  t.equal(Buffer.from(text).indexOf('é'), 65_535);
  const { output } = await run(write('in.csv', text), ['--publish']);
  t.match(output, /1 created, 0 there already, 7 bad/);
  const [row] = await app.sql`select description from questions where source_id = 'whole'`;
  t.equal(row?.['description'], `${'x'.repeat(missing)}é`);
});

t.test('numbers of a CSV are decimal, and nothing else is one', async (t) => {
  await send([{ ...ask('num'), ...past }]);
  const { id } = await questionOf('num');
  const importCells = (cells: readonly string[], agent: string) =>
    run(
      write(
        'in.csv',
        [
          'type,source,source_id,agent,model,forecast_at,scale,probability',
          ...cells.map(
            (cell, n) => `forecast,${source},num,${agent} ${n},gpt-4o,2025-06-01,percent,"${cell}"`,
          ),
        ].join('\n'),
      ),
    );
  const refused = [
    ...['0x10', '0b11', '1_0', '1,5', '1.000,5', 'Infinity', 'NaN', '１２', '٤٥', '45%', '12 34'],
    ...['−5', '5n', 'true', 'None', '-5', '100.004', '1e3'],
  ];
  const wrong = await importCells(refused, 'Wrong');
  t.equal(wrong.code, 4);
  t.match(wrong.output, `forecasts: 0 created, 0 there already, ${refused.length} bad`);
  t.match(wrong.output, /^line 2: .*probability/m);
  t.same(await predictionsOn(id), []);
  const taken: readonly [string, number][] = [
    ['1e1', 10],
    ['5E-1', 0.5],
    ['+5', 5],
    [' 5 ', 5],
    ['5.', 5],
    ['.5', 0.5],
    ['05', 5],
    ['12.50', 12.5],
    ['12.344', 12.34],
    ['-0', 0],
    ['100', 100],
  ];
  const right = await importCells(
    taken.map(([cell]) => cell),
    'Right',
  );
  t.equal(right.code, 0, right.output);
  const stored = new Map(
    (await predictionsOn(id)).map(({ user_name, probability }) => [user_name, probability]),
  );
  for (const [n, [cell, number]] of taken.entries()) {
    t.ok(Object.is(stored.get(`Right ${n}`), number), `${cell}: ${stored.get(`Right ${n}`)}`);
  }
});

t.test('dates as people have them', async (t) => {
  const dates: readonly [string, string | null][] = [
    ['2035-02-30', null],
    ['12/01/2035', null],
    ['01.12.2035', null],
    ['49279', null],
    ['2035-12-01T12:00:00+02:00', '2035-12-01T10:00:00.000Z'],
    ['2035-12-01 12:00:00', '2035-12-01T12:00:00.000Z'],
  ];
  const rows = dates.map(([date], n) => `Will date ${n} be right?,data,${date},${source},d${n}`);
  const content = [head, ...rows].join('\n');
  const { code, output } = await run(write('in.csv', content), ['--publish']);
  t.equal(code, 4);
  for (const [n, [date, iso]] of dates.entries()) {
    t.equal((await questionOf(`d${n}`))?.closes_at ?? null, iso, date);
  }
  t.match(output, /^line 2: .*closes_at/m);
});
