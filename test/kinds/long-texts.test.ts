import { openModern } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { closeQuestion, decide, makeForecasts, untilSettled } from '../help/settling.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { makeVisitor, problemAt } from '../help/visitor.js';

/**
 * Length is checked before any work. A text longer than four times its limit, in code units, is
 * refused for its length. Then more than 30 combining marks in a row are refused. Only then is the
 * text normalized and counted.
 */

const app = await startApp(t, { env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const { key } = agent;
const question_id = await makeOpenQuestion(app);
const comments = `/api/questions/${question_id}/comments`;

const nfd = (text: string): string => text.normalize('NFD');
const accents = (count: number, mark = '\u0301'): string => `a${mark.repeat(count)}`;
const is_accents = /more than 30 combining marks in a row/;
let made = 0;
/** Five unique ASCII words. */
const words = (): string => {
  made += 1;
  const name = made.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] ?? 'q');
  return ['weir', 'gauge', 'ferry', 'harbour', 'timetable'].map((one) => `${one}${name}`).join(' ');
};
/** A text with exactly this many characters once it is composed. */
const fill = (character: string, length: number, begin = ''): string =>
  begin + character.repeat(length - begin.length);
/** Like `fill`, but with different words, for texts whose quality is checked. */
const prose = (character: string, length: number): string => {
  let text = `${words()} `;
  for (let n = 0; text.length < length + 20; n += 1) {
    const syllables = [n % 5, (n * 7) % 5, (n * 3) % 4].map(
      (at) => 'bdmgl'.charAt(at) + 'aeiou'.charAt((at + n) % 5),
    );
    text += `${character}${syllables.join('')}${character} `;
  }
  return `${text
    .slice(0, length - 1)
    .trimEnd()
    .padEnd(length - 1, character)}${character}`;
};

const patchMe = (body: object) => app.call('PATCH', '/api/me', { key, body });
const readMe = async () => (await app.call('GET', '/api/me', { key })).body.user;

t.test(
  'four code units a character pass at the exact limit, and one more unit does not',
  async (t) => {
    // U+1F82 is four code units in NFD: a letter and three marks.
    const [character, units] = ['\u1f82', nfd('\u1f82').length];
    t.equal(units, 4, 'the character that the limit of four is about');
    const limits = { bio: 500, domain_focus: 500, philosophy: 280 };
    for (const [name, most] of Object.entries(limits)) {
      const exact = nfd(character.repeat(most));
      t.equal(exact.length, 4 * most);
      const taken = await patchMe({ [name]: exact });
      t.equal(taken.status, 200, `${name}: ${JSON.stringify(taken.body)}`);
      t.equal((await readMe())[name], character.repeat(most), `${name} is kept composed`);
      const over = await patchMe({ [name]: nfd(character.repeat(most + 1)) });
      t.match(
        over,
        { status: 400, body: { fields: [{ path: `body.${name}` }] } },
        `${name}: one more`,
      );
      const longest = await patchMe({ [name]: `${exact}\u0316` });
      t.equal(longest.status, 400, `${name}: one more code unit`);
      t.match(
        longest.body.fields,
        [{ path: `body.${name}`, message: new RegExp(`${most}`) }],
        name,
      );
    }
  },
);

t.test('a text that is too long and full of marks is refused for its length', async (t) => {
  // In a comment, characters count as readers see them, so a family emoji counts as one. The first
  // limit of a comment is in bytes.
  const cases = [
    ['comments', comments, 'content', 'COMMENT_TOO_LONG', 30_001],
    ['bio', null, 'bio', 'INVALID_REQUEST', 2_001],
    ['philosophy', null, 'philosophy', 'INVALID_REQUEST', 1_121],
  ] as const;
  for (const [what, path, field, code, length] of cases) {
    for (const text of [accents(length - 1), `${'a'.repeat(length)}${accents(31)}`]) {
      const body = { [field]: text };
      const refused =
        path === null ? await patchMe(body) : await app.call('POST', path, { key, body });
      t.match(refused, { status: 400, body: { code } }, what);
      t.notMatch(JSON.stringify(refused.body), is_accents, what);
    }
  }
  const content = `${words()} ${accents(31)}${'a'.repeat(900)}`;
  const both = await app.call('POST', comments, { key, body: { content } });
  t.equal(both.status, 400);
  t.match(
    both.body,
    { fields: [{ path: 'body.content' }] },
    'within the first limit: the marks first',
  );
  t.match(both.body.error, is_accents);
});

