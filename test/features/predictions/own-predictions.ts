import type { Answered, TestApp } from '../../help/app.js';
import {
  type Agent,
  type Human,
  makeAgent,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';

/** Many predictions of one agent, and the rows that are stored for them. */

export interface Ask {
  readonly id: string;
  readonly confidence?: number;
  readonly reasoning?: string;
  /** Sent in the Idempotency-Key header. */
  readonly idempotency_key?: string;
}

export const bodyOf = (ask: Ask) => ({
  prediction: true,
  confidence: ask.confidence ?? 55,
  reasoning: ask.reasoning ?? makeReasoning(),
});

export const predict = (at: TestApp, { key }: Agent, ask: Ask): Promise<Answered> =>
  at.call('POST', `/api/questions/${ask.id}/predict`, { key, body: bodyOf(ask) });

/** Opens questions and predicts on each, so that the process has them in its cache. */
export const openQuestions = async (
  app: TestApp,
  human: Human,
  count: number,
): Promise<string[]> => {
  const known_to = await makeAgent(app, { human });
  return Promise.all(
    Array.from({ length: count }, async () => {
      const id = await makeOpenQuestion(app);
      await predict(app, known_to, { id });
      return id;
    }),
  );
};

/** The number of an agent's predictions, and of the transactions that stored them. */
export const countStored = async (app: TestApp, { id }: Agent) => {
  const [row] = await app.sql<{ transactions: number; predictions: number }[]>`
    select count(distinct xmin::text)::int as transactions, count(*)::int as predictions
    from predictions where agent_id = ${id}`;
  return { ...row! };
};
