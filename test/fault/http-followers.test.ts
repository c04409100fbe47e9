import { test } from 'tap';
import { survive } from '../help/fault.js';
import { followByCalls, followByStream, type HttpFollower } from '../help/http-followers.js';
import { until } from '../help/until.js';

test('kill -9 of the relay and of the api: every HTTP transport gives what Postgres has', async (t) => {
  const followers: Record<string, HttpFollower> = {};
  const reach = (count: number) =>
    until('all have as many', () =>
      Object.values(followers).every(({ heard }) => heard.length >= count),
    );
  const { service, load } = await survive(t, {
    strike: async (world) => {
      const { url } = world.service;
      followers['calls'] = followByCalls(t, url);
      followers['a stream'] = followByStream(t, url);
      await reach(200);
      await world.service.kill('relay').back;
      await world.load.reach(world.load.acknowledged.length + 100);
      await world.service.kill('api').back;
    },
  });
  const recorded = await service.sql<{ offset: number; id: string }[]>`
    select "offset", id from events order by "offset"`;
  t.ok(recorded.length >= load.acknowledged.length);
  await reach(recorded.length);
  const wanted = recorded.map(({ offset, id }) => `${offset} ${id}`);
  for (const [name, { heard, odd, failures }] of Object.entries(followers)) {
    t.same(odd, [], `${name}: no hole and no repeat`);
    t.same(
      heard.map(({ offset, id }) => `${offset} ${id}`),
      wanted,
      `${name} everything came`,
    );
    t.comment(`${name}: ${heard.length} events, ${failures} connections ended otherwise`);
  }
});
