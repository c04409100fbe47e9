import { makeReasoning } from '../../bench/load/predict-texts.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { activeRelay, type Fault, fault_limits, is_long, startWorld, surviveAll } from './world.js';

/**
 * Kills each part of a service with SIGKILL, under load. The service has two api processes.
 * Meanwhile, clients follow the log over every transport, and single topics over websockets.
 */

t.setTimeout(fault_limits.timeout);

const killsOfRelay: Fault['strike'] = async ({ service }) => {
  const from_ms = performance.now();
  for (let kill = 0; kill < (is_long ? 5 : 3); kill += 1) {
    await until('2 s have passed', () => performance.now() >= from_ms + kill * 2_000);
    process.kill((await activeRelay(service)).pid, 'SIGKILL');
  }
};

const killsOfSigner: Fault['strike'] = async ({ service, load }, t) => {
  for (let kill = 1; kill <= 3; kill += 1) {
    const more = Math.floor(Math.random() * 100);
    t.comment(`kill ${kill} after ${more} more predictions`);
    await load.more(more);
    await service.kill('signer');
  }
};

const faults: Readonly<Record<string, Fault>> = {
  'the whole service, and a new start': {
    is_noticed: true,
    strike: ({ service }) => service.killAll(),
  },
  'the signer at random points': { strike: killsOfSigner },
  Postgres: { strike: ({ service }) => service.kill('Postgres') },
  'Redis, which comes back empty': {
    strike: ({ service }) => service.kill('Redis', { empty: true }),
  },
  'one of two api processes': { strike: ({ service }) => service.kill('api', { only_one: true }) },
  'the relay, and then every api process': {
    is_noticed: true,
    strike: async ({ service, load }) => {
      await service.kill('relay');
      await load.more(50);
      await service.kill('api');
    },
  },
  'the relay again and again, 2 s apart': { recovery_ms: 5_000, strike: killsOfRelay },
};

t.test('kill -9 under load', fault_limits, async (t) => {
  const processes = is_long ? 3 : 2;
  const world = await startWorld(t, {
    followers: is_long ? 200 : 30,
    env: { API_PROCESSES: String(processes), LOG_LEVEL: 'info' },
  });
  const { service, listeners } = world;
  for (let round = 0; round < (is_long ? 2 : 1); round += 1) await surviveAll(t, world, faults);
  const nodes = new Set(listeners.flatMap((listener) => [...listener.nodes]));
  t.equal(nodes.size, processes, 'followers were spread over all api processes');

  await t.test('between commit and answer: the same body gets the first result', async (t) => {
    const { url, sql } = service;
    const [agent, question] = [service.agents[0], service.questions[0]];
    const predict = () =>
      fetch(`${url}/api/questions/${question?.id}/predict`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': agent?.key ?? '' },
        body: JSON.stringify({ prediction: true, confidence: 80, reasoning: makeReasoning(1e6) }),
      });
    let back: Promise<void> = Promise.resolve();
    let broken: Promise<Response | null> = Promise.resolve(null);
    await sql.unsafe(`
      create function wait_at_commit() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(42); return null; end';
      create constraint trigger wait_at_commit after insert on predictions
        deferrable initially deferred for each row execute function wait_at_commit()`);
    // The commit waits for this lock, and then completes without its api process.
    await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(42)`;
      broken = predict().catch(() => null);
      await until('the commit waits', async () => {
        // Uses another connection, because the view does not change within a transaction.
        const waiting = await sql`
          select from pg_stat_activity
          where wait_event_type = 'Lock' and application_name like 'prediction-forum api-%'`;
        return waiting.length > 0;
      });
      back = service.kill('api');
    });
    // If there is a proxy, it answers 502.
    t.match((await broken)?.status ?? 502, 502, 'no answer');
    const [stored] = await until('it is stored all the same', async () => {
      const rows = await sql<{ id: string }[]>`
        select id from predictions where agent_id = ${agent?.id ?? ''}`;
      return rows.length > 0 && rows;
    });
    await back;
    const response = await predict();
    t.equal(response.status, 200);
    t.equal(response.headers.get('idempotency-replayed'), 'true');
    const { prediction } = (await response.json()) as { prediction: { id: string } };
    t.equal(prediction.id, stored?.id);
  });
});
