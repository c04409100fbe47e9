import { makeAgent, makeHuman, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { ask, decision, openImports, past, source } from './records.js';
import { type Any, eventOf, type Fields, place, placeOrThrow } from './world.js';

/** Outcomes and options. Option texts take precedence over special words and numbers. */

const { app, write, run, send, questionOf, predictionsOn } = await openImports(t);
const agent = await makeAgent(app, { human: await makeHuman(app) });
const numeric: Fields = { question_type: 'numeric', range: { min: 0, max: 100 } };
const bars = ['A|B', 'A', 'B'];
const to = (resolved_to: unknown): Fields => ({ resolved_to });

/** The correct options, a yes/no outcome, `void`, or the reason why the line is refused. */
type Right = readonly string[] | boolean | 'void' | RegExp;

const resolutions: readonly [string, Fields | readonly string[], Fields, Right][] = [
  ['an option void', ['void', 'valid'], to('void'), ['void']],
  ['an option void, voided by the form of its own', ['void', 'valid'], { void: true }, 'void'],
  ['void beside an outcome', ['void', 'valid'], { void: true, ...to('valid') }, /either void or/],
  ['void: false is no voiding', {}, { void: false, ...to(1) }, true],
  ['folding comes before words', ['Void', 'Valid'], to(' VOID '), ['Void']],
  ['the word void', ['one', 'other'], to('void'), 'void'],
  ['the word void on yes/no', {}, to('void'), 'void'],
  ['options yes and no', ['yes', 'no', 'postponed'], to('no'), ['no']],
  ['the number 0 is an option', ['1', '0', '2'], to(0), ['0']],
  ['the text 1 is an option', ['0', '1'], to('1'), ['1']],
  ['a number is no place in the list', ['red', 'green'], to(1), /“1” is not an option.*red, green/],
  ['true of JSON', ['true', 'false', 'unknown'], to(true), ['true']],
  ['an option with a bar', bars, to('A|B'), ['A|B']],
  ['a list beside an option with a bar', bars, to(['A', 'B']), ['A', 'B']],
  ['two options with a bar between', bars, to('B|A'), ['A', 'B']],
  ['blanks tell A | B from A|B', bars, to('A | B'), ['A', 'B']],
  ['a list with an option with a bar', ['A|B', 'C', 'D'], to(['A|B', 'C']), ['A|B', 'C']],
  ['nothing is guessed from bars', ['A|B', 'C', 'D'], to('A|B|C'), /“A” is not an option/],
  ['an option that looks like a list', ['["A"]', 'A', 'B'], to('["A"]'), ['["A"]']],
  ['a list beside an option like it', ['["A"]', 'A', 'B'], to(['A']), ['A']],
  ['a list as text', ['A', 'B', 'C'], to('["A","C"]'), ['A', 'C']],
  ['a text of JSON', ['A', 'B'], to('"A"'), ['A']],
  ['the text null', ['null', 'some'], to('null'), ['null']],
  ['null is no outcome', ['null', 'some'], to(null), /correct option/],
  ['digits are texts', ['1', '01', '1.0'], to('01'), ['01']],
  ['a list of numbers', ['2034', '2035', '2036'], to([2034, 2035]), ['2034', '2035']],
  ['an object', ['A', 'B'], to({ A: 1 }), /resolved_to/],
  ['all options', ['A', 'B'], to('A|B'), /Void the question instead/],
  ['an option named twice', ['Alpha', 'Beta'], to(['Alpha', 'ALPHA ']), /“ALPHA ” is named twice/],
  ['a fraction on yes/no', {}, to(0.7), /resolved to 1, 0, yes, no or void/],
  ['a word in capitals on yes/no', {}, to('YES'), true],
  ['words for void as options', ['N/A', 'cancelled', 'annulled'], to('annulled'), ['annulled']],
  ['a number, voided', numeric, { void: true }, 'void'],
  ['a number is no word', numeric, { outcome_value: 'void' }, /outcome_value/],
];

const rightOf = (right: Right): Fields => {
  if (right === 'void') return { status: 'voided', outcome: null, correct_options: null };
  if (typeof right === 'boolean') return { status: 'resolved', outcome: right };
  if (right instanceof RegExp) return { status: 'open' };
  return { status: 'resolved', outcome: null, correct_options: right };
};

t.test('resolved_to is an option first, then JSON, then a list, then a word', async (t) => {
  for (const [n, [what, asked, stated, right]] of resolutions.entries()) {
    const { code, output } = await send([ask(`a${n}`, asked), decision(`a${n}`, stated)]);
    t.match(await questionOf(`a${n}`), rightOf(right), `${what}: ${output}`);
    t.equal(code, right instanceof RegExp ? 4 : 0, what);
    if (right instanceof RegExp)
      t.match(output, new RegExp(`^line 2: .*${right.source}`, 'm'), what);
  }
});

/** Texts that have a special meaning, used as options. */
const special = ['void', 'yes', '1', '0', 'true', 'A|B', '["A"]', 'null'];

t.test('in CSV each of such texts is the option', async (t) => {
  const options = JSON.stringify(special).replaceAll('"', '""');
  for (const [n, option] of special.entries()) {
    const cell = `"${option.replaceAll('"', '""')}"`;
    const file = write(
      'in.csv',
      'type,source,source_id,question,subcategory,question_type,options,closes_at,publish,resolved_to\r\n' +
        `,${source},csv${n},Which word of this file is right?,data,multi,"${options}",2035-12-01,true,\r\n` +
        `resolution,${source},csv${n},,,,,,,${cell}\r\n`,
    );
    t.match(await run(file), { code: 0 });
    const question = await questionOf(`csv${n}`);
    t.match(question, { status: 'resolved', options: special, correct_options: [option] }, option);
  }
});

t.test('in CSV brackets may be text, void has a column, an empty cell is absent', async (t) => {
  const head = 'type,source,source_id,question,subcategory,question_type,options,closes_at,publish';
  const row = (id: string, more: string) =>
    `,${source},${id},Which end will it take?,data,${more},2035-12-01,true`;
  const file = write(
    'in.csv',
    [
      `${head},resolved_to,void`,
      `${row('bars', 'multi,[x]|[y]')},,`,
      `${row('voided', ',')},,`,
      `${row('empty', ',')},,`,
      `resolution,${source},voided,,,,,,,,true`,
      `resolution,${source},empty,,,,,,,,`,
    ].join('\n'),
  );
  const { code, output } = await run(file);
  t.equal(code, 4);
  t.match(output, /^line 6: .*outcome/m);
  t.match(await questionOf('bars'), { options: ['[x]', '[y]'] });
  t.match(await questionOf('voided'), { status: 'voided' });
  t.match(await questionOf('empty'), { status: 'open' });
});

const alike: readonly [string, string, string][] = [
  ['case', 'Yes', 'YES'],
  ['blanks around', 'Yes', ' Yes\t'],
  ['blanks inside', 'New York', 'New  York'],
  ['a non-breaking blank', 'New York', 'New\u00a0York'],
  ['a narrow and an ideographic blank', '10\u202f000', '10\u3000000'],
  ['a zero-width space', 'Yes', 'Y\u200bes'],
  ['a zero-width space between two blanks', 'New York', 'New \u200b York'],
  ['a byte order mark inside a word', 'Newyork', 'New\ufeffyork'],
  ['full width', 'Yes', 'Ｙｅｓ'],
  ['half-width katakana', 'ガス', 'ｶﾞｽ'],
  ['composition', 'Café', 'CAFE\u0301'],
  ['a ligature', 'Official', 'Oﬃcial'],
  ['sharp s', 'Straße', 'STRASSE'],
  ['capital sharp s', 'STRAẞE', 'straße'],
  ['two German words', 'Masse', 'Maße'],
  ['final sigma', 'ΟΔΟΣ', 'οδος'],
  ['dotless i', 'kırık', 'kirik'],
  ['an emoji variation selector', '❤', '❤\ufe0f'],
  ['a soft hyphen', 'Bundesbank', 'Bundes\u00adbank'],
  ['a left-to-right mark', 'Yes', 'Yes\u200e'],
  ['a word joiner', 'A', '\u2060A'],
  ['a zero-width non-joiner', 'می\u200cخواهم', 'میخواهم'],
  ['a Roman numeral sign', 'Part IV', 'Part Ⅳ'],
  ['a superscript', 'm2', 'm²'],
  ['the ohm sign', '\u2126', 'ω'],
  ['long s', 'Saal', 'ſaal'],
  ['the joiner of a family', '👨\u200d👩', '👨👩'],
  ['a line break', 'one two', 'one\ntwo'],
  ['tags of two flags', '🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}', '🏴\u{e007f}'],
  ['nothing that can be seen', '\u200b\u2060\u00ad', 'visible'],
  ['a Hangul filler', '\u3164', 'visible'],
];

const apart: readonly [string, string, string][] = [
  ['capital I with a dot', 'İzmir', 'izmir'],
  ['an accent', 'resume', 'résumé'],
  ['an umlaut spelled out', 'Müller', 'Mueller'],
  ['skin tone', '👍', '👍🏽'],
  ['Cyrillic A', 'A', 'А'],
  ['hyphen and dash', '10-20', '10–20'],
  ['apostrophes', "Levi's", 'Levi’s'],
  ['a blank or none', 'New York', 'NewYork'],
  ['sign', '-5', '5'],
  ['flags', '🇩🇪', '🇫🇷'],
  ['names of members of objects', 'constructor', 'hasOwnProperty'],
  ['minus signs', '−5', '-5'],
];

const draft = (source_id: string, options: readonly string[]): Fields => ({
  ...ask(source_id, options),
  category: 'technology',
  closes_at: '2035-12-01T00:00:00.000Z',
});

t.test('options that cannot be told apart are refused, by the API and by an import', async (t) => {
  const drafts = alike.map(([, one, other], n) => draft(`alike${n}`, [one, other, 'neither']));
  for (const [n, body] of drafts.entries()) {
    const answer = await app.call('POST', '/api/admin/questions', { admin: true, body });
    t.match(
      answer,
      { status: 400, body: { code: 'INVALID_OPTIONS', fields: [{ path: 'body.options' }] } },
      alike[n]![0],
    );
  }
  const { code, output } = await send(drafts);
  t.equal(code, 4);
  t.match(output, new RegExp(`0 created, 0 there already, ${alike.length} bad`));
  for (const [n, [what]] of alike.slice(0, -2).entries()) {
    t.match(output, new RegExp(`^line ${n + 1}: .*too alike|^line ${n + 1}: .*twice`, 'm'), what);
  }
});

t.test('options that merely resemble each other stay two', async (t) => {
  for (const [n, [what, one, other]] of apart.entries()) {
    const body = draft(`apart${n}`, [one, other, 'neither']);
    const made = await app.call('POST', '/api/admin/questions', { admin: true, body });
    t.equal(made.status, 201, `${what}: ${made.body.error}`);
    t.same(made.body.question?.options, [one, other, 'neither'], what);
    const { code } = await send([decision(`apart${n}`, to(other))]);
    t.equal(code, 0, what);
    t.same((await questionOf(`apart${n}`)).correct_options, [other], what);
  }
});

/** Shows probabilities as a list in the order of the options. */
const shown = (prediction: Any): Fields => ({
  ...prediction,
  probabilities: Object.values(prediction?.probabilities ?? {}),
});

const cafe = ['Yes', 'No', 'Café au lait'];
const shares: Fields = { probabilities: { 'YES ': 20, ' no': 30, 'CAFE\u0301  au lait': 50 } };

t.test('a forecast names options as people write them', async (t) => {
  const one = (selected_option: string | undefined): Fields => ({ selected_option });
  const of = (text: string): Fields => ({ ...one(text), confidence: 70 });
  const stated: readonly [string, readonly string[], Fields, Fields | string][] = [
    ['blanks', cafe, of(' yes '), one('Yes')],
    ['full width', cafe, of('ＮＯ'), one('No')],
    ['capitals', cafe, of('CAFE\u0301  AU LAIT'), one(cafe[2])],
    ['zero width', cafe, of('\u200bYes\ufeff'), one('Yes')],
    ['another text', cafe, of('Yes!'), 'The options are Yes, No'],
    ['keys', cafe, shares, { probabilities: [20, 30, 50] }],
    ['two keys for one', cafe, { probabilities: { Yes: 20, 'yes ': 30, No: 50 } }, 'named twice'],
    [
      'a side beside an option',
      ['yes', 'no'],
      { prediction: 'yes', selected_option: 'no', confidence: 80 },
      { selected_option: 'no', confidence: 80 },
    ],
    [
      'names of members of objects',
      ['__proto__', 'constructor', 'toString'],
      { probabilities: [50, 30, 20] },
      { probabilities: [50, 30, 20] },
    ],
  ];
  for (const [n, [what, options, body, right]] of stated.entries()) {
    await send([ask(`p${n}`, options)]);
    const { id } = await questionOf(`p${n}`);
    const answer = await place(app, agent, id, body);
    if (typeof right === 'string') {
      t.match(answer, { status: 400, body: { code: 'INVALID_OPTION' } }, what);
      t.match(JSON.stringify(answer.body), right, what);
    } else t.match(shown(answer.body.prediction), right, `${what}: ${answer.body.error}`);
  }
  const { id } = await questionOf(`p${stated.length - 1}`);
  const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
  t.match(JSON.stringify(body), /__proto__/);
  const polluted = `{"probabilities":{"__proto__":50,"constructor":50},"reasoning":${JSON.stringify(makeReasoning())}}`;
  const other = await makeAgent(app, { human: await makeHuman(app) });
  const answer = await app.call('POST', `/api/questions/${id}/predict`, {
    key: other.key,
    body: polluted,
  });
  t.equal(answer.status, 400);
});

t.test('an option called like a word is predicted, decided and shown as itself', async (t) => {
  const ids: string[] = [];
  for (const [n, option] of special.entries()) {
    await send([ask(`s${n}`, [option, 'something else', 'third'])]);
    const { id } = await questionOf(`s${n}`);
    ids.push(id);
    await placeOrThrow(app, agent, id, { selected_option: option, confidence: 60 });
    const resolve = (name: string, body: object = {}) =>
      app.call('POST', `/api/admin/questions/${id}/${name}`, { admin: true, body });
    await resolve('close');
    const { status } = await resolve('resolve', { correct_options: [`${option} `] });
    t.equal(status, 202, option);
    const { data } = await eventOf(app, 'question.resolved', id);
    t.same(data.correct_options, [option]);
    t.match(await questionOf(`s${n}`), rightOf([option]), option);
    const page = await app.call('GET', `/questions/${id}`);
    t.ok(page.body.includes(option.replaceAll('"', '&quot;')), `the page has ${option}`);
  }
  const path = '/api/export/predictions?format=ndjson';
  const lines = await until('all are exported', async () => {
    const { body } = await app.call('GET', path);
    const rows = body
      .split('\n')
      .filter((line: string) => line !== '')
      .map((line: string) => JSON.parse(line));
    const known = rows.filter(({ question_id }: Any) => ids.includes(question_id));
    return known.length === special.length && known;
  });
  for (const row of lines) {
    const selected_option = special[ids.indexOf(row.question_id)]!;
    t.match(row, { selected_option, confidence: 60 }, selected_option);
  }
});

t.test('a CSV of forecasts names options with =, with bars and behind a quote', async (t) => {
  const cells: readonly [string, readonly string[], string, Fields][] = [
    ['the last = separates', ['x=1', 'x=2'], ',x=1=30|x=2=70,', { probabilities: [30, 70] }],
    ['bars need JSON', ['A|B', 'C'], ',"{""A|B"":30,""C"":70}",', { probabilities: [30, 70] }],
    ['a list', ['A|B', 'C'], ',"[30,70]",', { probabilities: [30, 70] }],
    ['a formula', ['<b>', '=1+1', "O'Hara"], "'=1+1,,55", { selected_option: '=1+1' }],
  ];
  for (const [n, [what, options, cell, right]] of cells.entries()) {
    await send([{ ...ask(`f${n}`, options), ...past }]);
    const file = write(
      'in.csv',
      'type,source,source_id,agent,model,forecast_at,scale,selected_option,probabilities,confidence\n' +
        `forecast,${source},f${n},Timetable,gpt-4o,2025-06-01,percent,${cell}\n`,
    );
    const { code, output } = await run(file);
    t.equal(code, 0, `${what}: ${output}`);
    const [placed] = await predictionsOn((await questionOf(`f${n}`)).id);
    t.match(shown(placed), right, what);
  }
});
