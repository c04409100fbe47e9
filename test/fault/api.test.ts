import { test } from 'tap';
import { makeReasoning } from '../../bench/load/predict-texts.js';
import { survive } from '../help/fault.js';
import { startService } from '../help/service.js';
import { until } from '../help/until.js';

test('kill -9 of the only api process under load', async (t) => {
  const { load } = await survive(t, {
    strike: async ({ service }) => service.kill('api').back,
  });
  t.ok(
    load.acknowledged.some(({ tries }) => tries > 1),
    'clients noticed',
  );
});

test('kill -9 of one of two api processes under load', async (t) => {
  await survive(t, {
    service: { env: { API_PROCESSES: '2' } },
    strike: async ({ service }) => service.kill('api').back,
  });
});

test('kill -9 between commit and answer: the same body gets the first result', async (t) => {
  const service = await startService(t, { agents: 1, questions: 1 });
  const { url, sql } = service;
  const [agent, question] = [service.agents[0], service.questions[0]];
  const predict = () =>
    fetch(`${url}/api/questions/${question?.id}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': agent?.key ?? '' },
      body: JSON.stringify({ prediction: true, confidence: 80, reasoning: makeReasoning(1) }),
    });
  let back: Promise<void> = Promise.resolve();
  let broken: Promise<unknown> = Promise.resolve();
  await sql.unsafe(`
    create function wait_at_commit() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(42); return null; end';
    create constraint trigger wait_at_commit after insert on predictions
      deferrable initially deferred for each row execute function wait_at_commit()`);
  // The commit waits for this lock, and goes on without its api process.
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(42)`;
    broken = t.rejects(predict());
    await until('the commit waits', async () => {
      // On another connection: within a transaction the view stands still.
      const waiting = await sql`
        select from pg_stat_activity
        where wait_event_type = 'Lock' and application_name like 'prediction-forum api-0%'`;
      return waiting.length > 0;
    });
    back = service.kill('api').back;
  });
  await broken;
  const [stored] = await until('it is stored all the same', async () => {
    const rows = await sql<{ id: string }[]>`select id from predictions`;
    return rows.length > 0 && rows;
  });
  await back;
  const answer = await predict();
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('idempotency-replayed'), 'true');
  const { prediction } = (await answer.json()) as { prediction: { id: string } };
  t.equal(prediction.id, stored?.id);
});
