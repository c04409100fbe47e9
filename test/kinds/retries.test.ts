import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { untilSettled } from '../help/settling.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { ask, decision, forecast, openImports, past } from './records.js';
import { type Any, eventOf, type Fields } from './world.js';

/** Repeated imports, even concurrent ones or after a lost answer, store a record only once. */

const { app, send, run, writeLines, questionOf, predictionsOn } = await openImports(t);

let questions = 0;
/** A separate question for each case, and its records. */
const open = (more: Fields | readonly string[] = {}) => {
  questions += 1;
  const id = `c${questions}`;
  return {
    id,
    asked: { ...ask(id, more), ...past } as Fields,
    said: (more: Fields = {}) => forecast(id, { agent: `Agent ${id}`, ...more }),
    decided: (more: unknown) =>
      decision(
        id,
        typeof more === 'object' && !Array.isArray(more) ? (more as Fields) : { resolved_to: more },
      ),
  };
};

const decisionsOf = (id: string) => app.sql<{ revision: number; known_at: Date | null }[]>`
  select revision, known_at from resolutions where question_id = ${id}`;

/** Resolutions in one file, the stored result, and the reason why the last one is refused. */
const repeated: readonly [
  what: string,
  asked: Fields | readonly string[],
  first: unknown,
  more: readonly unknown[],
  stored: Fields,
  refusal?: RegExp,
][] = [
  ['the same', {}, 1, [1], { outcome: true }],
  ['other spellings', {}, 1, [true, '1', 'yes', 'YES', 'true'], { outcome: true }],
  [
    'another order',
    ['A', 'B', 'C'],
    ['A', 'B'],
    ['B|A', '["b","A"]'],
    { correct_options: ['A', 'B'] },
  ],
  ['another outcome', {}, 1, [0], { outcome: true }, /resolved with a different outcome/],
  ['void twice', {}, { void: true }, ['void'], { status: 'voided' }],
  [
    'void, then an outcome',
    {},
    { void: true },
    [1],
    { status: 'voided' },
    /voided with a different outcome/,
  ],
  [
    'an outcome, then void',
    {},
    1,
    [{ void: true }],
    { outcome: true },
    /resolved with a different outcome/,
  ],
  [
    'another note',
    {},
    { resolved_to: 1, resolution_note: 'first' },
    [{ resolved_to: 1, resolution_note: 'second' }],
    { outcome: true, resolution_note: 'first' },
  ],
  [
    'another known_at',
    {},
    { resolved_to: 1, known_at: '2025-11-01' },
    [{ resolved_to: 1, known_at: '2025-05-01' }],
    { outcome: true },
  ],
  [
    'another spelling of a number',
    { question_type: 'numeric', range: { min: 0, max: 10 } },
    { outcome_value: 5 },
    [{ outcome_value: '5.0' }, '5.0'],
    { outcome_value: 5 },
  ],
  [
    'a date with its time',
    { question_type: 'date', range: { min: '2025-01-01', max: '2026-01-01' } },
    { outcome_value: '2025-06-01' },
    [{ outcome_value: '2025-06-01T00:00:00Z' }, '2025-06-01'],
    { status: 'resolved' },
  ],
];

t.test('a question is decided once, and never anew', async (t) => {
  for (const [what, asked, first, more, stored, refusal] of repeated) {
    const one = open(asked);
    const records = [one.asked, one.decided(first), ...more.map(one.decided)];
    // First in one file, and then in separate files.
    for (const file of [records, ...records.slice(1).map((record) => [record])]) {
      const is_refused = refusal !== undefined && file.at(-1) === records.at(-1);
      const { code, output } = await send(file);
      t.equal(code, is_refused ? 4 : 0, `${what}: ${output}`);
      if (is_refused) {
        t.match(output, new RegExp(`^line ${file.length}: .*${refusal.source}`, 'm'), what);
      }
      const question = await questionOf(one.id);
      t.match(question, stored, what);
      const known = (first as Fields | null)?.['known_at'];
      const known_at = known === undefined ? null : new Date(String(known));
      t.same([...(await decisionsOf(question.id))], [{ revision: 1, known_at }], what);
    }
  }
});

