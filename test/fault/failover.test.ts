import type { Test } from 'tap';
import type { TestService } from '../help/service.js';
import { type Pair, startPair } from '../help/standby.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import { type Fault, fault_limits, is_long, startWorld, surviveAll } from './world.js';

/**
 * Under a mixed load, a primary turns read-only, is restarted, or dies and is replaced by its
 * synchronous standby. Meanwhile, calls may get 503 but never 500. No acknowledged write is lost,
 * and the service finds the new primary on its own.
 */

t.setTimeout(fault_limits.timeout);

const recovery_ms = 10_000;
const min_ms = is_long ? 30_000 : 700;

const last = async (ms: number): Promise<void> => {
  const from_ms = performance.now();
  await until('its time', () => performance.now() - from_ms >= ms, ms + 10_000);
};

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

let calls = 0;

/** One call of each kind, so that every path to Postgres is used. */
const callsOf = ({ questions }: TestService): readonly Asked[] => {
  calls += 1;
  const question = `/api/questions/${questions[calls % questions.length]?.id}`;
  const content = `Traffic was seen ${calls} times so far, which is more than a month ago.`;
  return [
    { method: 'POST', path: '/api/register', body: { name: `failover ${calls}`, model: 'gpt-4o' } },
    { method: 'POST', path: `${question}/comments`, body: { content } },
    { method: 'POST', path: '/api/auth/login', body: { email: 'a@b.dev', password: 'none of it' } },
    { method: 'GET', path: '/api/questions' },
    { method: 'GET', path: question },
    { method: 'GET', path: `${question}/predictions` },
    { method: 'GET', path: `${question}/consensus` },
    { method: 'GET', path: '/api/leaderboard' },
    { method: 'GET', path: '/api/me' },
    { method: 'GET', path: '/api/events?after=0&limit=10' },
    { method: 'GET', path: '/questions' },
    { method: 'GET', path: '/health' },
  ];
};

/** Makes mixed calls while the work lasts, and returns how many were refused temporarily. */
const callMeanwhile = async (t: Test, service: TestService, work: () => Promise<unknown>) => {
  const counts: Record<string, number> = {};
  const wrong: string[] = [];
  let is_over = false;
  const ask = async ({ method, path, body }: Asked, key: string): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'x-api-key': key };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(15_000);
    const answer = await fetch(service.url + path, { method, headers, signal, ...sent });
    const text = await answer.text();
    counts[answer.status] = (counts[answer.status] ?? 0) + 1;
    const is_right =
      answer.status < 500 || (answer.status === 503 && answer.headers.get('retry-after') !== null);
    if (!is_right && path !== '/health') wrong.push(`${method} ${path}: ${answer.status} ${text}`);
  };
  const client = async (kind: number): Promise<void> => {
    while (!is_over) {
      const call = callsOf(service)[kind] as Asked;
      const key = service.agents[calls % service.agents.length]?.key ?? '';
      await ask(call, key).catch((error) => wrong.push(`${call.path}: ${error}`));
      await last(20);
    }
  };
  const clients = callsOf(service).map((_, kind) => client(kind));
  await work();
  is_over = true;
  await Promise.all(clients);
  t.comment(`statuses: ${JSON.stringify(counts)}`);
  t.same(wrong.slice(0, 5), [], 'no call was answered 500, or 503 without Retry-After');
  return counts[503] ?? 0;
};

/** Checks that predictions are stored again within `recovery_ms`. */
const untilStored = async (t: Test, load: Parameters<Fault['strike']>[0]['load']) => {
  const from_ms = performance.now();
  await load.more(20, 60_000);
  const passed_ms = Math.round(performance.now() - from_ms);
  t.ok(passed_ms < allow(recovery_ms), `stored again after ${passed_ms} ms`);
};

const makeFaults = ({ primary, standby }: Pair): Readonly<Record<string, Fault>> => ({
  'the primary turns read-only': {
    async strike({ service, load }, t) {
      const { admin } = primary;
      const refused = await callMeanwhile(t, service, async () => {
        await admin`alter system set default_transaction_read_only = on`;
        await admin`select pg_reload_conf()`;
        await last(min_ms);
        await admin`alter system reset default_transaction_read_only`;
        await admin`select pg_reload_conf()`;
        await untilStored(t, load);
      });
      t.ok(refused > 0, 'it was noticed');
    },
  },
  'the primary is restarted': {
    async strike({ service, load }, t) {
      // This outage is so short that retries within the service may hide it.
      await callMeanwhile(t, service, async () => {
        await primary.restart();
        await untilStored(t, load);
      });
    },
  },
  'the primary dies and the standby is promoted': {
    async strike({ service, load }, t) {
      const refused = await callMeanwhile(t, service, async () => {
        await primary.kill();
        await last(min_ms);
        await standby.admin`select pg_promote()`;
        await untilStored(t, load);
      });
      t.ok(refused > 0, 'it was noticed');
      const [row] = await standby.admin<{ writes: number }[]>`
        select count(*)::integer as writes from pg_stat_activity
        where application_name like 'prediction-forum api-%'`;
      t.ok((row?.writes ?? 0) > 0, 'the api is connected to the new primary');
    },
  },
});

t.test('the primary and its standby, under load', fault_limits, async (t) => {
  const pair = await startPair(t, { synchronous: true });
  const world = await startWorld(t, {
    env: { DATABASE_URL: pair.url, LIMIT_COMMENTS: '100000000', LIMIT_LOGIN: '100000000' },
    stores: { database_url: pair.url },
  });
  const faults = Object.entries(makeFaults(pair)).map(([name, fault]) => [
    name,
    { recovery_ms, ...fault },
  ]);
  await surviveAll(t, world, Object.fromEntries(faults));
});
