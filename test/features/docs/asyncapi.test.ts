import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { makeAsyncApi, topic_names } from '../../../src/features/docs/asyncapi.js';
import { catalogue } from '../../../src/features/events/catalogue.js';
import { resolveTopic } from '../../../src/features/events/topics.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { close_codes } from '../../../src/socket/frames.js';
import { socket_ops } from '../../../src/socket/hub.js';
import { startApp } from '../../help/app.js';
import { agentNamed } from '../../help/hub.js';
import { openSse } from '../../help/sse-client.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { pillars } from '../../help/taxonomy.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';

/** The AsyncAPI document is valid under the official schema and describes the actual frames. */

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
type Any = any;

const official = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.1.0.json') as Any;
const document = JSON.parse(
  JSON.stringify(makeAsyncApi({ title: 'x', version: '1', description: 'y' }, 'https://f.dev')),
) as Any;

/** The official schema contains the meta-schema that it refers to. */
const makeAjv = (): Ajv => {
  const ajv = new Ajv({ strict: false, meta: false, validateSchema: false });
  (addFormats as unknown as { default: (one: Ajv) => Ajv }).default(ajv);
  return ajv;
};

t.test('it is valid by the official schema of AsyncAPI 3.1', async (t) => {
  const check = makeAjv().compile(official);
  t.ok(check(document), JSON.stringify(check.errors?.slice(0, 5)));
  t.notOk(check({ ...document, channels: { x: { address: 7 } } }), 'which does refuse');
});

t.test('every reference leads somewhere', async (t) => {
  const lost: string[] = [];
  const walk = (value: Any): void => {
    if (typeof value !== 'object' || value === null) return;
    if (typeof value.$ref === 'string') {
      const found = value.$ref
        .slice(2)
        .split('/')
        .reduce((at: Any, name: string) => at?.[name], document);
      if (found === undefined) lost.push(value.$ref);
    }
    for (const inner of Object.values(value)) walk(inner);
  };
  walk(document);
  t.same(lost, []);
});

t.test('it knows every event, op, topic and close code there is', async (t) => {
  const names = Object.keys(document.components.messages);
  for (const { name } of catalogue) {
    for (const kind of ['frame', 'stream', 'webhook']) {
      t.ok(names.includes(`${kind}_${name.replace('.', '_')}`), `${kind} ${name}`);
    }
  }
  for (const op of Object.keys(socket_ops)) t.ok(names.includes(`client_${op}`), op);
  const codes = document.channels.socket['x-close-codes'].map(({ code }: Any) => code);
  t.same([...codes].sort(), Object.values(close_codes).sort());
  for (const { name } of topic_names) {
    const slug = name.startsWith('subcategory') ? 'data' : 'society';
    const label = name.replace('{id}', makeId()).replace('{slug}', slug);
    t.notOk(isFault(resolveTopic(label, agentNamed(makeId()), pillars)), label);
  }
});

t.test('what is really sent is as it says', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay'] });
  const served = (await app.call('GET', '/asyncapi.json')) as Any;
  t.equal(served.status, 200);
  t.equal(served.body.servers.socket.host, new URL(app.url).host);
  const ajv = makeAjv();
  const checks = new Map(
    Object.entries(served.body.components.messages).map(([name, message]: [string, Any]) => [
      name,
      ajv.compile(message.payload),
    ]),
  );
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const socket = await connect(t, app.port, { headers: { 'x-api-key': agent.key } });
  const stream = await openSse(t, `${app.url}/api/stream?after=0`);
  socket.send({ op: 'subscribe', id: 1, topics: ['all', 'me'], after: 0 });
  const question_id = await makeOpenQuestion(app);
  socket.send({ op: 'subscribe', id: 2, topics: [`consensus:${question_id}`] });
  await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { prediction: true, confidence: 70, reasoning: makeReasoning() },
  });
  socket.send({ op: 'ping', id: 3 });
  socket.send({ op: 'unsubscribe', id: 4, topics: ['me'] });
  socket.send({ op: 'nothing', id: 5 });
  socket.send({ op: 'call', id: 6, route: 'GET /api/taxonomy' });
  for (const id of [1, 2, 3, 4, 5, 6]) await socket.answer(id);
  await until('the events', () => socket.events().length >= 2 && stream.offsets().length >= 2);
  await socket.get('snapshot', ({ op }) => op === 'snapshot');
  const seen = new Set<string>();
  const wrong: string[] = [];
  const look = (name: string, value: unknown): void => {
    const check = checks.get(name);
    seen.add(name);
    if (!check?.(value)) wrong.push(`${name}: ${JSON.stringify(check?.errors ?? 'unknown')}`);
  };
  for (const frame of socket.frames as Any[]) {
    look(`frame_${frame.op === 'event' ? frame.event.replace('.', '_') : frame.op}`, frame);
  }
  for (const { name, data } of stream.messages) {
    if (name === '') look(`stream_${data.event.replace('.', '_')}`, data);
  }
  t.same(wrong, []);
  for (const op of ['welcome', 'subscribed', 'snapshot', 'reply', 'pong', 'error']) {
    t.ok(seen.has(`frame_${op}`), op);
  }
  t.ok(seen.has('frame_prediction_placed') && seen.has('stream_prediction_placed'));
});