t.test('Jamo, Vietnamese and Hebrew count as their readers count them', async (t) => {
  const hangul = '\uac01';
  const vietnamese = '\u1ec7';
  const verse = 'בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים אֵ֥ת הַשָּׁמַ֖יִם וְאֵ֥ת הָאָֽרֶץ';
  for (const [what, character] of [
    ['Hangul as Jamo', hangul],
    ['Vietnamese', vietnamese],
  ] as const) {
    const send = (length: number) => {
      const content = prose(character, length);
      return app.call('POST', comments, { key, body: { content: nfd(content) } });
    };
    const { key: other } = await makeAgent(app, { human });
    t.match(await send(1_001), { status: 400, body: { code: 'COMMENT_TOO_LONG' } }, what);
    const exact = character.repeat(500);
    const body = { bio: nfd(exact) };
    const taken = await app.call('PATCH', '/api/me', { key: other, body });
    t.equal(taken.status, 200, `${what}: ${JSON.stringify(taken.body)}`);
    const me = await app.call('GET', '/api/me', { key: other });
    t.equal(me.body.user.bio, exact, `${what}: kept composed`);
  }
  const short = nfd(fill(hangul, 19));
  t.ok(short.length > 20);
  const refused = await app.call('POST', comments, { key, body: { content: short } });
  t.match(refused, { status: 400, body: { code: 'COMMENT_TOO_SHORT' } }, '19 of 57 code units');
  const read = await patchMe({ bio: verse });
  t.equal(read.status, 200, `a verse with its cantillation: ${JSON.stringify(read.body)}`);
  t.equal((await readMe()).bio, verse.normalize('NFC'));
  const tibetan = 'བསྒྲུབས་པའི་རྒྱལ་མཚན་ བོད་སྐད་ '.repeat(10).trim();
  t.equal((await patchMe({ bio: tibetan })).status, 200, 'stacks of Tibetan are no marks in a row');
});

t.test('a character that grows when it is normalised counts as what it grows to', async (t) => {
  // NFC splits these into two or three code points and never composes them again.
  for (const [what, character, grown] of [
    ['DEVANAGARI QA', '\u0958', 2],
    ['HEBREW SHIN WITH DAGESH AND DOT', '\ufb2c', 3],
    ['TIBETAN GHA', '\u0f43', 2],
  ] as const) {
    t.equal([...character.normalize('NFC')].length, grown, what);
    const most = Math.floor(500 / grown);
    const taken = await patchMe({ bio: character.repeat(most) });
    t.equal(taken.status, 200, `${what}: ${most} of them`);
    t.equal((await readMe()).bio, character.repeat(most).normalize('NFC'));
    const over = await patchMe({ bio: character.repeat(most + 1) });
    t.match(over, { status: 400, body: { fields: [{ path: 'body.bio' }] } }, `${what}: one more`);
  }
  // 16 marks become 32. If the text is accepted, the returned text must be accepted too.
  const first = await patchMe({ bio: accents(16, '\u0344') });
  t.ok(first.status === 200 || first.status === 400);
  if (first.status === 400) {
    t.match(first.body, { fields: [{ path: 'body.bio' }] });
    return;
  }
  const { bio } = await readMe();
  t.equal((await patchMe({ bio })).status, 200, 'the answer can be sent back in the same form');
});

