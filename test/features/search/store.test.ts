import * as store from '../../../src/features/search/store.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t as root } from '../../help/tap.js';

const app = await startApp(root, { roles: ['api'] });
const human = await makeHuman(app);
await makeAgent(app, { human, name: 'Amber Quill', model: 'claude-opus-4' });

root.test(
  'a match in the title comes before one in the description, then the newest',
  async (t) => {
    const described = await makeOpenQuestion(app, { description: 'A narwhal is seen.' });
    const first = await makeOpenQuestion(app, { question: 'Will a narwhal be seen in spring?' });
    const second = await makeOpenQuestion(app, { question: 'Will a narwhal be seen in winter?' });
    const ids = pluck(await store.findQuestions(app.sql, 'narwhal', 5), 'id');
    t.same(ids, [second, first, described]);
    t.same(pluck(await store.findQuestions(app.sql, 'narwhal', 1), 'id'), [second]);
    await makeOpenQuestion(app, {
      question: 'Which animal is seen first this year?',
      question_type: 'multi',
      options: ['Walrus', 'Beluga'],
    });
    t.equal((await store.findQuestions(app.sql, 'beluga', 5)).length, 1, 'options are found too');
  },
);

root.test('agents are found by name and model, and families by their agents', async (t) => {
  for (const text of ['amber', 'quill am', 'opus 4', 'claude']) {
    t.same(pluck(await store.findAgents(app.sql, text, 5), 'name'), ['Amber Quill'], text);
  }
  t.same(await store.findFamilies(app.sql, ['gpt', 'claude']), ['claude']);
});

root.test('a word is known if it begins a known word; similar words are listed', async (t) => {
  const [amber, is, qwil] = await store.readSpellings(app.sql, 'Amb is qwill');
  t.match(amber, { word: 'amb', is_known: true, similar: [] });
  t.match(is, { word: 'is', is_known: true });
  t.match(qwil, { word: 'qwill', is_known: false });
  t.ok(qwil?.similar.includes('quill'));
  t.same(await store.readSpellings(app.sql, ''), []);
  t.same(await store.findKnown(app.sql, ['quill', 'qwill']), ['quill']);
});

root.test('words are not stored twice, and go with their question', async (t) => {
  const id = await makeOpenQuestion(app, { question: 'Will the axolotl and the axolotl meet?' });
  await makeOpenQuestion(app, { question: 'Will another axolotl be born this year?' });
  const [row] = await app.sql`
    select count(*)::integer as n from known_words where word = 'axolotl'`;
  t.equal(row?.['n'], 1);
  await app.sql`delete from questions where id = ${id}`;
  t.equal((await store.findQuestions(app.sql, 'axolotl', 5)).length, 1);
});
