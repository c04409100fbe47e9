import { isCluster } from '../../src/redis/client.js';
import { t } from '../help/tap.js';
import {
  type Fault,
  fault_limits,
  is_long,
  lastFor,
  startWorld,
  streamLosses,
  surviveAll,
  untilDelivered,
} from './world.js';

/** Redis ends, is paused, or loses its data, under load. */

t.setTimeout(fault_limits.timeout);

const flushAgainAndAgain: Fault['strike'] = async ({ service, load }) => {
  const { redis } = service;
  for (let n = 0; n < 3; n += 1) {
    const nodes = isCluster(redis) ? redis.nodes('master') : [redis];
    await Promise.all(nodes.map((node) => node.flushall()));
    await load.more(50);
  }
};

const loseStream: Fault['strike'] = async ({ service, load }) => {
  for (const lose of streamLosses(service)) {
    await lose();
    await load.more(50);
  }
};

/** Predictions continue. Without Redis, signers find deliveries by polling Postgres. */
const standStill: Fault['strike'] = async (world) => {
  const from_ms = performance.now();
  const wake = world.service.pause('Redis');
  try {
    await world.load.more(is_long ? 300 : 60, 60_000);
    await untilDelivered(world);
    await lastFor(from_ms, 60_000);
  } finally {
    wake();
  }
};

const faults: Readonly<Record<string, Fault>> = {
  'kill -9, and back with what it kept': { strike: ({ service }) => service.kill('Redis') },
  'it stands still': { per_second: 50, strike: standStill },
  'FLUSHALL again and again': { strike: flushAgainAndAgain },
  'the stream, its group and its tail are lost': { strike: loseStream },
};

t.test('faults of Redis under load', fault_limits, async (t) => {
  await surviveAll(t, await startWorld(t), faults);
});
