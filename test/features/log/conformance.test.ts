import { makeId } from '../../../src/kit/ids.js';
import { no_limits, startApp } from '../../help/app.js';
import { clients, emit, emitMany, headOf, runSuite } from '../../help/conformance.js';
import { type Change, startLiar } from '../../help/liar.js';
import { withoutPython } from '../../help/python.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { serveLog } from './log-server.js';

/** The service passes the conformance suite for streams, and a misbehaving proxy fails it. */

const count = 3_000;
const seed = ['--seed', '7'];
const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const question_ids = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
await emit(app, question_ids, count);
await until('the log has them', async () => (await headOf(app)) >= count);

// Ticks arrive only every 15 s, so the tests take long.
t.setTimeout(300_000);

t.test('the service keeps every promise', { timeout: 120_000 }, async (t) => {
  const going_on = setInterval(() => emit(app, question_ids, 5), 50);
  const { code, output } = await runSuite([app.url, '--events', '2500', ...seed]);
  clearInterval(going_on);
  t.equal(code, 0, output);
  t.equal(output.match(/^ok {7}/gm)?.length, 13, output);
  t.match(output, /skipped {2}what is too much for a replay/);
});

const without_python = withoutPython();

for (const [name, command] of Object.entries(clients)) {
  const skip = name === 'python' && without_python;
  t.test(`the client of ${name} follows exactly`, { skip, timeout: 120_000 }, async (t) => {
    const after = await headOf(app);
    const ends = ['--after', String(after), '--until', String(after + count)];
    const [{ code, output }] = await Promise.all([
      runSuite([app.url, ...seed, ...ends, '--cut-bytes', '200000', '--client', command]),
      emitMany(app, question_ids, count),
    ]);
    t.equal(code, 0, output);
    t.match(output, /3000 events, exactly, through [1-9]\d* cuts/);
  });
}

t.test('a log that ends with a private event is followed to its last public one', async (t) => {
  const { app: other, log } = await serveLog(t);
  await log.write(300);
  await log.write(150, { audience_id: makeId() });
  const service = await runSuite([other.url, ...seed, '--only', 'the same']);
  t.equal(service.code, 0, service.output);
  t.match(service.output, /300 events/);
  const client = await runSuite([other.url, ...seed, '--client', clients.typescript]);
  t.equal(client.code, 0, client.output);
  t.match(client.output, /300 events, exactly/);
});

const lies: Readonly<Record<string, Change>> = {
  'an event is left out': (frame) => (frame.offset % 1_000 === 0 ? [] : [frame]),
  'and prev is made to fit': (frame) => {
    if (frame.offset % 1_000 === 0) return [];
    return [frame.offset % 1_000 === 1 ? { ...frame, prev: frame.offset - 2 } : frame];
  },
  'an event comes twice': (frame) => (frame.offset % 1_000 === 0 ? [frame, frame] : [frame]),
  'an event is another': (frame) => [frame.offset % 1_000 ? frame : { ...frame, id: makeId() }],
  'a word is changed': (frame) => [frame.offset % 1_000 ? frame : { ...frame, data: { n: 1 } }],
};

for (const [name, change] of Object.entries(lies)) {
  t.test(`it is found out when ${name}`, { timeout: 120_000 }, async (t) => {
    const { code, output } = await runSuite([
      await startLiar(t, app.url, change),
      '--only',
      'the same',
    ]);
    t.equal(code, 1, output);
    t.match(output, /FAILED {3}the socket replays the same events/);
    t.match(output, /ok {7}server-sent events are the same/);
  });
}

t.test('arguments that are wrong say so', async (t) => {
  t.match(await runSuite(['nowhere']), { code: 2, output: /Give the address/ });
  t.match(await runSuite([app.url, '--events', 'x']), { code: 2, output: /take a number/ });
  t.match(await runSuite(['http://127.0.0.1:1']), { code: 2, output: /is no prediction-forum/ });
});
