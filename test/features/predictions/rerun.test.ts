import { test } from 'tap';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeReasoning } from '../../../bench/load/predict-texts.js';
import { makeApiKey } from '../../../src/features/agents/index.js';
import { createGates, createPlacing } from '../../../src/features/predictions/index.js';
import { placePrediction } from '../../../src/features/predictions/place.js';
import { createQuestionCache } from '../../../src/features/questions/index.js';
import { isFault } from '../../../src/kit/fault.js';
import type { Tx } from '../../../src/kit/pg/client.js';
import { openParts } from '../../help/parts.js';

const lost = Object.assign(new Error('the answer was lost'), { code: 'CONNECTION_CLOSED' });

const never = () => Promise.reject(new Error('not a batch'));

test('a commit whose answer was lost is answered as what it is: placed, once', async (t) => {
  const { deps } = await openParts(t);
  const { sql } = deps;
  const keys = [makeApiKey(), makeApiKey()];
  await seed(sql, { keys, questions: 1 });
  let runs = 0;
  // The batch is committed, and the answer never comes.
  const losing = new Proxy(sql, {
    get(target, name, self) {
      if (name !== 'begin') return Reflect.get(target, name, self);
      return async (work: (tx: Tx) => Promise<unknown>) => {
        const result = await target.begin(work);
        runs += 1;
        if (runs === 1) throw lost;
        return result;
      };
    },
  });
  const gates = createGates(deps);
  const placing = createPlacing({ sql: losing, gates, committed: () => undefined });
  const parts = {
    ...deps,
    ...{ gates, placing, reach: null, takePrediction: never },
    questions: createQuestionCache(deps),
  };
  const place = (n: number) =>
    placePrediction(parts, {
      question_id: questionId(0),
      body: { prediction: true, confidence: 80, reasoning: makeReasoning(n) },
      body_digest: 'ab'.repeat(32),
      claim: null,
      agent: {
        kind: 'agent',
        id: agentId(n),
        name: `Agent ${n}`,
        model: 'gpt-5',
        model_family: 'gpt',
        owner_id: agentId(9),
      },
    });
  const placed = await Promise.all([place(0), place(1)]);
  t.equal(runs, 2, 'both were in the batch that was run again, and found to be stored');
  const stored = await sql<{ id: string; agent_id: string }[]>`
    select id, agent_id from predictions order by agent_id`;
  t.equal(stored.length, 2);
  for (const [n, one] of placed.entries()) {
    if (isFault(one)) throw new Error(one.message);
    t.equal(one.replayed, false, 'it is the first answer');
    t.equal(one.prediction.id, stored[n]?.id);
  }
});
