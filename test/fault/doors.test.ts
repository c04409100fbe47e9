import { test } from 'tap';
import { type DoorListener, listenByCalls, listenByStream } from '../help/door-listeners.js';
import { survive } from '../help/fault.js';
import { until } from '../help/until.js';

test('kill -9 of the relay and of the api: every door tells what Postgres has', async (t) => {
  const doors: Record<string, DoorListener> = {};
  const hear = (count: number) =>
    until('all doors tell', () => Object.values(doors).every(({ heard }) => heard.length >= count));
  const { service, load } = await survive(t, {
    strike: async (world) => {
      const { url } = world.service;
      doors['calls'] = listenByCalls(t, url);
      doors['a stream'] = listenByStream(t, url);
      await hear(200);
      await world.service.kill('relay').back;
      await world.load.reach(world.load.acknowledged.length + 100);
      await world.service.kill('api').back;
    },
  });
  const recorded = await service.sql<{ offset: number; id: string }[]>`
    select "offset", id from events order by "offset"`;
  t.ok(recorded.length >= load.acknowledged.length);
  await hear(recorded.length);
  const wanted = recorded.map(({ offset, id }) => `${offset} ${id}`);
  for (const [name, { heard, odd, failures }] of Object.entries(doors)) {
    t.same(odd, [], `${name}: no hole and no repeat`);
    t.same(
      heard.map(({ offset, id }) => `${offset} ${id}`),
      wanted,
      `${name} told everything`,
    );
    t.comment(`${name}: ${heard.length} events, ${failures} connections ended otherwise`);
  }
});
