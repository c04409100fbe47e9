import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import { applyMigrations, readMigrations } from '../../../src/db/migrate.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { openAdmin } from '../../help/own-stores.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';

/** A database of whole percents, brought to the schema of basis points and revisions. */

const older = 34;
const [binary, multi] = [0, 1] as const;

interface Older {
  readonly question: number;
  readonly prediction: boolean | null;
  readonly probability: number | null;
  readonly confidence: number;
  readonly option: number | null;
  readonly shares: string | null;
  readonly prior: number | null;
}
const yes = { question: binary, option: null, shares: null, prior: null };
const chosen = { question: multi, prediction: null, probability: null, prior: null };
const forecasts: readonly Older[] = [
  { ...yes, prediction: true, probability: 70, confidence: 70, prior: 55 },
  { ...yes, prediction: false, probability: 0, confidence: 100, prior: 0 },
  { ...yes, prediction: true, probability: 100, confidence: 100, prior: 100 },
  { ...chosen, confidence: 60, option: 1, shares: null },
  { ...chosen, confidence: 71, option: 0, shares: '{71,29,0}' },
];

/** As the program of that schema stored a prediction. */
const place = (sql: Sql, one: Older, agent: number) => sql`
  insert into predictions (
    question_id, agent_id, id, prediction, probability, confidence, selected_option, probabilities,
    reasoning, citations, model_family, prior_probability, body_digest, event_id, created_at
  )
  values (
    ${questionId(one.question)}, ${agentId(agent)}, ${makeId()}, ${one.prediction},
    ${one.probability}, ${one.confidence}, ${one.option}, ${one.shares}::smallint[],
    repeat('x', 200), '{}', 'gpt', ${one.prior}, '', ${agentId(agent)}, now()
  )`;

t.test('whole percents become basis points, and an older program stores nothing', async (t) => {
  const stores = await openStores(t);
  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  await sql.unsafe('drop schema public cascade; create schema public');
  await sql.begin((tx) => applyMigrations(tx, readMigrations().slice(0, older)));
  const keys = Array.from({ length: forecasts.length + 1 }, makeApiKey);
  const optionsOf = (n: number) => (n === multi ? ['Rises', 'Stays', 'Falls'] : []);
  await seed(sql, { keys, questions: 2, optionsOf });
  for (const [agent, one] of forecasts.entries()) await place(sql, one, agent);
  await sql`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, net, resolved_at, settled_at
    )
    select
      question_id, agent_id, id, 1, 'technology', 'binary', 2, 0.7, confidence, true, true, 0.09,
      ln(0.7), 48.5, null, 64, now(), now()
    from predictions`;
  await sql`
    insert into webhooks (id, owner_kind, owner_id, slot, url, events, secret_sealed, filter_confidence)
    values (${makeId()}, 'agent', ${agentId(0)}, 1, 'https://a.example/', '{x}', '', 80)`;

  await sql.begin((tx) => applyMigrations(tx, readMigrations()));
  const stored = await sql`
    select p.probability, p.confidence, p.selected_option, p.probabilities, p.prior_probability,
      s.stated, p.revision, p.revised_at, p.revision_event_id
    from predictions p
    join scores s using (question_id, agent_id)
    order by p.agent_id`;
  const never = { revision: 0, revised_at: null, revision_event_id: null };
  const option = { probability: null, prior_probability: null, ...never };
  t.same(
    stored.map((row) => ({ ...row, probabilities: row['probabilities']?.join() ?? null })),
    [[7_000, 7_000, 5_500] as const, [0, 10_000, 0] as const, [10_000, 10_000, 10_000] as const]
      .map(([probability, confidence, prior_probability]) => ({
        probability,
        confidence,
        selected_option: null,
        probabilities: null,
        prior_probability,
        stated: confidence,
        ...never,
      }))
      .concat([
        { ...option, confidence: 6_000, selected_option: 1, probabilities: null, stated: 6_000 },
        {
          ...option,
          confidence: 7_100,
          selected_option: 0,
          stated: 7_100,
          probabilities: '7100,2900,0',
        },
      ] as never[]),
  );
  const [hook] = await sql`select filter_confidence::float8 as least from webhooks`;
  t.equal(hook?.['least'], 80, 'what a webhook asks for stays percent');

  const newcomer = forecasts.length;
  await t.rejects(place(sql, forecasts[0] as Older, newcomer), /null value in column "revision"/);
  t.equal((await sql`select from predictions`).length, forecasts.length);
  for (const wrong of [
    sql`update predictions set confidence = 10001`,
    sql`update predictions set probability = -1 where probability is not null`,
    sql`update predictions set prior_probability = 10001`,
    sql`update predictions set revision = 1`,
  ]) {
    await t.rejects(wrong, /violates check constraint/);
  }

  const app = await startApp(t, { stores, roles: ['api'] });
  const list = `/api/questions/${questionId(multi)}/predictions?sort=new`;
  const { predictions } = (await app.call('GET', list)).body;
  t.match(predictions[0], {
    confidence: 71,
    probabilities: { Rises: 71, Stays: 29, Falls: 0 },
    scale: 'percent',
  });
});
