import { makeInnerCall } from '../../src/http/inner-call.js';
import type { Context } from '../../src/http/route.js';
import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';

/** The parts of a page's call that its inner calls use. */
const page = {
  request: { address: { text: '127.0.0.1', limit_key: '127.0.0.1' } },
  request_id: 'page-1',
  header: () => '',
} as unknown as Context;

t.test(
  'a call within a page gets what the API answers, and leaves no line in the log',
  async (t) => {
    const { mounted, logged } = await startToyApp(t);
    const call = makeInnerCall((request) => mounted.call(request));
    const read = { method: 'GET', path: '/api/toys', query: 'limit=3' };
    t.match(await call(page, read), { status: 200, body: { toys: ['bär'], limit: 3 } });
    t.match(await call(page, { ...read, query: 'limit=x' }), {
      status: 400,
      body: { code: 'INVALID_REQUEST', request_id: 'page-1' },
    });
    const made = { method: 'POST', path: '/api/toys', query: '', body: { name: 'abc' } };
    t.match(await call(page, made), { status: 201, body: { length: 3 } });
    t.same(logged, []);
  },
);

t.test('a page that is being made is made to its end while the process stops', async (t) => {
  const { mounted } = await startToyApp(t);
  const call = makeInnerCall((request) => mounted.call(request));
  mounted.startDraining();
  t.match(await call(page, { method: 'GET', path: '/api/toys', query: '' }), { status: 200 });
});
