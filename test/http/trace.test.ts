import { readTrace } from '../../src/http/trace.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';

/** W3C Trace Context, with the cases that its recommendation names. */

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736';
const span_id = '00f067aa0ba902b7';
const parent = `00-${trace_id}-${span_id}-01`;

t.test('a good traceparent is read, also one of a later version', async (t) => {
  for (const good of [
    parent,
    `00-${trace_id}-${span_id}-00`,
    `00-${trace_id}-${span_id}-ff`,
    `cc-${trace_id}-${span_id}-01`,
    `cc-${trace_id}-${span_id}-01-what-comes-later`,
  ]) {
    t.same(readTrace(good), { trace_id, span_id }, good);
  }
});

t.test('a wrong one is no trace', async (t) => {
  const wrong = [
    '',
    '00',
    parent.slice(0, -1),
    `${parent}0`,
    `${parent}-`,
    `${parent}-more`,
    ` ${parent}`,
    parent.toUpperCase(),
    parent.replaceAll('-', '_'),
    parent.replace('a', 'g'),
    `ff${parent.slice(2)}`,
    `cc${parent.slice(2)}.more`,
    `${parent},${parent}`,
    `00-${'0'.repeat(32)}-${span_id}-01`,
    `00-${trace_id}-${'0'.repeat(16)}-01`,
  ];
  for (const given of wrong) t.equal(readTrace(given), null, given);
});

t.test('log lines of a request name its trace, and no request fails by it', async (t) => {
  const app = await startToyApp(t);
  const connection = openRaw(app.port);
  const lineOf = async (name: string, path: string, headers: readonly string[]) => {
    connection.write(writeRequest(`GET ${path} HTTP/1.1`, [`X-Request-Id: ${name}`, ...headers]));
    await connection.next();
    return app.logged.filter(({ request_id }) => request_id === name);
  };
  const traced = await lineOf('traced', '/api/toys', [`Traceparent: ${parent}`]);
  t.match(traced, [{ status: 200, trace_id, span_id }]);
  const thrown = await lineOf('thrown', '/throws', [`traceparent: ${parent}`]);
  t.match(thrown, [
    { level: 50, trace_id, span_id },
    { status: 500, trace_id, span_id },
  ]);
  for (const headers of [
    [],
    ['traceparent: 00-nonsense'],
    [`traceparent: ${parent}`, `traceparent: ${parent}`],
  ]) {
    const [line] = await lineOf(`none-${headers.length}`, '/api/toys', headers);
    t.equal(line?.['status'], 200);
    t.notOk('trace_id' in (line ?? {}), `no trace by ${headers.length} headers`);
  }
});
