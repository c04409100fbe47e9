import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, makeKeys, prepareOnBed } from './env/bed.js';
import { runHttpRound } from './env/http-round.js';
import { rssMb, startMeter } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { seedPredictions } from './env/seed-predictions.js';
import { openPool } from './env/stores.js';
import { type ServiceTarget, startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';

/**
 * Charts as PNG that nobody has asked for before, every third of the largest size: what they take
 * of the api process beyond its memory at the start, and what readers of the forum notice.
 */

const agents = 200;
const questions = 40;
const thousand = 1_000;
const quick_count = 200;
const at_once = 4;
const read_rate = 200;
const read_connections = 16;

interface World {
  readonly bed: Bed;
  readonly target: ServiceTarget;
  /** MB of the api process before its first picture. */
  readonly start_mb: number;
  /** A picture that was not asked for yet. */
  nextPath(): string;
}

const makePaths = (): (() => string) => {
  let n = 0;
  return () => {
    n += 1;
    const size = `width=${n % 3 === 0 ? 1_200 : 320 + (n % 480)}&points=${2 + (n % 999)}`;
    return `/api/questions/${questionId(n % questions)}/chart.png?${size}`;
  };
};

/** Some at once, one after the other, until it is enough; how many. */
const draw = async (world: World, isEnough: (drawn: number) => boolean): Promise<number> => {
  let drawn = 0;
  const drawInTurn = async (): Promise<void> => {
    while (!isEnough(drawn)) {
      drawn += 1;
      const answer = await fetch(`http://127.0.0.1:${world.target.port}${world.nextPath()}`);
      const { byteLength } = await answer.arrayBuffer();
      if (answer.status !== 200 || byteLength < 1_000) {
        throw new Error(`A picture came with status ${answer.status} and ${byteLength} bytes.`);
      }
    }
  };
  await Promise.all(Array.from({ length: at_once }, drawInTurn));
  return drawn;
};

const makePictures = (world: World): Subject => ({
  name: 'pictures',
  async round() {
    const count = world.bed.context.quick ? quick_count : thousand;
    const meter = startMeter(world.target.groups, world.target.watched);
    const started_ms = performance.now();
    const drawn = await draw(world, (so_far) => so_far >= count);
    const seconds = (performance.now() - started_ms) / 1_000;
    const metered = meter.stop();
    const over_start_mb = Math.max(0, (metered['rss_mb'] ?? 0) - world.start_mb);
    return { per_second: drawn / seconds, over_start_mb, ...metered };
  },
});

const makeReader = (world: World, is_beside: boolean): Subject => {
  const { bed, target } = world;
  const read = async (seconds: number): Promise<Sample> => {
    const drawMeanwhile = async (): Promise<Sample> => {
      const until_ms = performance.now() + seconds * 1_000;
      return { pictures: await draw(world, () => performance.now() >= until_ms) };
    };
    const { sample } = await runHttpRound({
      ...{ target, stores: bed.stores, loader: bed.loader },
      job: {
        source: new URL('./load/forum-reads.js', import.meta.url).href,
        source_options: { questions, count: Math.ceil(read_rate * seconds * 1.05) + 100 },
        ...{ connections: read_connections, seconds, rate: read_rate, wanted_status: 200 },
      },
      ...(is_beside ? { during: drawMeanwhile } : {}),
    });
    return sample;
  };
  return {
    name: is_beside ? 'reader_beside_pictures' : 'reader_alone',
    warmUp: async () => void (await read(2)),
    round: () => read(bed.context.seconds),
  };
};

const prepareWorld = async (bed: Bed): Promise<World> => {
  await bed.stores.createDatabase('service');
  const sql = openPool(bed.stores.urlOf('service'), 'bench');
  await seed(sql, { keys: makeKeys(agents), questions });
  await seedPredictions(sql, { agents, questions, from_ms: Date.now() - 10 * 86_400_000 });
  await sql.end({ timeout: 5 });
  const target = await startServiceTarget(bed, { LIMIT_PICTURES: '100000000' });
  // What follows the start of a process, such as its first garbage, is over by then.
  await delay(3_000);
  const start_mb = Math.max(...target.watched().map(rssMb));
  return { bed, target, start_mb, nextPath: makePaths() };
};

export const pictures: Bench = {
  name: 'pictures',
  question: `What do ${thousand} different pictures cost an api process and its other readers?`,
  reduce: { rss_mb: 'max', over_start_mb: 'max' },
  ratios: {
    p99_beside_over_alone: ratioOf('reader_beside_pictures', 'reader_alone', 'p99_ms'),
  },
  figures: { over_start_mb: figureOf('pictures', 'over_start_mb') },
  prepare: prepareOnBed(async (bed) => {
    const world = await prepareWorld(bed);
    return {
      stages: [
        () => ({ subjects: [makePictures(world)] }),
        () => ({ subjects: [makeReader(world, false), makeReader(world, true)] }),
      ],
    };
  }),
};