/** Each case has the forecasts of one file, and the reason if the last one is refused. */
t.test('a forecast is there once', async (t) => {
  const side: Fields = { probability: null, prediction: false, confidence: 60 };
  const cases: readonly [string, readonly Fields[], RegExp?][] = [
    ['the same', [{}, {}]],
    ['in other forms', [{}, { probability: 0.4, scale: 'fraction' }, side]],
    ['of an agent in capitals', [{}, { is_loud: true }]],
    [
      'with another number',
      [{}, { probability: 70 }],
      /already has a different forecast on this question/,
    ],
  ];
  for (const [what, stated, refusal] of cases) {
    const one = open();
    const said = stated.map(({ is_loud, ...more }) =>
      one.said({ ...more, ...(is_loud === true && { agent: ` AGENT ${one.id.toUpperCase()}` }) }),
    );
    const { code, output } = await send([one.asked, ...said]);
    t.equal(code, refusal === undefined ? 0 : 4, `${what}: ${output}`);
    if (refusal !== undefined) t.match(output, new RegExp(`^line 3: .*${refusal.source}`, 'm'));
    const { id } = await questionOf(one.id);
    t.match(await predictionsOn(id), [{ user_name: `Agent ${one.id}`, probability: 40 }], what);
    t.equal((await predictionsOn(id)).length, 1, what);
  }
});

t.test('a question is there once, by its source or by its content', async (t) => {
  const one = open();
  const other = { ...one.asked, question: 'Will the second text under one id be taken?' };
  t.match(await send([one.asked, one.asked, other]), { code: 0, output: /1 created, 2 there/ });
  t.equal((await questionOf(one.id)).question, one.asked['question']);
  const { source: _, source_id: __, ...nameless } = open().asked;
  t.match(await send([nameless, nameless]), { code: 0, output: /1 created, 1 there already/ });
  t.match(await send([nameless]), { code: 0, output: /0 created, 1 there already/ });
});

const whole = () => {
  const one = open();
  return {
    ...one,
    records: [one.asked, one.said(), one.decided({ resolved_to: 1, known_at: '2025-11-01' })],
  };
};

const receiptOf = async (pid: string): Promise<Any> =>
  (await app.call('GET', `/api/predictions/${pid}/receipt`)).body.receipt;

/** Checks that there is one question, one forecast and one decision, which was paid once. */
const checkOnce = async (id: string): Promise<void> => {
  const question = await questionOf(id);
  t.match(question, { status: 'resolved', outcome: true });
  const placed = await predictionsOn(question.id);
  t.equal(placed.length, 1, id);
  t.match(await decisionsOf(question.id), [{ revision: 1 }]);
  await untilSettled(app.sql, question.id);
  const { entries } = await receiptOf(placed[0].id);
  t.match(entries, [{ reason: 'settlement', amount: -44 }]);
  t.equal(entries.length, 1, 'paid once');
  await eventOf(app, 'question.resolved', question.id);
  const path = `/api/events?topic=question:${question.id}&events=question.resolved&limit=100`;
  t.equal((await app.call('GET', path)).body.events.length, 1);
};

t.test('a file in any order, and the whole file again', async (t) => {
  const { id, records } = whole();
  const file = writeLines('whole.ndjson', records.toReversed());
  t.match(await run(file), { code: 0 });
  const { code, output } = await run(file);
  t.equal(code, 0, output);
  t.notMatch(output, /[1-9]\d* (?:created|bad)/);
  await checkOnce(id);
});

t.test('two imports of one file at once both end well', async (t) => {
  for (let round = 0; round < 3; round += 1) {
    const { id, records } = whole();
    const file = writeLines('whole.ndjson', records);
    const both = await Promise.all([run(file), run(file)]);
    for (const { code, output } of both) t.equal(code, 0, output);
    await checkOnce(id);
  }
});

t.test('of two outcomes at once one wins, and the other is reported', async (t) => {
  for (let round = 0; round < 3; round += 1) {
    const one = open();
    const files = [1, 0].map((to) => writeLines(`${to}.ndjson`, [one.asked, one.decided(to)]));
    const both = await Promise.all(files.map((file) => run(file)));
    t.same(both.map(({ code }) => code).toSorted(), [0, 4], JSON.stringify(both));
    const winner = both.findIndex(({ code }) => code === 0);
    t.match(both[1 - winner]!.output, /^line 2: .*resolved with a different outcome/m);
    const { id, outcome } = await questionOf(one.id);
    t.equal(outcome, winner === 0);
    t.match(await decisionsOf(id), [{ revision: 1 }]);
  }
});

