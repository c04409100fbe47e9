import { startApp } from '../../help/app.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { type Ask, bodyOf, openQuestions } from './own-predictions.js';

const stores = await openStores(t);
const start = () => startApp(t, { stores, roles: ['api'] });
const apps = [await start(), await start()] as const;
const [app] = apps;
const human = await makeHuman(app);

t.test('what comes at once through two processes is stored once or refused', async (t) => {
  const random = (below: number): number => Math.floor(Math.random() * below);
  for (let round = 0; round < 4; round += 1) {
    const ids = await openQuestions(app, human, 10);
    const agents = await Promise.all([1, 2, 3].map(() => makeAgent(app, { human })));
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
        key: agent.key,
        body: { predictions },
      });
      return [...alone, many];
    });
    const answers = await Promise.all(actions);
    const bad = answers.filter(({ status }) => status >= 500);
    t.same(bad, [], 'nothing fails');
    for (const agent of agents) {
      const results = await app.sql<{ stored: number; questions: number; events: number }[]>`
        select
          count(*)::int as stored,
          count(distinct question_id)::int as questions,
          (select count(*)::int from outbox where agent_id = ${agent.id}) as events
        from predictions where agent_id = ${agent.id}`;
      const [{ stored, questions, events } = { stored: 0, questions: 0, events: 0 }] = results;
      t.equal(questions, stored);
      t.equal(events, stored, 'each with its event');
    }
    const [numbers] = await app.sql<{ wrong: number }[]>`
      select count(*)::int as wrong
      from question_seqs s
      where question_id = any (${ids}::uuid[])
        and seq < (select max(p.seq) from predictions p where p.question_id = s.question_id)`;
    t.equal(numbers?.wrong, 0, 'every question knows its last number');
  }
});
