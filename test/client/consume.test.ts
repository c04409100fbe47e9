import { createClient, type Delivery, Refused, StreamGap } from '#client/node.js';
import { questionId, serveConsumers } from '../features/consumers/world.js';
import { pluck } from '../help/pluck.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { startFront } from './front.js';

/** Members of a durable consumer that use the client library. */

const { app, key, as, write, endLeases } = await serveConsumers(t);
const client = createClient({ base_url: app.url, api_key: key });

const make = async (name: string, body: object = {}): Promise<string> => {
  await as('PUT', `/${name}`, body);
  return name;
};

const lagOf = async (name: string): Promise<number> => (await as('GET', `/${name}`)).body.lag;

t.test('members share the events, and order is kept per question', async (t) => {
  const consumer = await make('shared');
  const fresh = await write(Array.from({ length: 60 }, (_, n) => (n * n) % 7));
  const ending = new AbortController();
  const done: number[] = [];
  const work = async (member: string): Promise<void> => {
    const { signal } = ending;
    for await (const one of client.consume({ consumer, member, limit: 3, signal })) {
      t.equal(one.deliveries, 1);
      t.equal(await one.ack(), true);
      done.push(one.offset);
      if (done.length === fresh.length) ending.abort();
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  t.same(
    [...done].sort((a, b) => a - b),
    pluck(fresh, 'offset'),
  );
  for (let n = 0; n < 7; n += 1) {
    const own = pluck(
      fresh.filter(({ question_id }) => question_id === questionId(n)),
      'offset',
    );
    t.same(
      done.filter((offset) => own.includes(offset)),
      own,
    );
  }
  t.equal(await lagOf(consumer), 0);
});

t.test('when the loop ends, what was not acknowledged is there for others at once', async (t) => {
  const consumer = await make('left');
  const offsets = pluck(await write([1, 2, 3]), 'offset');
  for await (const one of client.consume({ consumer, member: 'a' })) {
    if (one.offset === offsets[1]) break;
    await one.ack();
  }
  const seen: Delivery[] = [];
  for await (const one of client.consume({ consumer, member: 'b' })) {
    seen.push(one);
    await one.ack();
    if (seen.length === 2) break;
  }
  t.match(seen, [
    { offset: offsets[1], deliveries: 2 },
    { offset: offsets[2], deliveries: 2 },
  ]);
  t.equal(await lagOf(consumer), 0);
});

t.test('a loop that ends counts against the event at hand alone', async (t) => {
  const consumer = await make('untried', { max_deliveries: 2 });
  const [bad, ...others] = pluck(await write([1, 2, 3]), 'offset');
  for (let n = 0; n < 2; n += 1) {
    for await (const one of client.consume({ consumer, member: 'a' })) {
      t.equal(one.offset, bad);
      break;
    }
    await endLeases();
  }
  t.same(pluck((await as('GET', `/${consumer}/parked`)).body.events, 'offset'), [bad]);
  const seen: number[] = [];
  for await (const one of client.consume({ consumer, member: 'b' })) {
    seen.push(one.offset);
    await one.ack();
    if (seen.length === 2) break;
  }
  t.same(seen, others);
});

t.test('an event that is given back takes later ones of its question with it', async (t) => {
  const consumer = await make('back');
  const [a1, a2, b1] = pluck(await write([1, 1, 2]), 'offset');
  const seen: (number | undefined)[] = [];
  for await (const one of client.consume({ consumer, member: 'a' })) {
    seen.push(one.offset);
    if (seen.length === 1) await one.release();
    else await one.ack();
    if (seen.length === 4) break;
  }
  t.same(seen, [a1, b1, a1, a2]);
});

t.test('an event that another member has by now is not acknowledged', async (t) => {
  const consumer = await make('lost');
  await write([1]);
  const one = client.consume({ consumer, member: 'a' });
  const { value } = await one.next();
  await endLeases();
  const other = client.consume({ consumer, member: 'b' });
  const { value: again } = await other.next();
  t.equal(await value?.ack(), false);
  t.equal(await again?.ack(), true);
  await Promise.all([one.return(undefined), other.return(undefined)]);
});

t.test('a signal ends a wait, without an error', async (t) => {
  const consumer = await make('ended');
  const ending = new AbortController();
  const { signal } = ending;
  const next = client.consume({ consumer, member: 'a', signal }).next();
  await write([1]);
  const { value } = await next;
  t.equal(value?.deliveries, 1);
  const waiting = client.consume({ consumer, member: 'b', signal });
  const end = waiting.next();
  ending.abort();
  t.same(await end, { value: undefined, done: true });
});

t.test('it goes on after an outage, and ends for what will not pass', async (t) => {
  const consumer = await make('away');
  const [offset] = pluck(await write([1]), 'offset');
  const front = await startFront(t, app.url);
  const own = client.with({ base_url: front.url, patience_ms: 0 });
  const unavailable = { status: 503, headers: {}, body: '{}' };
  front.moods.push(unavailable, unavailable, 'pass', unavailable);
  const taking = own.consume({ consumer, member: 'a' });
  const { value } = await taking.next();
  t.equal(value?.offset, offset);
  await t.rejects(async () => void (await value?.ack()), { code: 'UNAVAILABLE' });
  t.equal(await value?.ack(), true, 'it may be said again');
  await until('the moods are used', () => front.moods.length === 0);
  await taking.return(undefined);
  await t.rejects(client.consume({ consumer: 'none', member: 'a' }).next(), Refused);
});

t.test('what is no longer kept is a gap', async (t) => {
  await app.sql`update log_head set oldest = 5`;
  const after = { start: 2 };
  const missed = { topic: 'consumer:missed', after: 2, until: 4, reason: 'expired' };
  const consumer = await make('missed', after);
  await t.rejects(client.consume({ consumer, member: 'a' }).next(), StreamGap);
  await as('POST', `/${consumer}/seek`, after);
  const gaps: unknown[] = [];
  const onGap = (gap: unknown): void => void gaps.push(gap);
  const one = client.consume({ consumer, member: 'a', onGap });
  t.match(await one.next(), { value: { offset: 5 } });
  t.same(gaps, [missed]);
  await one.return(undefined);
  t.match((await as('GET', `/${consumer}`)).body.members, [], 'all are given back');
});
