import type { Test } from 'tap';
import { type Follower, findAstray, followTopics, type Wish } from './followers.js';
import { startLoad } from './load.js';
import { startService, type TestService } from './service.js';
import { until } from './until.js';

/**
 * Many clients follow topics of a service with several api processes while predictions flow;
 * meanwhile things are killed, one after the other. In the end each client has been sent exactly
 * what Postgres holds of its topic, in order, without a hole and without a repeat.
 */

export interface Strike {
  readonly name: string;
  readonly strike: (service: TestService) => Promise<unknown>;
}

export interface SocketsFault {
  readonly clients: number;
  readonly processes: number;
  readonly per_second: number;
  /** Predictions before the first strike and after each. */
  readonly predictions: number;
  readonly strikes: readonly Strike[];
}

export const strikes: readonly Strike[] = [
  { name: 'api', strike: (service) => service.kill('api').back },
  { name: 'relay', strike: (service) => service.kill('relay').back },
  { name: 'Redis', strike: (service) => service.kill('Redis').back },
  { name: 'Redis, empty', strike: (service) => service.kill('Redis', { empty: true }).back },
];

/** Every tenth follows everything, every tenth with a filter, the others one question each. */
const wishOf = ({ questions }: TestService, n: number): Wish => {
  if (n % 10 === 0) return { topic: 'all' };
  if (n % 10 === 1) return { topic: 'all', min_confidence: 60 + (n % 3) * 10 };
  return { topic: `question:${questions[n % questions.length]?.id}` };
};

export const surviveFollowed = async (t: Test, fault: SocketsFault): Promise<void> => {
  const { clients, processes, per_second, predictions } = fault;
  const service = await startService(t, { env: { API_PROCESSES: String(processes) } });
  const wishes = Array.from({ length: clients }, (_, n) => wishOf(service, n));
  const followers = await followTopics(t, service.port, wishes);
  const load = startLoad({ ...service, per_second });
  await load.reach(predictions, 60_000);
  for (const { name, strike } of fault.strikes) {
    const ends = countEnds(followers);
    await strike(service);
    await load.reach(load.acknowledged.length + predictions, 90_000);
    t.comment(`${name}: ${countEnds(followers) - ends} connections ended`);
  }
  await load.stop();
  t.same(load.odd, [], 'no answer that no client should get');
  let astray: readonly string[] = ['nothing was looked at'];
  const look = async (): Promise<boolean> => {
    astray = await findAstray(service.sql, followers);
    return astray.length === 0;
  };
  await until('all have all', look, 60_000).catch(() => undefined);
  t.same(astray.slice(0, 5), [], 'each client has what Postgres has');
  const nodes = new Set(followers.flatMap((follower) => follower.nodes));
  t.equal(nodes.size, processes, 'clients were spread over all processes');
  const heard = followers.reduce((sum, { offsets }) => sum + offsets.length, 0);
  t.comment(
    `${clients} clients, ${load.acknowledged.length} predictions, ${heard} events heard, ` +
      `${countEnds(followers)} connections ended: ${tally(followers)}`,
  );
  const died = service.troubles().filter(({ level }) => level >= 60);
  t.same(died, [], 'no process died of an error');
};

const countEnds = (followers: readonly Follower[]): number =>
  followers.reduce((sum, { ends }) => sum + ends.length, 0);

const tally = (followers: readonly Follower[]): string => {
  const counts: Record<string, number> = {};
  for (const code of followers.flatMap(({ ends }) => ends)) counts[code] = (counts[code] ?? 0) + 1;
  return JSON.stringify(counts);
};
