import { test } from 'tap';
import type { Tx } from '../../src/db/client.js';
import { webhook_queries } from '../../src/tools/verify/deliveries-store.js';
import { findBy } from '../../src/tools/verify/parts.js';
import { makeWorld } from '../features/webhooks/world.js';

/** Deliveries that contradict the log or themselves are found, and nothing else. */

const look = (tx: Tx) => findBy(tx, webhook_queries, '');

const breakages: readonly (readonly [RegExp, string])[] = [
  [/has no delivery of event/, 'delete from deliveries where event_offset = 2'],
  [/which it does not want/, "update webhooks set filter_categories = '{technology}'"],
  [/which the log has not/, 'delete from events where "offset" = 2'],
  [/are of webhook .*, which there is not/, 'delete from webhooks'],
  [/an attempt at event .* has no delivery/, 'delete from deliveries where event_offset = 1'],
  [/is delivered after 1 attempts, and has 0 without a 2xx/, 'delete from attempts'],
  [/is delivered .* has 1 without a 2xx/, 'update attempts set status = 500'],
  [/not made of its webhook and event/, 'update deliveries set id = gen_random_uuid()'],
  [
    /a gap of webhook .* leaves out 9 events from 1 to 2/,
    `update deliveries
    set state = 'gap', gap_until_offset = 2, gap_count = 9, gap_reason = 'age', delivered_at = null
    where event_offset = 1`,
  ],
  [
    /is off and has 1 deliveries to be sent/,
    `update webhooks set active = false, updated_at = now() - interval '1 hour';
    update deliveries
    set state = 'waiting', delivered_at = null, queued_at = now() - interval '1 hour'
    where event_offset = 1`,
  ],
  [/is on and says: x/, "update webhooks set disabled_reason = 'x'"],
  [/are planned up to 9, and the log has 2/, 'update delivery_plan set planned_offset = 9'],
  [
    /a range is planned from 3/,
    'insert into planned_ranges (first_offset, last_offset) values (3, 4)',
  ],
  [
    /a replay is of webhook/,
    `insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (gen_random_uuid(), gen_random_uuid(), 0, 1, 1)`,
  ],
];

test('every kind of difference is found, and nothing where all is right', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  await world.addHook();
  await world.record({}, {});
  await world.startSigner();
  await world.settled(2, 'delivered');
  // Long before the events, so that nothing may be excused.
  await sql`update webhooks set updated_at = now() - interval '1 hour'`;
  t.same(await sql.begin(look), []);

  const undo = new Error('undo');
  for (const [what, breaking] of breakages) {
    let found: readonly string[] = [];
    await sql
      .begin(async (tx) => {
        await tx.unsafe(breaking);
        found = await look(tx);
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
    t.ok(
      found.some((line) => what.test(line)),
      `${what} → ${found.join(' | ')}`,
    );
  }
});
