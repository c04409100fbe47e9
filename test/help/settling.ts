import type { Sql } from '../../src/db/client.js';
import { createSettling } from '../../src/features/resolution/index.js';
import type { TestApp } from './app.js';
import { openParts } from './parts.js';
import type { Teardown } from './stores.js';
import { type Agent, makeAgent, makeHuman, makeReasoning } from './story.js';
import { until } from './until.js';

/** Questions with predictions, and how deciding a question affects the accounts. */

export interface Forecast {
  readonly agent: Agent;
  readonly prediction_id: string;
}

/** One linked agent for each forecast, all with the same owner. */
export const makeForecasts = async (
  app: TestApp,
  question_id: string,
  stated: readonly Readonly<Record<string, unknown>>[],
): Promise<readonly Forecast[]> => {
  const human = await makeHuman(app);
  const forecasts: Forecast[] = [];
  for (const statement of stated) {
    const agent = await makeAgent(app, { human });
    forecasts.push({ agent, prediction_id: await predict(app, agent, question_id, statement) });
  }
  return forecasts;
};

export const predict = async (
  app: TestApp,
  agent: Agent,
  question_id: string,
  statement: Readonly<Record<string, unknown>>,
): Promise<string> => {
  const { status, body } = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { ...statement, reasoning: makeReasoning() },
  });
  if (status !== 201) throw new Error(`not predicted: ${JSON.stringify(body)}`);
  return body.prediction.id;
};

/** Closes a question in the same way as the timer. */
export const closeQuestion = async ({ sql }: Pick<TestApp, 'sql'>, id: string): Promise<void> => {
  await sql`
    update questions
    set status = 'closed', closed_at = now()
    where id = ${id} and status = 'open'`;
};

export const decide = (
  app: Pick<TestApp, 'call'>,
  question_id: string,
  act: 'resolve' | 'void',
  body: Readonly<Record<string, unknown>>,
) => app.call('POST', `/api/admin/questions/${question_id}/${act}`, { admin: true, body });

/** Performs an admin's action on a question, named as in the path. Throws if it is refused. */
export const act = async (
  app: Pick<TestApp, 'call'>,
  question_id: string,
  name: string,
  body: object = {},
): Promise<void> => {
  const path = `/api/admin/questions/${question_id}/${name}`;
  const answer = await app.call('POST', path, { admin: true, body });
  if (answer.status >= 300) throw new Error(`${name}: ${JSON.stringify(answer.body)}`);
};

/** Settles in place of the timer, and more often, so that a test does not wait for its interval. */
export const settleEagerly = async (t: Teardown, { stores }: TestApp): Promise<void> => {
  const { deps } = await openParts(t, { stores });
  const settling = createSettling(deps, { poll_ms: 20 });
  await settling.start();
  t.teardown(() => settling.stop());
};

/** Waits until every decision about a question is settled. */
export const untilSettled = (sql: Sql, question_id: string): Promise<boolean> =>
  until(
    'it is settled',
    async () => {
      const [row] = await sql<{ left: number }[]>`
        select count(*)::integer as left
        from resolutions
        where question_id = ${question_id} and state = 'running'`;
      return row?.left === 0;
    },
    60_000,
  );

/** Resolves or voids a question and waits until it is settled. */
export const decideAndSettle = async (
  app: TestApp,
  question_id: string,
  act: 'resolve' | 'void',
  body: Readonly<Record<string, unknown>> = {},
): Promise<void> => {
  const { status, body: answer } = await decide(app, question_id, act, body);
  if (status !== 202) throw new Error(`not decided: ${status} ${JSON.stringify(answer)}`);
  await untilSettled(app.sql, question_id);
};

export const balanceOf = async (sql: Sql, agent_id: string): Promise<number> => {
  const [row] = await sql<{ balance: number }[]>`
    select balance from accounts where agent_id = ${agent_id}`;
  if (row === undefined) throw new Error('there is no account');
  return row.balance;
};

/** Reasons and amounts in an agent's ledger, oldest first. */
export const ledgerOf = async (
  sql: Sql,
  agent_id: string,
): Promise<readonly (readonly [string, number])[]> => {
  const rows = await sql<{ reason: string; amount: number }[]>`
    select reason, amount from ledger where agent_id = ${agent_id} order by id`;
  return rows.map(({ reason, amount }) => [reason, amount] as const);
};

/** Accounts whose balance differs from the sum of their ledger. */
export const findWrongAccounts = (sql: Sql): PromiseLike<readonly object[]> =>
  sql`
    select a.*, l.total
    from accounts a
    left join (select agent_id, sum(amount) as total from ledger group by agent_id) l
      on l.agent_id = a.agent_id
    where a.balance <> coalesce(l.total, 0)
    limit 5`;
