import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { migrate } from '../src/db/migrate.js';
import { startRedis } from '../src/process/embedded/redis.js';
import { type Bed, prepareOnBed } from './env/bed.js';
import { findInstalled, startInstalled } from './env/installed-postgres.js';
import { treeOf } from './env/processes.js';
import { type FanoutTarget, keepRate, makeRound, startServiceFanout } from './fanout.js';
import { type Bench, ratioOf, type Subject } from './frame/types.js';
import { startSubscribers } from './load/subscriber.js';

/**
 * From the commit of an event to its frame at the client, on a Postgres of the machine with its
 * installed settings and on the embedded one: two services, each with stores of its own, and the
 * same events. Few subscribers, so that what is measured is the way and not the number of frames.
 */

const subscribers = 100;

/** The same bed with another Postgres, a Redis beside it, and a folder of its own. */
const moveBed = async (bed: Bed, bin: string): Promise<Bed> => {
  const { context, onClose } = bed;
  const folder = path.join(context.folder, 'external');
  mkdirSync(folder);
  const postgres = await startInstalled(bin);
  onClose(postgres.stop);
  const redis = await startRedis({ data_dir: folder, say: context.tell });
  onClose(redis.stop);
  const { admin, urlOf } = postgres;
  const createDatabase = async (name: string): Promise<void> => {
    await admin.unsafe(`create database ${name} owner forum`);
    await migrate(urlOf(name));
  };
  const pids = {
    postgresPids: () => treeOf(postgres.pid),
    redisPids: () => treeOf(redis.pid),
  };
  const stores = { ...bed.stores, ...pids, redis_url: redis.url, admin, urlOf, createDatabase };
  return { ...bed, context: { ...context, folder }, stores };
};

export const external: Bench = {
  name: 'external',
  question: 'How much later do events come with a Postgres as Debian installs it?',
  ratios: {
    p50_external_over_embedded: ratioOf('external', 'embedded', 'p50_ms'),
    p99_external_over_embedded: ratioOf('external', 'embedded', 'p99_ms'),
  },
  prepare: prepareOnBed(async (bed) => {
    const bin = findInstalled();
    if (bin === null) {
      return {
        stages: [],
        missing: [{ name: 'external', why: 'no package postgresql-N is here' }],
      };
    }
    const group = startSubscribers();
    bed.onClose(group.close);
    const subjectOf = (on: Bed, target: FanoutTarget): Subject => {
      const run = makeRound(on, group, target);
      const quick = bed.context.quick;
      return {
        name: target.name,
        warmUp: async () => void (await run(keepRate, quick ? 1 : 3)),
        round: () => run(keepRate),
      };
    };
    const own = await startServiceFanout(bed);
    const bed_outside = await moveBed(bed, bin);
    const outside = await startServiceFanout(bed_outside);
    const subjects = [
      subjectOf(bed, { ...own, name: 'embedded', subscribers }),
      subjectOf(bed_outside, { ...outside, name: 'external', subscribers }),
    ];
    return { stages: [() => ({ subjects })] };
  }),
};
