import { t } from 'tap';
import { startApp } from '../../help/app.js';
import { type Ask, bodyOf, openQuestions, readEntries } from '../../help/own-predictions.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeReasoning } from '../../help/story.js';

const stores = await openStores(t);
const start = () => startApp(t, { stores, roles: ['api'] });
const apps = [await start(), await start()] as const;
const [app] = apps;
const human = await makeHuman(app);

/** A chain without a fork: what each entry began with is what another one left, or the start. */
const isChain = (start: number, rows: readonly { amount: number; balance_after: number }[]) => {
  const sorted = (values: readonly number[]): string => [...values].sort((a, b) => a - b).join();
  const left = rows.map(({ balance_after }) => balance_after);
  const met = rows.map(({ amount, balance_after }) => balance_after - amount);
  const last = Math.min(start, ...left);
  return sorted([...met, last]) === sorted([start, ...left]);
};

t.test('whatever comes at once through two processes, the books are right', async (t) => {
  const random = (below: number): number => Math.floor(Math.random() * below);
  for (let round = 0; round < 6; round += 1) {
    const ids = await openQuestions(app, human, 10);
    const agents = await Promise.all([1, 2, 3].map(() => makeAgent(app, { human })));
    const start = 300 + random(1_000);
    const of_agents = agents.map(({ id }) => id);
    await app.sql`
      update accounts set balance = ${start}, staked = 5000
      where agent_id = any (${of_agents}::uuid[])`;
    const texts = Array.from({ length: 12 }, () => makeReasoning());
    const ask = (): Ask => ({
      id: ids[random(ids.length)]!,
      confidence: 50 + random(51),
      reasoning: random(3) === 0 ? texts[random(texts.length)]! : makeReasoning(),
    });
    const actions = agents.flatMap((agent) => {
      const alone = Array.from({ length: 10 }, async () => {
        const one = ask();
        const headers = random(3) === 0 ? { 'idempotency-key': `${agent.id}-${random(1e9)}` } : {};
        const path = `/api/questions/${one.id}/predict`;
        return apps[random(2)]!.call('POST', path, { key: agent.key, headers, body: bodyOf(one) });
      });
      const predictions = Array.from({ length: 8 }, () => {
        const one = ask();
        return { question_id: one.id, ...bodyOf(one) };
      });
      const many = apps[random(2)]!.call('POST', '/api/predictions/batch', {
        ...{ key: agent.key, body: { predictions } },
      });
      return [...alone, many];
    });
    const answers = await Promise.all(actions);
    const bad = answers.filter(({ status }) => status >= 500);
    t.same(bad, [], 'nothing fails');
    for (const agent of agents) {
      const { rows, account } = await readEntries(app, agent);
      t.ok(isChain(start, rows), JSON.stringify({ start, rows }));
      const staked = rows.reduce((sum, { amount }) => sum - amount, 0);
      t.same(
        { ...account },
        { balance: start - staked, staked: 5_000 + staked, count: rows.length },
      );
    }
    const [numbers] = await app.sql<{ wrong: number }[]>`
      select count(*)::int as wrong
      from question_seqs s
      where question_id = any (${ids}::uuid[])
        and seq < (select max(p.seq) from predictions p where p.question_id = s.question_id)`;
    t.equal(numbers?.wrong, 0, 'every question knows its last number');
  }
});
