import { readMostBehind, readOldestSeconds } from '../../../src/features/consumers/index.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { serveConsumers } from './world.js';

t.test('operators see who is most behind, and how old its oldest event is', async (t) => {
  const { app, as, take, ack, write } = await serveConsumers(t);
  const read = async () => [await readMostBehind(app.sql), await readOldestSeconds(app.sql)];
  t.same(await read(), [0, 0], 'without a consumer');
  await as('PUT', '/ahead', {});
  await as('PUT', '/behind', {});
  const offsets = pluck(await write([1, 2, 3]), 'offset') as number[];
  t.same(await read(), [3, 0], 'nothing was offered yet');
  await ack('ahead', 'm', pluck((await take('ahead', 'm')).body.events, 'offset') as number[]);
  await take('behind', 'm');
  await ack('behind', 'm', offsets.slice(0, 1));
  await app.sql`
    update events set recorded_at = now() - interval '1 hour' where "offset" = ${offsets[1] ?? 0}`;
  const [behind, seconds = 0] = await read();
  t.equal(behind, 2, 'offered and not acknowledged');
  t.ok(seconds >= 3_600 && seconds < 3_700, `${seconds}`);
  await ack('behind', 'm', offsets.slice(1));
  t.same(await read(), [0, 0]);
});
