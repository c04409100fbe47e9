import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { makeKeyBudget } from './env/key-budget.js';
import { best_connections, block, type LoadOptions, makeLoad } from './env/load-rounds.js';
import { questionId, seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import { startServiceTarget } from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import { type Bench, type BenchContext, ratioOf, type Subject } from './frame/types.js';
import { countPredictions } from './predict.js';

/**
 * Durable predictions per second by calls over websockets, beside the same requests over HTTP: one
 * service, the same agents in the same order, each agent with one connection of its own.
 *
 * `http`, `sockets`: a fleet of many agents, as many requests in flight either way, so that the
 * difference is what a request costs. `new_http`: the same with a connection for each request, as
 * agents have that come less often than every ten seconds, after which the service closes what is
 * idle; a socket stays. `burst_…`: a few agents come at once, each with what a minute
 * allows it. A socket takes all of it; HTTP/1.1 has one request in flight a connection, so an agent
 * waits for each answer, or opens more connections (`burst_http_6`: six, as a browser does).
 */

const agents = 4_000;
/** The service allows 60 predictions a minute and key; rounds wait rather than meet it. */
const key_budget = 54;
/** For preparing the requests. */
const at_most = 12_000;
/** Below the limit of sockets of one address; the load has as many addresses as it needs. */
const an_address = 160;
const burst_agents = 32;
/** A burst is over long before. */
const burst_seconds = 30;

/** Rounds and the one that warms up. */
const roundsOf = ({ rounds }: BenchContext): number => rounds + 1;

const over = {
  http: new URL('./load/predict-requests.js', import.meta.url),
  sockets: new URL('./load/call-requests.js', import.meta.url),
} as const;

type Ways = Pick<
  LoadOptions,
  'source' | 'sockets' | 'connections' | 'own_connections' | 'new_connections'
>;

const fleetWays = (connections: number): Readonly<Record<string, Ways>> => ({
  http: { source: over.http, connections, own_connections: agents },
  new_http: { source: over.http, connections, new_connections: true },
  sockets: { source: over.sockets, connections, sockets: { an_address } },
});

const burstWays: Readonly<Record<string, Ways>> = {
  burst_http: { source: over.http, connections: burst_agents },
  burst_http_6: { source: over.http, connections: 6 * burst_agents },
  burst_sockets: {
    ...{ source: over.sockets, sockets: { an_address } },
    connections: burst_agents * key_budget,
  },
};
const ways = 3 + Object.keys(burstWays).length;

const makeStages = async (bed: Bed, keys_file: string) => {
  const { context } = bed;
  const target = await startServiceTarget(bed);
  const budget = makeKeyBudget(key_budget);
  let count = 0;
  const loadOf = (way: Ways, more: Pick<LoadOptions, 'agents' | 'first_agent' | 'burst'>) => {
    const n = count++;
    return makeLoad(bed, target, {
      ...{ ...way, ...more, keys_file, wanted_status: 201, idOf: questionId },
      first_subject: n * block * roundsOf(context),
      first_text: n * 10_000_000,
      countRows: (question_ids) => countPredictions(target.sql, question_ids),
      settle: async () => ({ hand_off_s: await waitUntilEmpty(target.sql, ['outbox']) }),
      ...(more.burst === undefined ? { budget } : {}),
    });
  };
  const fleet = Object.entries(fleetWays(context.connections ?? best_connections)).map(
    ([name, way]): Subject => {
      const run = loadOf(way, { agents });
      return {
        name,
        async warmUp() {
          await run({ seconds: context.quick ? 1 : 4, at_most });
        },
        round: () => run({ seconds: context.seconds, at_most }),
      };
    },
  );
  const bursts = Object.entries(burstWays).map(([name, way], n): Subject => {
    const first_agent = agents + n * burst_agents * roundsOf(context);
    const run = loadOf(way, { agents: burst_agents, first_agent, burst: key_budget });
    const round = () => run({ seconds: burst_seconds, at_most });
    return { name, warmUp: async () => void (await round()), round };
  });
  return [() => ({ subjects: fleet }), () => ({ subjects: bursts })];
};

const fillDatabase = async ({ context, stores }: Bed): Promise<string> => {
  const rounds = roundsOf(context);
  const keys = makeKeys(agents + Object.keys(burstWays).length * burst_agents * rounds);
  await stores.createDatabase('service');
  const sql = openPool(stores.urlOf('service'), 'bench');
  await seed(sql, { keys, questions: ways * block * rounds });
  await sql.end({ timeout: 5 });
  return writeKeys(context, keys);
};

export const calls: Bench = {
  name: 'calls',
  question: 'How many durable predictions per second pass by calls over websockets?',
  reduce: { rss_mb: 'max' },
  ratios: {
    sockets_over_http: ratioOf('sockets', 'http'),
    sockets_over_new_http: ratioOf('sockets', 'new_http'),
    burst_sockets_over_http: ratioOf('burst_sockets', 'burst_http'),
    burst_sockets_over_http_6: ratioOf('burst_sockets', 'burst_http_6'),
  },
  prepare: prepareOnBed(async (bed) => {
    const keys_file = await fillDatabase(bed);
    return { stages: await makeStages(bed, keys_file) };
  }),
};
