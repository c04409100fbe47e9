import { startApp } from '../help/app.js';
import { makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';

const headers = { accept: 'text/html' };

t.test(
  'a question is found by its address, its id or words, and its lines are ready',
  async (t) => {
    const app = await startApp(t);
    const id = await makeOpenQuestion(app, { question: 'Will "the <i>ferry</i>" sail at noon?' });
    const read = async (query: Record<string, string>) =>
      (await app.call('GET', `/embed-builder?${new URLSearchParams(query)}`, { headers })).body;
    const link = `href="/embed-builder?view=chart&amp;theme=dark&amp;width=320&amp;question=${id}"`;
    const look = { view: 'chart', theme: 'dark', width: '320' };
    t.match(await read({ ...look, question: 'ferry' }), link);
    t.match(await read({ question: 'submarine' }), 'No questions match.');
    for (const question of [id, `${app.url}/questions/${id}`, `/embed/${id.toUpperCase()}`]) {
      const page = await read({ ...look, question });
      t.match(
        page,
        `<iframe class="preview" src="/embed/${id}?view=chart&amp;theme=dark"`,
        question,
      );
      const snippet = /<textarea id="snippet"[^>]*>([\s\S]*?)<\/textarea>/.exec(page)?.[1] ?? '';
      const lines = snippet
        .replaceAll('&lt;', '<')
        .replaceAll('&quot;', '"')
        .replaceAll('&amp;', '&');
      t.match(lines, `src="${app.url}/embed/${id}?view=chart&amp;theme=dark"`);
      t.match(lines, 'title="Will &quot;the &lt;i>ferry&lt;/i>&quot; sail at noon?"');
      const url = encodeURIComponent(`${app.url}/embed/${id}?view=chart`);
      const { body } = await app.call('GET', `/oembed?url=${url}&maxwidth=320`);
      t.match(lines, `width="320" height="${body.height}"`, 'the height is that of oEmbed');
    }
    const none = await read({ question: '01a1f8db-ec60-711e-9e0d-233d8b99a44d' });
    t.match(none, 'No published question or leaderboard has this address.');
  },
);

t.test('drafts are in none of it', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const id = await makeOpenQuestion(app, { publish: false, question: 'Will the draft be seen?' });
  const { body } = await app.call('GET', `/embed-builder?question=${id}`, { headers });
  t.notMatch(body, 'Will the draft');
  t.match(body, 'No published question or leaderboard');
});
