import fc from 'fast-check';
import type { Test } from 'tap';
import { createConsumers, type Owning } from '../../../src/features/consumers/taking.js';
import { makeRecentEvents, PublishedEvent } from '../../../src/features/events/topics.js';
import { createLogWatch } from '../../../src/features/log/index.js';
import type { TaxonomyParts } from '../../../src/features/taxonomy/index.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { makeRandom } from '../../help/long-run.js';
import { openParts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { offsetsOf, questionId, serveConsumers } from './world.js';

/** Members that share the events of a consumer: leases, order, waits, gaps. */

const world = await serveConsumers(t);
const { app, log, as, take, ack, endLeases, write } = world;

const agentId = async (): Promise<string> =>
  (await app.sql<{ id: string }[]>`select id from agents limit 1`)[0]?.id ?? '';

let made = 0;
/** A new consumer of future events. */
const make = async (body: object = {}): Promise<string> => {
  made += 1;
  await app.sql`delete from consumers`;
  await as('PUT', `/c${made}`, body);
  return `c${made}`;
};

t.test('an event is delivered until it is acknowledged, and then no more', async (t) => {
  const name = await make();
  const [one, two] = pluck(await write([1, 2]), 'offset') as [number, number];
  const first = await take(name, 'a');
  t.match(first.body.events, [{ offset: one, deliveries: 1 }, { deliveries: 1 }]);
  const { event, data, timestamp } = JSON.parse(log.entries[one - 1]?.body ?? '{}');
  t.match(first.body.events[0], { id: log.entries[one - 1]?.id, event, data, timestamp });
  t.ok(Date.parse(first.body.ack_by) > Date.now());
  t.same((await take(name, 'b')).body, { events: [], ack_by: null, gap: null });
  t.same((await ack(name, 'a', [one])).body, { acknowledged: [one], not_held: [] });
  await endLeases();
  t.match((await take(name, 'b')).body.events, [{ offset: two, deliveries: 2 }]);
  const late = await ack(name, 'a', [two, one, 999_999]);
  t.same(late.body, { acknowledged: [], not_held: [two, one, 999_999] }, 'b has it now');
  t.same((await ack(name, 'b', [two, two])).body, { acknowledged: [two], not_held: [] });
  t.same((await ack(name, 'b', [two])).body.not_held, [two], 'once');
  await endLeases();
  t.same(offsetsOf(await take(name, 'a')), []);
});

t.test('a lease that ended counts while nobody else has the event', async (t) => {
  const name = await make();
  const [one] = pluck(await write([1]), 'offset') as [number];
  await take(name, 'a');
  await endLeases();
  t.same((await ack(name, 'a', [one])).body.acknowledged, [one]);
});

t.test('the lease has the length that the consumer asks for', async (t) => {
  for (const seconds of [1, 3_600]) {
    const name = await make({ ack_wait_seconds: seconds });
    await write([1]);
    const { ack_by } = (await take(name, 'a')).body;
    const [row] = await app.sql<{ seconds: number; leased_until: Date }[]>`
      select extract(epoch from leased_until - now())::float8 as seconds, leased_until
      from consumer_events`;
    t.ok(row && row.seconds <= seconds && row.seconds > seconds - 30, `${row?.seconds}`);
    t.equal(ack_by, row?.leased_until.toISOString());
  }
});

t.test('events of a question go to one member at a time, in order', async (t) => {
  const name = await make();
  const [a1, b1, a2, c1, a3] = pluck(await write([1, 2, 1, 3, 1]), 'offset') as number[];
  t.same(offsetsOf(await take(name, 'a', { limit: 1 })), [a1]);
  t.same(offsetsOf(await take(name, 'b')), [b1, c1], 'the question of a1 is passed over');
  t.same(offsetsOf(await take(name, 'a')), [], 'for its member too');
  await ack(name, 'a', [a1 ?? 0]);
  t.same(offsetsOf(await take(name, 'b', { limit: 1 })), [a2]);
  await ack(name, 'b', [a2 ?? 0]);
  t.same(offsetsOf(await take(name, 'a')), [a3]);
});

t.test('several of one question come together to one member', async (t) => {
  const name = await make();
  const fresh = pluck(await write([1, 1, 1]), 'offset');
  t.same(offsetsOf(await take(name, 'a')), fresh);
  const [last] = pluck(await write([1]), 'offset');
  await ack(name, 'a', fresh.slice(0, 2));
  t.same(offsetsOf(await take(name, 'b')), []);
  await ack(name, 'a', fresh.slice(2));
  t.same(offsetsOf(await take(name, 'b')), [last]);
});

t.test('what is given back comes again in order, at once or later', async (t) => {
  const name = await make();
  const [a1, a2, b1] = pluck(await write([1, 1, 2]), 'offset') as [number, number, number];
  await take(name, 'a');
  const back = await as('POST', `/${name}/nack`, { member: 'a', offsets: [a1, 7] });
  t.same(back.body, { released: [a1, a2], not_held: [7] });
  t.same((await ack(name, 'a', [a2])).body.not_held, [a2]);
  const again = await take(name, 'b');
  t.match(again.body.events, [
    { offset: a1, deliveries: 2 },
    { offset: a2, deliveries: 2 },
  ]);
  const later = { member: 'a', offsets: [b1], delay_seconds: 3_600 };
  t.same((await as('POST', `/${name}/nack`, later)).body.released, [b1]);
  t.same(offsetsOf(await take(name, 'c')), []);
  await endLeases();
  t.same(offsetsOf(await take(name, 'c')), [a1, a2, b1]);
});

t.test('topics, filters and private events are those of the stream', async (t) => {
  const own = await agentId();
  const name = await make({ topics: ['me', `question:${questionId(4)}`] });
  await write([1]);
  const [foreign] = await log.write(1, { audience_id: questionId(9) });
  const [mine] = await log.write(1, { audience_id: own });
  const [wanted] = await write([4]);
  t.same(offsetsOf(await take(name, 'm')), [mine?.offset, wanted?.offset]);
  t.ok(foreign);
  await as('PUT', `/${name}`, { filter: { question_ids: [questionId(5)] } });
  const [, fifth] = await write([4, 5]);
  t.same(offsetsOf(await take(name, 'm')), [fifth?.offset]);
});

/** The consumers of another process, which follows the log only as far as the test says. */
const openOther = async (t: Test) => {
  const { deps } = await openParts(t, { stores: app.stores });
  const watch = createLogWatch(deps.sql, makeRecentEvents());
  watch.begin({ head: log.entries.length, oldest: 1 });
  const taxonomy = { latest: () => [] } as unknown as TaxonomyParts['taxonomy'];
  const consumers = createConsumers({ sql: deps.sql, log_watch: watch, taxonomy });
  const owner = { kind: 'agent', id: await agentId() } as Owning;
  return { watch, consumers, owner };
};

/** Starts a call to `take` that waits, and reports how it ends. */
const startWait = async (
  { watch, consumers, owner }: Awaited<ReturnType<typeof openOther>>,
  name: string,
  within_ms = 50_000,
) => {
  let is_gone = false;
  let waits = 0;
  let end = (): void => undefined;
  const held = { connection: makeId(), limit: 10, max_held: 10 };
  const request = { owner, name, member: 'waiting', ...held };
  const taken = consumers.take(request, {
    within_ms,
    goesOn: () => !is_gone,
    onWait: (ending) => {
      waits += 1;
      end = ending;
    },
  });
  await until('it waits', () => watch.waiting() === 1);
  return {
    taken: taken.then((one) => (isFault(one) ? [one.def.code] : pluck(one.events, 'offset'))),
    waits: () => waits,
    leave: () => {
      is_gone = true;
      end();
    },
  };
};

t.test('a wait ends with a new event', async (t) => {
  const name = await make();
  const other = await openOther(t);
  const { taken, waits } = await startWait(other, name);
  const [entry] = await log.record(1);
  if (entry !== undefined) other.watch.onEvents([new PublishedEvent(entry)]);
  t.same(await taken, [entry?.offset]);
  t.equal(waits(), 1, 'nothing else ended it');
  await log.append(log.entries.length, log.entries.length);
});

t.test('a wait ends with an acknowledgement, a release, and the end of the consumer', async (t) => {
  const name = await make();
  const other = await openOther(t);
  const { watch, consumers, owner } = other;
  const key = { owner, name };
  const [one, two] = pluck(await write([1, 1]), 'offset') as [number, number];
  await take(name, 'a', { limit: 1 });
  const first = await startWait(other, name);
  await consumers.acknowledge({ ...key, member: 'a', offsets: [one] });
  t.equal(watch.waiting(), 0, 'at once');
  t.same(await first.taken, [two]);
  const second = await startWait(other, name);
  await consumers.release(
    { ...key, member: 'waiting', offsets: [two] },
    { delay_seconds: 0, is_tried: true },
  );
  t.equal(watch.waiting(), 0, 'at once');
  t.same(await second.taken, [two]);
  const third = await startWait(other, name);
  await as('DELETE', `/${name}`);
  consumers.wake(key);
  t.same(await third.taken, ['NOT_FOUND']);
});

t.test('a wait ends in its time, or when nobody waits any more', async (t) => {
  const name = await make();
  const other = await openOther(t);
  const { taken, leave } = await startWait(other, name);
  leave();
  await write([1]);
  t.same(await taken, [], 'nothing is leased to a client that is gone');
  t.same(offsetsOf(await take(name, 'b')), [log.entries.length]);
  t.same(await (await startWait(other, name, 200)).taken, []);
});

t.test('a wait finds what another process has set free', async (t) => {
  const name = await make();
  const [one] = pluck(await write([1]), 'offset');
  await take(name, 'a');
  const other = await openOther(t);
  const { taken } = await startWait(other, name);
  await endLeases();
  t.same(await taken, [one]);
});

t.test('a thousand unacknowledged events are the most', async (t) => {
  const name = await make();
  await log.write(1_001);
  const all: number[] = [];
  for (let n = 0; n < 10; n += 1) all.push(...offsetsOf(await take(name, 'a', { limit: 100 })));
  t.equal(new Set(all).size, 1_000);
  t.same(offsetsOf(await take(name, 'b', { limit: 100 })), []);
  await ack(name, 'a', all.slice(0, 1));
  t.same(offsetsOf(await take(name, 'b')), [log.entries.length]);
});

t.test('a consumer behind the oldest event is told what it missed', async (t) => {
  const name = await make();
  const from = log.entries.length;
  const fresh = pluck(await write([1, 2, 3, 4]), 'offset') as number[];
  await take(name, 'a', { limit: 1 });
  await app.sql`update log_head set oldest = ${from + 4}`;
  await app.sql`delete from events where "offset" < ${from + 4}`;
  t.teardown(() => app.sql`update log_head set oldest = 1`);
  await endLeases();
  const taken = await take(name, 'b');
  t.same(taken.body.gap, { reason: 'expired', after: from, until: from + 3 });
  t.same(offsetsOf(taken), fresh.slice(3));
  t.match((await as('GET', `/${name}`)).body, { gap: { after: from, until: from + 3 }, lag: 1 });
  const late = await make({ start: 0 });
  const first = await take(late, 'a');
  t.same(first.body.gap, { reason: 'expired', after: 0, until: from + 3 });
  t.same(offsetsOf(first), fresh.slice(3));
  t.equal((await take(late, 'a')).body.gap, null, 'once');
});

t.test('members of two processes share the events, and order is kept per question', async (t) => {
  const second = await startApp(t, { roles: ['api'], stores: app.stores });
  const other = world.makeCaller(second.call);
  const questions_of_log = fc.array(fc.integer({ min: 1, max: 4 }), {
    minLength: 1,
    maxLength: 40,
  });
  const shares = fc.asyncProperty(questions_of_log, fc.nat(), async (questions, seed) => {
    const name = await make();
    const entries = await write(questions);
    const random = makeRandom(seed);
    const isOneIn = (most: number): boolean => random() < 1 / most;
    const sent = new Set<number>();
    const done: number[] = [];
    const isInOrder = (offset: number, batch: readonly number[]): boolean => {
      const { question_id } = log.entries[offset - 1] ?? {};
      const before = entries.filter(
        (one) => one.question_id === question_id && one.offset < offset,
      );
      return before.every((one) => sent.has(one.offset) || batch.includes(one.offset));
    };
    const work = async (member: string, call: typeof as): Promise<void> => {
      while (done.length < entries.length) {
        const offsets = offsetsOf(await take(name, member, { limit: 4 }, call));
        if (!offsets.every((one) => isInOrder(one, offsets))) throw new Error(`${offsets}`);
        for (const offset of offsets) {
          // Occasionally a member forgets the events that it holds.
          if (isOneIn(5)) break;
          sent.add(offset);
          const { acknowledged } = (await ack(name, member, [offset], call)).body;
          if (acknowledged.length === 0) break;
          done.push(offset);
        }
        if (isOneIn(3)) await endLeases();
      }
    };
    await Promise.all([work('a', as), work('b', other), work('c', other), work('d', as)]);
    return done.sort((a, b) => a - b).join() === pluck(entries, 'offset').join();
  });
  await holds(t, shares, { numRuns: 12 });
});
