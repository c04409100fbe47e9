import { createAdjustedTimer, createBoards } from '../../../src/features/leaderboards/index.js';
import { whole_slice } from '../../../src/features/leaderboards/rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { addAgents, addGroups, addHuman, addScores } from './world.js';

/** The difficulty-adjusted boards, which the timer and its thread compute. */

t.test('a timer makes the boards each hour, and pages show what was covered', async (t) => {
  const { deps, advance } = await openParts(t);
  const { sql, clock } = deps;
  const owner_id = await addHuman(sql);
  const agents = await addAgents(sql, Array(4).fill({ owner_id, balance: 5_000 }));
  const [good = '', bad = '', unlucky = '', rare = ''] = agents;
  const base = { category: 'society', resolved_at: clock() };
  const questions = Array.from({ length: 25 }, () => makeId());
  // The first five questions are hard. The unlucky agent answers these and 15 of 20 easy ones.
  const scores = questions.flatMap((question_id, n) => {
    const stated = n < 5 ? [40, 20, 30] : [90, 70, 80];
    return [good, bad, unlucky].flatMap((agent_id, i) =>
      agent_id === unlucky && n >= 20
        ? []
        : [{ ...base, question_id, agent_id, hit: true, stated: stated[i]! }],
    );
  });
  await addScores(sql, [
    ...scores,
    { ...base, question_id: questions[0]!, agent_id: rare, hit: true, stated: 99 },
    // No other agent answers this question.
    { ...base, agent_id: rare, hit: true, stated: 99 },
  ]);
  await addGroups(
    sql,
    questions.map((question_id) => ({
      ...base,
      kind: 'even',
      name: 'even',
      share: 0.5,
      question_id,
    })),
  );
  const boards = createBoards(deps);
  const read = (of: 'agent' | 'model', more = {}) =>
    boards.page({
      kind: 'adjusted',
      of,
      slice: whole_slice,
      limit: 10,
      offset: 0,
      after: null,
      ...more,
    });
  t.same(await read('agent'), { total: 0, rows: [], coverage: undefined }, 'none was made yet');
  const timer = createAdjustedTimer(deps);
  await timer.start();
  t.teardown(() => timer.stop());
  await until(
    'the boards are made',
    async () => (await read('model')).coverage !== undefined,
    30_000,
  );
  // If only two forecasters are left on a question, the question does not count.
  const { rows, coverage, total } = await read('agent');
  t.same(coverage, {
    made_at: clock().toISOString(),
    least_questions: 20,
    least_agents: 3,
    scores: 72,
    covered_scores: 60,
    covered_share: 83.33,
    forecasters: 3,
    questions: 20,
    resamples: 1_000,
  });
  // All three agents answered the 20 questions that count, so values are plain means over these.
  const mean = (hard: number, easy: number) =>
    Math.round((1e6 * (5 * (1 - hard) ** 2 + 15 * (1 - easy) ** 2)) / 20) / 1e6;
  t.match(
    rows,
    [
      {
        agent_id: good,
        rank: 1,
        key: mean(0.4, 0.9),
        detail: { n: 20, rank_interval: { low: 1 } },
      },
      { agent_id: unlucky, rank: 2, key: mean(0.3, 0.8), detail: { rank_interval: { high: 2 } } },
      { agent_id: bad, rank: 3, key: mean(0.2, 0.7) },
      { rank: null, key: 0.25, detail: { name: 'even', reference: 'even', n: 20 } },
    ].sort((a, b) => a.key - b.key),
  );
  t.equal(total, 4);
  t.equal((await read('model')).total, 0);
  const [first] = rows;
  const after = { key: first?.key ?? 0, agent_id: first?.agent_id ?? '' };
  t.same((await read('agent', { after, limit: 1 })).rows, rows.slice(1, 3));
  await sql`update agents set suspended_at = now() where id = ${good}`;
  t.notOk((await read('agent')).rows.some(({ agent_id }) => agent_id === good));
  const made = await sql`select begun_at from adjusted_runs`;
  advance(3_500_000);
  const second = createAdjustedTimer(deps);
  await second.start();
  await second.stop();
  t.same(await sql`select begun_at from adjusted_runs`, made, 'not due yet');
  advance(200_000);
  const third = createAdjustedTimer(deps);
  await third.start();
  await until(
    'made anew',
    async () => (await read('agent')).coverage?.made_at === clock().toISOString(),
    30_000,
  );
  await third.stop();
  t.equal((await read('agent')).coverage?.forecasters, 0, 'two are too few for any question');
});
