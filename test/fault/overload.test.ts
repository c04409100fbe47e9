import { makeReasoning } from '../../bench/load/predict-texts.js';
import { type SeededAgent, startService } from '../help/service.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';

/**
 * Far more concurrent writes than the service can take, while Postgres is paused. The excess is
 * refused immediately, admitted calls are answered, and nothing is stored without a 201. Refused
 * calls can be sent again.
 */

const agents = 60;
const questions = 30;

t.test('more writes than it takes', async (t) => {
  // The limits apply per host, so several hosts would admit more.
  const env = { LIMIT_IP: '1000000' };
  const service = await startService(t, { agents, questions, hosts: 1, env });
  const { url, sql } = service;

  const predict = async (agent: SeededAgent, question_id: string, text: number) => {
    const started_ms = performance.now();
    const answer = await fetch(`${url}/api/questions/${question_id}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': agent.key },
      body: JSON.stringify({ probability: 60, reasoning: makeReasoning(text) }),
    });
    await answer.arrayBuffer();
    const { status, headers } = answer;
    const ms = performance.now() - started_ms;
    return { status, retry_after: headers.get('retry-after'), ms };
  };

  const yes_no = service.questions.filter(({ options }) => options.length === 0);
  const first = await predict(service.agents[0]!, yes_no[0]!.id, 0);
  t.equal(first.status, 201, 'it works');

  const resume = service.pause('Postgres');
  const calls = yes_no
    .slice(1)
    .flatMap(({ id }, q) =>
      service.agents.map((agent, a) => () => predict(agent, id, 1 + q * agents + a)),
    );
  const answers = calls.map((call) => call());
  const beside = await fetch(`${url}/livez`, { signal: AbortSignal.timeout(allow(5_000)) });
  t.equal(beside.status, 200, 'it lives meanwhile');
  resume();
  const all = await Promise.all(answers);
  const refused = all.filter(({ status }) => status !== 201);
  t.ok(refused.length > all.length / 4, `${refused.length} of ${all.length} were too much`);
  t.same([...new Set(refused.map(({ status }) => status))], [503]);
  t.ok(
    refused.every(({ retry_after }) => Number(retry_after) >= 1),
    'each refusal says when to come again',
  );
  const stored = async (): Promise<number> => {
    const [row] = await sql<{ count: number }[]>`select count(*)::int as count from predictions`;
    return row?.count ?? 0;
  };
  const placed = all.length - refused.length + 1;
  t.equal(await stored(), placed, 'what was acknowledged is stored, and nothing else');
  await until('it is healthy', async () => (await fetch(`${url}/health`)).ok);
  for (const [n, { status }] of all.entries()) {
    if (status !== 201) await calls[n]!();
  }
  t.equal(await stored(), 1 + calls.length, 'sent again, each is stored once');
  const last = await predict(service.agents[1]!, yes_no[0]!.id, 100_000);
  t.equal(last.status, 201, 'the next one is placed');
});
