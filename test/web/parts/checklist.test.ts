import { isDeepStrictEqual } from 'node:util';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { createClient } from '#client/node.js';
import { Checklist, type FirstSteps, readFirstSteps } from '../../../src/web/parts/checklist.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

const none: FirstSteps = {
  questions: 0,
  is_written: false,
  is_imported: false,
  has_demo: false,
  agents: 0,
};

const signs = (steps: FirstSteps): string =>
  [...render(h(Checklist, { steps })).matchAll(/[✓○]/g)].join('');

t.test('each step has a mark that says whether it is done', async (t) => {
  t.equal(signs(none), '○○○○');
  t.equal(signs({ ...none, is_written: true }), '✓○○○');
  t.equal(signs({ ...none, is_imported: true }), '○✓○○');
  t.equal(signs({ ...none, has_demo: true }), '○○✓○');
  t.equal(signs({ ...none, agents: 1 }), '○○○✓');
  const html = render(h(Checklist, { steps: { ...none, agents: 1 } }));
  t.match(html, /Connect an agent<\/strong><span class="soft"> \(done\)/, 'the mark has words');
});

t.test('the steps are read from the questions and agents that are there', async (t) => {
  const app = await startApp(t);
  const client = createClient({ base_url: app.url });
  t.teardown(client.close);
  const api = { get: client.call };
  t.same(await readFirstSteps(api), none);
  /** Lists are cached for a second. */
  const untilRead = (wanted: FirstSteps) =>
    until('the steps are current', async () =>
      isDeepStrictEqual(await readFirstSteps(api), wanted),
    );
  const question = (source: string | null, n: number) => ({
    question: `Will step ${n} of the list be done today?`,
    category: 'technology',
    closes_at: new Date(Date.now() + 86_400_000).toISOString(),
    publish: true,
    ...(source === null ? {} : { source, source_id: String(n) }),
  });
  const add = (source: string | null, n: number) =>
    app.call('POST', '/api/admin/questions', { admin: true, body: question(source, n) });
  t.equal((await add('demo', 1)).status, 201);
  await untilRead({ ...none, questions: 1, has_demo: true });
  t.equal((await add('elsewhere', 2)).status, 201);
  t.equal((await add(null, 3)).status, 201);
  await makeAgent(app, { human: await makeHuman(app) });
  await untilRead({ questions: 3, is_written: true, is_imported: true, has_demo: true, agents: 1 });
});
