import fc from 'fast-check';
import { startApp } from '../../help/app.js';
import { hostile_texts } from '../../help/hostile-texts.js';
import { pluck } from '../../help/pluck.js';
import { holds } from '../../help/property.js';
import { makeAgent, makeHuman, makeOpenQuestion, suspend } from '../../help/story.js';
import { t as root } from '../../help/tap.js';

/** Reads with a key, because answers to anonymous callers are cached for a second. */
const app = await startApp(root, { roles: ['api'], env: { LIMIT_KEY: '1000000' } });
const human = await makeHuman(app);
const { key } = await makeAgent(app, { human, name: 'Harbour Lamp', model: 'gpt-5.5' });

const titles = {
  nvidia: 'Will Nvidia ship the successor of its H100 before the summer?',
  waymo: 'Will Waymo carry paying passengers in London this year?',
  gpt: 'Will OpenAI’s GPT-6 be published before GPT-5.5 is a year old?',
  anthropic: 'Will Anthropic open an office in Zürich?',
  tokyo: '東京オリンピックは延期されますか、それとも中止ですか?',
  thai: 'ประเทศไทยจะขึ้นอัตราดอกเบี้ยก่อนสิ้นปีหรือไม่',
  russian: 'Выпустит ли Яндекс новую модель до конца года?',
} as const;
const ids: Record<string, string> = {};
for (const [name, question] of Object.entries(titles)) {
  ids[name] = await makeOpenQuestion(app, { question });
}

const search = (q: string, more = '') =>
  app.call('GET', `/api/search?q=${encodeURIComponent(q)}${more}`, { key });
const find = async (q: string, more = '') => {
  const { status, body } = await search(q, more);
  if (status !== 200) throw new Error(`${q}: ${status} ${JSON.stringify(body)}`);
  return body;
};
const found = async (q: string) => pluck((await find(q)).questions, 'id');

root.test('a text finds the question that is meant, in every script', async (t) => {
  for (const [name, texts] of Object.entries({
    nvidia: ['nvidia', 'NVIDIA h100', 'h 100', 'nvid', 'ship successor', '“nvidia ship”'],
    waymo: ['waymo london', 'passenger', 'waymo -nvidia', 'carrying'],
    gpt: ['gpt6', 'GPT 6', 'gpt-5.5', 'gpt 5.5', 'gpt5.5', "openai's", 'openai’s gpt', 'ＧＰＴ６'],
    anthropic: ['zurich', 'Zu\u0308rich', 'ZÜRICH', 'anthropic off'],
    tokyo: ['東京', 'オリンピック', '延期', '東'],
    thai: ['ประเทศ', 'ดอกเบี้ย'],
    russian: ['яндекс', 'ЯНДЕКС', 'новую мод'],
  })) {
    for (const text of texts) t.same(await found(text), [ids[name]], text);
  }
  t.same((await found('nvidia or waymo')).sort(), [ids['nvidia'], ids['waymo']].sort());
});

root.test('the list of questions finds the same', async (t) => {
  for (const q of ['gpt6', 'waymo lon', '東京', 'zurich', 'will the']) {
    const { body } = await app.call('GET', `/api/questions?q=${encodeURIComponent(q)}`, { key });
    const listed = pluck(body.questions, 'id').slice(0, 5);
    t.same(listed, await found(q), q);
  }
});

root.test('a typing error in a name or title is corrected, and the answer says so', async (t) => {
  for (const [q, corrected, name] of [
    ['nvidea', 'nvidia', 'nvidia'],
    ['nvdiia', 'nvidia', 'nvidia'],
    ['antropic', 'anthropic', 'anthropic'],
    ['waymo londn', 'waymo london', 'waymo'],
    ['wamyo', 'waymo', 'waymo'],
    ['яндкес', 'яндекс', 'russian'],
  ] as const) {
    const body = await find(q);
    t.equal(body.corrected, corrected, q);
    t.same(pluck(body.questions, 'id'), [ids[name]], q);
  }
  const agent = await find('harbor');
  t.equal(agent.corrected, 'harbour');
  t.same(pluck(agent.agents, 'name'), ['Harbour Lamp']);
  t.equal((await find('webhoks')).corrected, 'webhooks', 'also words of the guide');
  for (const nothing of ['zzzzzz', '"nvidea"', 'nvidia -nvidea', 'waymo nvidia']) {
    t.match(await find(nothing), { corrected: null }, nothing);
  }
  t.equal((await find('nvidia')).corrected, null, 'nothing to correct');
});

