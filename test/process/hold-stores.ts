import { startPostgres } from '../../src/process/embedded/postgres.js';
import { startRedis } from '../../src/process/embedded/redis.js';

/** Starts both stores in the folder, prints one line of JSON, and stays until it is killed. */
const options = { data_dir: process.argv[2] as string, say: () => undefined };
const [pg, redis] = await Promise.all([startPostgres(options), startRedis(options)]);
console.log(JSON.stringify({ postgres: pg.pid, redis: redis.pid }));
process.stdin.resume();
