import { readConfig } from '../../../src/config.js';
import { createDocumentSearch } from '../../../src/features/search/documents.js';
import type { Route } from '../../../src/http/route.js';
import { api_routes } from '../../../src/routes.js';
import { secret_key } from '../../help/app.js';
import { t } from '../../help/tap.js';

t.test('the sections of the guide have the title of their page and an address', async (t) => {
  const env = {
    DATABASE_URL: 'postgres://localhost/none',
    REDIS_URL: 'redis://localhost',
    SECRET_KEY: secret_key,
  };
  const sections = createDocumentSearch(readConfig(env), api_routes as readonly Route[])();
  const page = sections.find(({ path }) => path === '/docs/guide/webhooks');
  t.match(page, { title: 'Receive webhooks', heading: null, heading_words: ' receive webhooks ' });
  const parts = sections.filter(({ path }) => path.startsWith('/docs/guide/webhooks#'));
  t.ok(parts.length > 0);
  for (const { title, heading, heading_words, words } of parts) {
    t.equal(title, 'Receive webhooks');
    t.ok(heading !== null && heading_words.startsWith(' receive webhooks '));
    t.ok(words.includes(' '));
  }
  const operation = sections.find(({ heading }) => heading === 'POST /api/register');
  t.match(operation, { title: 'API reference', path: '/docs/api/agents#op-register' });
});