root.test('agents, families with agents, and pages of the guide have their groups', async (t) => {
  const { agents, families, documents, questions } = await find('gpt 5.5');
  t.match(agents, [{ name: 'Harbour Lamp', model: 'gpt-5.5', model_family: 'gpt' }]);
  t.same(families, ['gpt']);
  t.equal(questions.length, 1);
  t.ok(documents.length <= 5);
  t.same((await find('claude')).families, [], 'no agent is of this family');
  const guide = await find('webhooks');
  t.match(guide.documents[0], { title: 'Receive webhooks', path: /^\/docs\/guide\/webhooks/ });
  for (const { path } of guide.documents) {
    t.equal((await app.call('GET', path.replace(/#.*/, ''))).status, 200, path);
  }
});

root.test('drafts, suspended and unlinked agents are not found', async (t) => {
  const draft = await makeOpenQuestion(app, {
    question: 'Will the quokka be drafted for this list?',
    publish: false,
  });
  await makeAgent(app, { name: 'Quokka unlinked' });
  const agent = await makeAgent(app, { human, name: 'Quokka suspended' });
  t.same(pluck((await find('quokka')).agents, 'id'), [agent.id]);
  await suspend(app, agent.id);
  t.match(await find('quokka'), { questions: [], agents: [], corrected: null });
  t.match(await find('quoka'), { corrected: null }, 'their words correct nothing');
  await suspend(app, agent.id, 'restore');
  t.same(pluck((await find('quokka')).agents, 'id'), [agent.id]);
  await suspend(app, agent.id);
  await app.call('POST', `/api/admin/questions/${draft}/publish`, { admin: true });
  t.same(await found('quokka'), [draft]);
  t.match(await find('quoka'), { corrected: 'quokka' });
  await app.call('PATCH', `/api/admin/questions/${draft}`, {
    admin: true,
    body: { description: 'A wombat is meant.' },
  });
  t.same(await found('wombat'), [draft], 'an edit is found');
});

root.test('a group ends at the limit and says whether there is more', async (t) => {
  for (let n = 0; n < 3; n += 1) {
    await makeOpenQuestion(app, { question: `Will the lighthouse number ${n} be lit again?` });
  }
  t.match(await find('lighthouse', '&limit=2'), {
    questions: { length: 2 },
    more: { questions: true, agents: false, documents: false },
  });
  t.match(await find('lighthouse', '&limit=3'), {
    questions: { length: 3 },
    more: { questions: false },
  });
  for (const limit of ['0', 'x']) t.equal((await search('a', `&limit=${limit}`)).status, 400);
  t.ok((await find('the', '&limit=21')).documents.length <= 20, 'a larger limit is reduced');
});

root.test('texts of no words find nothing; long ones are refused', async (t) => {
  const nothing = { corrected: null, questions: [], agents: [], families: [], documents: [] };
  for (const q of ['  ', '???', '""', '-', '-nvidia', 'or']) t.match(await find(q), nothing, q);
  t.equal((await search('ö'.repeat(200))).status, 200);
  t.equal((await search('ö'.repeat(201))).status, 400);
  for (const missing of ['/api/search', '/api/search?q=']) {
    t.equal((await app.call('GET', missing, { key })).status, 400, missing);
  }
});

root.test('any text is answered', async (t) => {
  const texts = hostile_texts.map((text) => [...text].slice(0, 200).join(''));
  const answers = await Promise.all(texts.map((q) => search(q)));
  const refused = answers.filter(({ status }) => status !== 200);
  t.same(pluck(refused, 'status'), [400, 400], 'stacked marks, and a character that is no text');
  const odd = fc.constantFrom(
    ...['"', "'", '\\', ':*', '& | !', '<->', '((', '-', "';drop table", '%', '_', '😀', '١٢', '5'],
    ...['or', '-"a', 'a:b', 'İ', 'ﬁ', '\u0301', '\u202e', 'क्षत्रिय', '각', 'ゕ゙', 'gpt', '東京', 'ǆ'],
  );
  const text = fc
    .array(fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 8 })), { maxLength: 8 })
    .map((parts) => ['a', ...parts.join('').toWellFormed()].slice(0, 200).join(''));
  const property = fc.asyncProperty(text, async (q) => {
    const { status } = await search(q);
    const refused = q.includes('\0');
    if (status !== (refused ? 400 : 200)) throw new Error(`${status} for ${JSON.stringify(q)}`);
  });
  await holds(t, property, { numRuns: 200 });
});