/** Forwards requests. `loses` selects paths that answer 503, by default after the work is done. */
const startLossy = async (loses: (path: string) => boolean, is_done = true) => {
  const server = http.createServer((request, reply) => {
    const { method, url: path = '', headers } = request;
    const lost = loses(path);
    const refuse = () => {
      reply.writeHead(503, { 'content-type': 'application/json', 'retry-after': '0' });
      reply.end('{"error":"Try again.","code":"UNAVAILABLE"}');
    };
    if (lost && !is_done) return void request.resume().on('end', refuse);
    const options = { method, headers, agent: false };
    const onward = http.request(app.url + path, options, (answer) => {
      if (lost) return void answer.resume().on('end', refuse);
      reply.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(reply);
    });
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

t.test('an answer that is lost makes nothing twice, and no line bad', async (t) => {
  for (const part of ['questions', 'agents', 'predictions', 'resolutions']) {
    const { id, records } = whole();
    let calls = 0;
    const url = await startLossy((path) => {
      if (path.includes(`${part}/import`)) calls += 1;
      return calls === 1 && path.includes(`${part}/import`);
    });
    const { code, output } = await run(writeLines('lost.ndjson', records), ['--url', url]);
    t.equal(code, 0, `${part}: ${output}`);
    t.ok(calls > 1, `${part}: it was tried again`);
    t.notMatch(output, /^line|[1-9]\d* bad/m);
    await checkOnce(id);
  }
});

t.test('a service that is away ends the import, and the same command goes on', async (t) => {
  const { id, records } = whole();
  const file = writeLines('away.ndjson', records);
  const url = await startLossy((path) => path.includes('import'), false);
  const { code, output } = await run(file, ['--url', url]);
  t.equal(code, 1, output);
  t.match(output, /could not import.*again|same command/s);
  t.notMatch(output, /[1-9]\d* bad/);
  t.match(await run(file), { code: 0 });
  await checkOnce(id);
});

t.test('a forecast counts if it was made before known_at, and a warning says if not', async (t) => {
  const cases: readonly [string, string, number | null][] = [
    ['2025-05-01', '2025-06-01', null],
    ['2025-06-01', '2025-06-01', null],
    ['2025-06-01', '2025-05-31T23:59:59.999Z', -44],
  ];
  for (const [known_at, forecast_at, net] of cases) {
    const one = open();
    const decided = one.decided({ resolved_to: 1, known_at });
    const { code, output } = await send([one.asked, decided, one.said({ forecast_at })]);
    t.equal(code, 0, output);
    const { id } = await questionOf(one.id);
    await untilSettled(app.sql, id);
    const [placed] = await predictionsOn(id);
    const what = `${forecast_at} before ${known_at}`;
    t.equal((await receiptOf(placed.id)).entries_total, net ?? 0, what);
    const warning = /^line 3: .*not before known_at/m;
    if (net === null) t.match(output, warning, what);
    else t.notMatch(output, warning, what);
  }
});

t.test('what comes too late, too early or for a draft is refused with its line', async (t) => {
  const late = open();
  t.match(await send([late.asked, late.decided(1)]), { code: 0 });
  t.match(await send([late.said()]), { code: 4, output: /^line 1: .*not decided yet/m });
  t.same(await predictionsOn((await questionOf(late.id)).id), []);
  const early = open();
  const known = early.decided({ resolved_to: 1, known_at: '2024-12-31' });
  t.match(await send([early.asked, known]), {
    code: 4,
    output: /^line 2: .*known_at must be between/m,
  });
  t.match(await questionOf(early.id), { status: /open|closed/ });
  const draft = open();
  const records = [{ ...draft.asked, publish: false }, draft.decided(1)];
  t.match(await send(records), { code: 4, output: /^line 2: There is no published question/m });
  t.match(await send(records, '--publish'), { code: 4, output: /0 created, 1 there already/ });
});

t.test('an old file does not undo what a dispute decided', async (t) => {
  const { id, records } = whole();
  t.match(await send(records), { code: 0 });
  const question = await questionOf(id);
  await untilSettled(app.sql, question.id);
  const path = `/api/admin/questions/${question.id}/resolve`;
  const body = { outcome: false, resolution_note: 'The register was corrected.' };
  t.equal((await app.call('POST', path, { admin: true, body })).status, 202);
  const { code, output } = await send(records);
  t.equal(code, 4);
  t.match(output, /^line 3: .*resolved with a different outcome/m);
  t.match(await questionOf(id), { outcome: false });
  t.equal((await decisionsOf(question.id)).length, 2);
});

t.test('an import that is stopped anywhere goes on, and nothing is there twice', async (t) => {
  const all = Array.from({ length: 600 }, (_, n) => ask(`stopped-${n}`));
  const file = writeLines('stopped.ndjson', all);
  const count = async (): Promise<number> => {
    const [row] = await app.sql<{ n: number }[]>`
      select count(*)::integer as n from questions where source_id like 'stopped-%'`;
    return row!.n;
  };
  const stop = new AbortController();
  const stopped = run(file, [], stop);
  await until('a part of it is there', count);
  stop.abort();
  t.equal((await stopped).code, 1);
  t.ok((await count()) < all.length, 'only a part');
  t.match(await run(file), { code: 0 });
  t.equal(await count(), all.length);
});