t.test('marks of every block count in a row, whatever is no character between them', async (t) => {
  const refused_texts: readonly (readonly [string, string])[] = [
    ['Zalgo of three kinds', `a${'\u0301\u0316\u0489'.repeat(11)}`],
    ['variation selectors', `\u2764${'\ufe0f'.repeat(31)}`],
    ['selectors of the supplement, two units each', `\u845b${'\u{e0100}'.repeat(31)}`],
    ['marks around a grapheme joiner', `a${'\u0301'.repeat(20)}\u034f${'\u0301'.repeat(20)}`],
    ['Hebrew points alone', `\u05d0${'\u05b0\u05b1\u05bc'.repeat(11)}`],
    ['Arabic marks', `\u0628${'\u064b\u0651'.repeat(16)}`],
    ['Tibetan subjoined letters', `\u0f40${'\u0f90\u0fb1'.repeat(16)}`],
    ['enclosing marks', `a${'\u20dd'.repeat(31)}`],
    ['musical marks beyond the BMP', `\u{1d158}${'\u{1d165}'.repeat(31)}`],
    ['no character at all', '\u0301'.repeat(31)],
  ];
  for (const [what, text] of refused_texts) {
    const refused = await patchMe({ philosophy: `Doubt first. ${text}` });
    t.equal(refused.status, 400, `${what}: ${refused.status}`);
    t.match(refused.body, { fields: [{ path: 'body.philosophy' }] }, what);
    t.match(refused.body.error, is_accents, what);
  }
  // With a joiner or control character in between, the text is refused or stored completely.
  for (const [what, between] of [
    ['a zero-width joiner', '\u200d'],
    ['a non-joiner', '\u200c'],
    ['a word joiner', '\u2060'],
    ['a soft hyphen', '\u00ad'],
    ['a tab', '\t'],
  ] as const) {
    const run = `${'\u0316\u0301'.repeat(15)}${between}`;
    const answer = await patchMe({ philosophy: `a${run.repeat(8)}` });
    t.ok(answer.status === 200 || answer.status === 400, `${what}: ${answer.status}`);
    if (answer.status === 400)
      t.match(answer.body, { fields: [{ path: 'body.philosophy' }] }, what);
    const long = await patchMe({ philosophy: `a${run.repeat(2_000)}` });
    t.ok(long.status === 400 || long.status === 413, `${what}: far too long`);
  }
  const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466}';
  for (const text of [family.repeat(20), '\u2764\ufe0f\u200d\u{1f525}'.repeat(20), accents(30)]) {
    t.equal((await patchMe({ philosophy: text })).status, 200, `${[...text].length} code points`);
    t.equal((await readMe()).philosophy, text.normalize('NFC'), 'is kept');
  }
});

t.test(
  'a call on a socket and a tool of MCP are refused as the request over HTTP is',
  async (t) => {
    const socket = await openCalls(t, app.port, { 'x-api-key': key });
    const mcp = await openModern(t, app.url, key);
    await mcp.connect();
    const texts: readonly (readonly [string, string])[] = [
      ['31 marks', `${words()} ${accents(31)}`],
      ['above four times', 'a'.repeat(4_001)],
      ['above the limit', prose('\u1ec7', 1_001)],
      ['a joiner among marks', `${words()} ${`${accents(30)}\u200d`.repeat(100)}`],
      ['too short in NFC', nfd('\u1ec7'.repeat(19))],
    ];
    for (const [what, content] of texts) {
      const http = await app.call('POST', comments, { key, body: { content } });
      t.equal(http.status, 400, `${what}: ${JSON.stringify(http.body)}`);
      const called = await socket.call('POST', comments, { body: { content } });
      const { request_id: _, ...refusal } = http.body;
      t.match(called, { status: 400, body: refusal }, `${what}: over the socket`);
      const tool = await mcp.callTool('comment', { question_id, content });
      t.equal(tool.isError, true, `${what}: over MCP`);
      t.match(JSON.stringify(tool), http.body.code, `${what}: over MCP`);
      if (http.body.fields !== undefined) {
        t.match(called.body.fields, [{ path: 'body.content' }], what);
      }
    }
  },
);

t.test('the forms of pages refuse at the field, and take exactly the limit', async (t) => {
  const owner = await makeHuman(app);
  const visitor = makeVisitor(app.url, owner.token);
  const register = (name: string) =>
    visitor.send('/account/agents', { act: 'register', name, model: 'gpt-5' });
  for (const [what, name] of [
    ['31 marks', accents(31)],
    ['201 code units', 'n'.repeat(201)],
    ['51 characters', nfd(fill('\u00e9', 51))],
    ['one character of two code units', nfd('\u00e9')],
    ['three marks and no character, many times', '\u0301\u200d'.repeat(100)],
  ] as const) {
    const refused = await register(name);
    t.equal(refused.status, 400, `${what}: ${refused.status}`);
    t.match(problemAt(refused, 'name'), { tied: true, invalid: true }, what);
  }
  const exact = fill('\u00e9', 50, words().slice(0, 12).replaceAll(' ', ''));
  const registered = await register(nfd(exact));
  t.ok(registered.status < 300, 'a name of 50 in NFD');
  t.match(registered.html, exact, 'it is shown composed');
  const twice = await register(exact);
  t.match(
    problemAt(twice, 'name'),
    { text: /Another agent has this name/ },
    'NFC is the same name',
  );
  const upper = await app.call('POST', '/api/register', {
    body: { name: nfd(exact.toUpperCase()), model: 'gpt-5' },
  });
  t.match(upper, { status: 409, body: { code: 'DUPLICATE_NAME' } });
  const rename = (name: string) => visitor.send('/account/settings', { act: 'name', name });
  t.match(problemAt(await rename(accents(31)), 'name'), { tied: true, invalid: true });
  t.match(problemAt(await rename(nfd('\u1ec7'.repeat(81))), 'name'), { text: /80/ });
  t.match((await rename(nfd('\u1ec7'.repeat(80)))).text, /Your name is saved/);
});

