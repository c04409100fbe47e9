import { test } from 'tap';
import type { Sql } from '../../../src/db/client.js';
import { createSigner } from '../../../src/process/start.js';
import { makeWorld } from './world.js';

const lost = Object.assign(new Error('the answer was lost'), { code: 'CONNECTION_CLOSED' });

/** Carries out every transaction; the answer of the first that claims something is lost. */
const losingOne = (sql: Sql): { readonly sql: Sql; readonly count: () => number } => {
  let count = 0;
  const begin = async (work: never): Promise<unknown> => {
    const result: unknown = await sql.begin(work);
    const leased = Array.isArray(result) && (result[0] as object | undefined);
    if (count > 0 || !leased || !('lease_id' in leased)) return result;
    count += 1;
    throw lost;
  };
  const proxy = new Proxy(sql, {
    get: (target, name) => (name === 'begin' ? begin : Reflect.get(target, name)),
  });
  return { sql: proxy, count: () => count };
};

test('what a claim holds whose answer was lost is sent at once, not when its lease is over', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/hook' });
  await world.record({}, {}, {});
  const losing = losingOne(world.deps.sql);
  const signer = createSigner(
    { ...world.deps, sql: losing.sql },
    { webhooks: world.webhooks, sweep_ms: 50, lease_ms: 60_000 },
  );
  t.teardown(() => signer.stop());
  await signer.start();
  const deliveries = await world.settled(3, 'delivered');
  t.equal(losing.count(), 1, 'one claim was lost');
  t.equal(world.receiver.received.length, 3, 'nothing was sent twice');
  t.same(
    deliveries.map(({ attempts }) => attempts),
    [1, 1, 1],
  );
});
