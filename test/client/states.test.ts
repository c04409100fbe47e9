import t, { type Test } from 'tap';
import { createClient, type StateUpdate } from '../../src/client/node.js';
import { refuse } from '../../src/kit/fault.js';
import { ws_faults } from '../../src/socket/frames.js';
import type { State, StateSource } from '../../src/socket/states.js';
import { range, startHub } from '../help/hub.js';
import { startSocketFront } from '../help/socket-front.js';
import { until } from '../help/until.js';

/** A hub with one state, the number of which each `next` makes larger. */
const start = async (t: Test) => {
  let now: State = { version: 1, data: { n: 1, same: [1, { b: 2, a: 1 }], none: null, gone: 1 } };
  let reads = 0;
  const source: StateSource = {
    resolve: (label) => {
      if (label === 'consensus:no') return refuse(ws_faults.INVALID_TOPIC);
      return label.startsWith('consensus:') ? { topic: label, label } : null;
    },
    read: () => {
      reads += 1;
      return now;
    },
  };
  const hub = await startHub(t, { state_gap_ms: 1 }, 0, { states: [source] });
  const front = await startSocketFront(t, hub.port);
  const client = createClient({ base_url: front.url, backoff_ms: 200 });
  t.teardown(() => client.close());
  const states: StateUpdate[] = [];
  const events: number[] = [];
  client.stream({
    topics: ['all', 'consensus:q'],
    onItem: (item) => void (item.op === 'state' ? states.push(item) : events.push(item.offset)),
  });
  const next = async (): Promise<void> => {
    const version = now.version + 1;
    now = { version, data: { n: version, same: [1, { b: 2, a: 1 }], none: null } };
    const before = reads;
    hub.hub.touch('consensus:q');
    await until('it is read', () => reads > before);
  };
  await until('the first state', () => states.length === 1);
  return { ...hub, front, states, events, next, now: () => now };
};

const asked = (said: readonly { op: string; topics?: unknown }[]): number =>
  said.filter(({ op, topics }) => op === 'subscribe' && String(topics) === 'consensus:q').length;

t.test('deltas are put together, beside events', async (t) => {
  const { states, events, next, now, front, publish } = await start(t);
  t.match(states[0], { topic: 'consensus:q', version: 1, data: { n: 1, gone: 1 } });
  for (const n of range(1, 100)) {
    await next();
    if (n % 10 === 0) publish(1);
  }
  await until('the newest', () => states.at(-1)?.version === 101);
  const { gone, ...held } = states.at(-1)?.data ?? {};
  t.equal(gone, null, 'what is gone is null');
  t.strictSame(held, now().data);
  await until('the events', () => events.length === 10);
  t.equal(asked(front.said), 1, 'every delta fitted');
});

t.test('a delta that was lost leads to a snapshot', async (t) => {
  const { states, next, now, front } = await start(t);
  let deltas = 0;
  front.tamper = (frame) => (frame.op === 'delta' && ++deltas === 2 ? [] : [frame]);
  for (const _ of range(1, 4)) await next();
  await until('it asks again', () => asked(front.said) === 2);
  await until('the newest', () => states.at(-1)?.version === 5);
  t.strictSame(states.at(-1)?.data, now().data);
});

t.test('states alone are live too; what is no topic ends the stream', async (t) => {
  const { front } = await start(t);
  const client = createClient({ base_url: front.url });
  t.teardown(() => client.close());
  let live = 0;
  const stream = client.stream({
    topics: ['consensus:q'],
    onStatus: ({ status }) => {
      if (status === 'live') live += 1;
    },
  });
  t.match(await stream.next(), { value: { op: 'state', version: 1 } });
  t.equal(live, 1);
  const wrong = client.stream({ topics: ['consensus:no'] });
  const error = await wrong.next().catch((error) => error);
  t.match(error, { name: 'Refused', fault: { code: 'INVALID_TOPIC' } });
});

t.test('a state comes anew with each connection', async (t) => {
  const { states, next, front } = await start(t);
  front.cut();
  await next();
  await until('the newest', () => states.at(-1)?.version === 2);
  t.same(
    states.map(({ version }) => version),
    [...new Set(states.map(({ version }) => version))],
  );
});