t.test('an import refuses the item, names the field, and takes the others', async (t) => {
  const closes_at = new Date(Date.now() + 30 * 86_400_000).toISOString();
  const base = { category: 'society', closes_at, source: 'kinds' };
  const title = (length: number): string => prose('\u1ec7', length);
  const options = (one: string) => ({ question_type: 'multi', options: ['Other', one] });
  const given: readonly (readonly [string, object, 'created' | 'refused', RegExp?])[] = [
    ['500 in NFD', { question: nfd(title(500)) }, 'created'],
    ['501 in NFD', { question: nfd(title(501)) }, 'refused', /question$/],
    ['2,001 code units', { question: 'q'.repeat(2_001) }, 'refused', /question$/],
    ['9 in NFD', { question: nfd('\u1ec7'.repeat(9)) }, 'refused', /question$/],
    ['31 marks', { question: `Will it be? ${accents(31)}` }, 'refused', /question$/],
    ['an option of 100', { question: title(60), ...options(nfd(fill('\uac01', 100))) }, 'created'],
    ['an option of 101', { question: title(60), ...options(nfd(fill('\uac01', 101))) }, 'refused'],
    ['an option of marks', { question: title(60), ...options(accents(31)) }, 'refused', /options/],
    [
      'a description of marks',
      { question: title(60), description: accents(31) },
      'refused',
      /desc/,
    ],
    ['nothing odd', { question: title(60) }, 'created'],
  ];
  const items = given.map(([, item], n) => ({ ...base, source_id: `six ${n}`, ...item }));
  const body = { items };
  const { status, body: answer } = await app.call('POST', '/api/admin/questions/import', {
    admin: true,
    body,
  });
  t.equal(status, 200, JSON.stringify(answer));
  for (const [n, [what, , result, path]] of given.entries()) {
    const one = answer.results[n];
    t.equal(one.status, result, `${what}: ${JSON.stringify(one)}`);
    if (path !== undefined) {
      const paths = [...JSON.stringify(one).matchAll(/"path":"([^"]*)"/g)].map(([, at]) => at);
      t.ok(
        paths.some((at) => path.test(at ?? '')),
        `${what}: ${paths}`,
      );
    }
  }
  const again = await app.call('POST', '/api/admin/questions/import', { admin: true, body });
  t.not(again.body.results[0].status, 'refused', 'the same file goes on');
  t.not(again.body.results[0].status, 'created', 'and adds nothing twice');
});

t.test(
  'keys of a map, words of a search and values of a filter are texts like others',
  async (t) => {
    const cafe = `Caf\u00e9 ${words().slice(0, 8).replaceAll(' ', '')}`;
    const multi = await makeOpenQuestion(app, { question_type: 'multi', options: [cafe, 'Other'] });
    const predict = (probabilities: object, more: object = {}) =>
      app.call('POST', `/api/questions/${multi}/predict`, {
        key,
        body: { probabilities, reasoning: makeReasoning(), ...more },
      });
    const placed = await predict({ [nfd(cafe)]: 70, Other: 30 }, { dry_run: true });
    t.match(placed, { status: 200, body: { would_be_accepted: true } }, 'an option, named in NFD');
    for (const [what, name] of [
      ['31 marks', accents(31)],
      ['401 code units', 'o'.repeat(401)],
      ['10,000 code units of marks', accents(9_999)],
    ] as const) {
      const refused = await predict({ [name]: 70, Other: 30 });
      t.equal(refused.status, 400, what);
      t.match(refused.body, { fields: [{ path: /^body\.probabilities/ }] }, what);
      t.ok(
        JSON.stringify(refused.body).length < 3_000,
        `${what}: the refusal does not repeat it all`,
      );
    }
    const twice = await predict({ [cafe]: 40, [nfd(cafe)]: 30, Other: 30 });
    t.equal(twice.status, 400, 'one option in two forms is not counted twice');

    const term = `caf\u00e9${words().slice(0, 8).replaceAll(' ', '')}`;
    const found_id = await makeOpenQuestion(app, { question: `Will the ${term} open before May?` });
    for (const q of [nfd(term), term, nfd(term)]) {
      const path = `/api/questions?q=${encodeURIComponent(q)}`;
      const { status, body } = await app.call('GET', path);
      t.equal(status, 200);
      t.same(
        body.questions.map(({ id }: { id: string }) => id),
        [found_id],
        `found by ${q.length} code units`,
      );
    }
    for (const [what, q] of [
      ['31 marks', accents(31)],
      ['5,000 letters', 'q'.repeat(5_000)],
      ['marks of two kinds', `a${'\u0301\u0316'.repeat(400)}`],
    ] as const) {
      const refused = await app.call('GET', `/api/questions?q=${encodeURIComponent(q)}`);
      t.match(refused, { status: 400, body: { fields: [{ path: 'query.q' }] } }, what);
    }
    for (const [what, filter] of [
      ['a family of marks', { model_family: [accents(31)] }],
      ['a question id of marks', { question_ids: [accents(31)] }],
      ['a category that is long', { categories: ['c'.repeat(5_000)] }],
      ['a member named by marks', { [accents(31)]: ['x'] }],
    ] as const) {
      const url = 'https://127.0.0.1:4430/hook';
      const body = { url, events: ['question.created'], filter };
      const refused = await app.call('POST', '/api/webhooks', { key, body });
      t.equal(refused.status, 400, `${what}: ${JSON.stringify(refused.body)}`);
      t.match(JSON.stringify(refused.body), /filter/, `${what}: names the filter`);
    }
  },
);

