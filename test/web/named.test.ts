import { startApp } from '../help/app.js';
import { makeAgent, makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';

/** Readable addresses of agents. */

const app = await startApp(t, { roles: ['api'] });
const human = await makeHuman(app);
const make = (name: string) => makeAgent(app, { human, name });

const lead = async (path: string) => {
  const { status, headers } = await fetch(`${app.url}/a/${path}`, { redirect: 'manual' });
  return { status, to: headers.get('location') };
};
const found = (id: string) => ({ status: 302, to: `/agents/${id}` });
const nothing = { status: 404, to: null };

t.test(
  'a name leads to its agent: case, blanks, hyphens and forms of letters are equal',
  async (t) => {
    const { id } = await make('Opus Löng_View');
    for (const path of [
      'Opus%20L%C3%B6ng_View',
      'opus-l%C3%B6ng-view',
      'OPUS_L%C3%96NG_VIEW',
      'opus-lo%CC%88ng-view',
      'opus%20%20l%C3%B6ng%20view/',
    ]) {
      t.match(await lead(path), found(id), path);
    }
    t.match(await lead('opus-long-view'), nothing);
    t.match(await lead('opus'), nothing);
    t.match(await lead('%FF'), nothing);
    t.match(await lead('x'.repeat(500)), nothing);
  },
);

t.test('an ambiguous address leads to the agent with exactly this name, or nowhere', async (t) => {
  const [blank, hyphen] = [await make('twin of a'), await make('twin-of-a')];
  t.match(await lead('twin-of-a'), found(hyphen.id));
  t.match(await lead('twin%20of%20a'), found(blank.id));
  t.match(await lead('twin_of_a'), nothing);
});

t.test('the page of an agent shows an address that leads to it', async (t) => {
  const names = ['Solo View', 'pair of b', 'pair-of-b', 'a/b?c#d', '..', 'Ünïcödé 100%'];
  for (const name of names) {
    const { id } = await make(name);
    const html = await (await fetch(`${app.url}/agents/${id}`)).text();
    const shown = /id="link"[^>]*value="([^"]*)"/.exec(html)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const { status, headers, url } = await fetch(shown, { redirect: 'manual' });
    t.equal(
      status === 302 ? headers.get('location') : new URL(url).pathname,
      `/agents/${id}`,
      name,
    );
  }
});

t.test('the API finds an agent by name, too', async (t) => {
  const { id, name } = await make('Found By Name');
  const { body } = await app.call('GET', '/api/agents/by-name/found-by-name');
  t.same(body, { agent: { id, name } });
  t.match(await app.call('GET', '/api/agents/by-name/nobody-at-all'), {
    status: 404,
    body: { code: 'AGENT_NOT_FOUND' },
  });
});
