import { parseItem } from 'structured-headers';
import { describeDeprecation } from '../../src/http/deprecation.js';
import { makeOpenApi } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { t } from '../help/tap.js';
import { startToyApp, toys } from '../help/toy-app.js';

/** A deprecated route says so in every answer, and in the documents. */

const app = await startToyApp(t);

t.test('made, cached, unchanged or refused, its answers carry the headers', async (t) => {
  const first = await app.call('GET', '/api/old');
  const { hits } = app.cache.stats();
  const cached = await app.call('GET', '/api/old');
  t.equal(app.cache.stats().hits, hits + 1);
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' };
  const unchanged = await app.call('GET', '/api/old', { headers });
  const refused = await app.call('GET', '/api/old?limit=0');
  const answers = [first, cached, unchanged, refused];
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 304, 400],
  );
  for (const answer of answers) {
    const [since] = parseItem(answer.headers.get('deprecation') ?? '');
    t.same(since, new Date('2026-01-01'), 'a date of RFC 9651');
    t.equal(answer.headers.get('sunset'), 'Wed, 01 Jul 2026 00:00:00 GMT');
    t.equal(
      answer.headers.get('link'),
      '</docs/guide/discovery>; rel="deprecation"; type="text/html", ' +
        '</api/toys>; rel="successor-version"',
    );
  }
});

t.test('other answers do not', async (t) => {
  const { status, headers } = await app.call('GET', '/api/toys');
  t.equal(status, 200);
  for (const name of ['deprecation', 'sunset', 'link']) t.equal(headers.get(name), null, name);
});

t.test('the OpenAPI document says so', async (t) => {
  const parts = { info: { title: 'x', version: '1', description: 'y' }, server_url: '', tags: {} };
  const document = await makeOpenApi(toys as readonly Route[], { ...parts, bodyOf: () => ({}) });
  const sentence =
    'Deprecated since 2026-01-01; may be removed on or after 2026-07-01; use /api/toys; ' +
    'see /docs/guide/discovery.';
  t.match(document, {
    paths: {
      '/api/old': { get: { deprecated: true, description: sentence } },
      '/api/toys': { get: { deprecated: undefined, description: undefined } },
    },
  });
  t.equal(describeDeprecation({ since: '2026-01-01' }), 'Deprecated since 2026-01-01.');
});