t.test('reasons and notes take exactly their limit in NFD, also beside a decision', async (t) => {
  const decided = await makeOpenQuestion(app);
  const [forecast] = await makeForecasts(app, decided, [{ prediction: true, confidence: 80 }]);
  if (forecast === undefined) throw new Error('nobody predicted');
  await app.sql`
    update predictions
    set created_at = created_at - interval '61 s', revised_at = revised_at - interval '61 s'
    where id = ${forecast.prediction_id}`;
  const text = (length: number): string => nfd(prose('\u1ec7', length));
  const revise = (reason: string) =>
    app.call('PATCH', `/api/predictions/${forecast.prediction_id}`, {
      key: forecast.agent.key,
      body: { probability: 35, reason },
    });
  for (const [what, reason] of [
    ['one more', text(2_001)],
    ['31 marks', `${words()} ${accents(31)}`],
    ['8,001 code units', 'r'.repeat(8_001)],
    ['19 characters', nfd('\u1ec7'.repeat(19))],
  ] as const) {
    const refused = await revise(reason);
    t.equal(refused.status, 400, `reason: ${what}: ${JSON.stringify(refused.body)}`);
    t.match(JSON.stringify(refused.body), /reason/, `reason: ${what}`);
  }
  const revised = await revise(text(2_000));
  t.equal(revised.status, 200, `reason of 2,000: ${JSON.stringify(revised.body)}`);
  await closeQuestion(app, decided);
  const resolve = (resolution_note: string) =>
    decide(app, decided, 'resolve', { outcome: true, resolution_note });
  for (const [what, note] of [
    ['one more', text(5_001)],
    ['31 marks', accents(31)],
    ['20,001 code units', 'n'.repeat(20_001)],
  ] as const) {
    const refused = await resolve(note);
    t.match(refused, { status: 400, body: { fields: [{ path: 'body.resolution_note' }] } }, what);
  }
  const resolved = await resolve(text(5_000));
  t.ok(resolved.status < 300, `a note of 5,000: ${JSON.stringify(resolved.body)}`);
  await untilSettled(app.sql, decided);
  const dispute = (reason: string) =>
    app.call('POST', `/api/questions/${decided}/dispute`, {
      key: forecast.agent.key,
      body: { reason },
    });
  for (const [what, reason] of [
    ['one more', text(2_001)],
    ['49 characters', nfd(fill('\u1ec7', 49))],
    ['31 marks', `${'The register says otherwise, in plain words. '.repeat(2)}${accents(31)}`],
    ['8,001 code units', 'd'.repeat(8_001)],
  ] as const) {
    const refused = await dispute(reason);
    t.match(
      refused,
      { status: 400, body: { fields: [{ path: 'body.reason' }] } },
      `dispute: ${what}`,
    );
  }
  const filed = await dispute(text(2_000));
  t.equal(filed.status, 201, `dispute of 2,000: ${JSON.stringify(filed.body)}`);
});
