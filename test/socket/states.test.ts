import { Type } from '@sinclair/typebox';
import { frame_id, makeFrame } from '../../src/socket/frames.js';
import { defineOp } from '../../src/socket/session.js';
import { diffState, hashState, type State, type StateSource } from '../../src/socket/states.js';
import { range, startHub } from '../help/hub.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

interface Sums extends StateSource {
  readonly now: Map<string, State>;
  reads: number;
}

const makeSource = (): Sums => {
  const source: Sums = {
    now: new Map(),
    reads: 0,
    resolve: (label) => (label.startsWith('sum:') ? { topic: label, label } : null),
    read(topic) {
      source.reads += 1;
      return source.now.get(topic) ?? null;
    },
  };
  return source;
};

t.test('a state comes as a snapshot, then as what changed, the latest only', async (t) => {
  const source = makeSource();
  source.now.set('sum:a', { version: 3, data: { n: 3, same: [1], gone: true } });
  const { port, hub } = await startHub(t, { state_gap_ms: 20 }, 0, { states: [source] });
  const socket = await connect(t, port);
  t.match(await socket.subscribe(['all', 'sum:a']), { topics: ['all', 'sum:a'], result: 'live' });
  t.match(await socket.get('the snapshot', ({ op }) => op === 'snapshot'), {
    topic: 'sum:a',
    version: 3,
    data: { n: 3, same: [1], gone: true },
    hash: hashState({ same: [1], gone: true, n: 3 }),
  });
  for (const n of range(4, 50)) {
    source.now.set('sum:a', { version: n, data: { n, same: [1] } });
    hub.touch('sum:a');
  }
  const deltas = () => socket.frames.filter(({ op }) => op === 'delta');
  await until('the newest', () => deltas().at(-1)?.version === 50);
  t.match(deltas()[0], { topic: 'sum:a', from: 3, set: { gone: null } });
  t.equal(deltas().at(-1)?.version, 50);
  t.ok(deltas().length < 20, `${deltas().length} deltas`);
  socket.send({ op: 'unsubscribe', id: 2, topics: ['sum:a'] });
  t.match(await socket.answer(2), { topics: ['sum:a'] });
  t.equal(hub.stats().topics, 1);
});

t.test('who puts the deltas together has the state, and each late one a snapshot', async (t) => {
  const source = makeSource();
  const { port, hub } = await startHub(t, { state_gap_ms: 1 }, 0, { states: [source] });
  const early = await connect(t, port);
  await early.subscribe(['sum:b']);
  for (const n of range(1, 100)) {
    source.now.set('sum:b', { version: n, data: { n, [`k${n % 7}`]: n } });
    hub.touch('sum:b');
    const reads = source.reads;
    await until('it is read', () => source.reads > reads);
  }
  const late = await connect(t, port);
  await late.subscribe(['sum:b']);
  await late.get('a snapshot', ({ op, version }) => op === 'snapshot' && version === 100);
  await until('the newest', () => early.frames.at(-1)?.version === 100);
  let held: Record<string, unknown> = {};
  let hashes = 0;
  for (const frame of early.frames.slice(2)) {
    const next = { ...((frame.data ?? { ...held, ...(frame.set as object) }) as object) };
    held = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null));
    if (frame.hash === undefined) continue;
    hashes += 1;
    t.equal(frame.hash, hashState(held));
  }
  t.strictSame(held, { n: 100, k2: 100 });
  t.equal(hashes, 1 + Math.floor((early.frames.length - 3) / 32));
  t.equal(diffState({ a: [1] }, { a: [1] }), null);
});

t.test('a reader that stands still gets the newest state, not all that were', async (t) => {
  const source = makeSource();
  const pad = 'x'.repeat(200_000);
  source.now.set('sum:c', { version: 1, data: { n: 1, pad } });
  const { port, hub } = await startHub(t, { state_gap_ms: 1 }, 0, { states: [source] });
  const slow = await connect(t, port);
  await slow.subscribe(['sum:c']);
  await slow.get('a snapshot', ({ op }) => op === 'snapshot');
  slow.pause();
  for (const n of range(2, 150)) {
    source.now.set('sum:c', { version: n, data: { n, pad: pad + n } });
    hub.touch('sum:c');
    const reads = source.reads;
    await until('it is read', () => source.reads > reads);
  }
  slow.resume();
  await slow.get('the newest', ({ version }) => version === 150);
  t.ok(slow.frames.length < 120, `${slow.frames.length} frames`);
  t.equal(hub.stats().slow, 0);
});

t.test('a source that fails is asked again', async (t) => {
  let asked = 0;
  const source: StateSource = {
    resolve: (label) => (label === 'sum:d' ? { topic: label, label } : null),
    read: () => {
      asked += 1;
      if (asked === 1) throw new Error('away');
      return { version: 1, data: { fine: true } };
    },
  };
  const { port, logged } = await startHub(t, {}, 0, { states: [source] });
  const socket = await connect(t, port);
  await socket.subscribe(['sum:d']);
  await socket.get('a snapshot', ({ op }) => op === 'snapshot');
  t.match(logged.join(), /could not read a state/);
});

t.test('a source that announces nothing is read again while somebody subscribes', async (t) => {
  let n = 0;
  const source: StateSource = {
    every_ms: 20,
    resolve: (label) => (label === 'sum:e' ? { topic: label, label } : null),
    read: () => {
      n += 1;
      return { version: n, data: { n } };
    },
  };
  const { port } = await startHub(t, { state_gap_ms: 1 }, 0, { states: [source] });
  const socket = await connect(t, port);
  await socket.subscribe(['sum:e']);
  await socket.get('the third', ({ op, version }) => op === 'delta' && version === 3);
  await socket.ask({ op: 'unsubscribe', topics: ['sum:e'] });
  const reads = n;
  await socket.subscribe(['sum:e']);
  await socket.get('one more', ({ version }) => version === reads + 1);
});

t.test('a feature adds an op, with frames of its own size', async (t) => {
  const echo = defineOp({
    schema: Type.Object({ id: frame_id, text: Type.String() }),
    max_bytes: 70_000,
    take: ({ caller }, { id, text }) =>
      makeFrame('echoed', id, { length: text.length, as: caller.kind }),
  });
  const { port } = await startHub(t, {}, 0, { ops: { echo } });
  const socket = await connect(t, port);
  socket.send({ op: 'echo', id: 1, text: 'x'.repeat(60_000) });
  t.match(await socket.answer(1), { op: 'echoed', length: 60_000, as: 'anonymous' });
  socket.send({ op: 'echo', id: 2 });
  t.match(await socket.answer(2), { code: 'INVALID_FRAME' });
  socket.send({ op: 'ping', id: 3, pad: 'x'.repeat(16_384) });
  t.equal(await socket.closed(), 4000, 'other ops keep their bound');
});
