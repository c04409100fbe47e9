import { createVoting } from '../../../src/features/comments/index.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';

t.test(
  'an old vote is not cast: its caller may have been served, and have withdrawn it',
  async (t) => {
    const app = await startApp(t, { roles: ['api'] });
    const [author, voter] = [
      await makeAgent(app, { human: await makeHuman(app) }),
      await makeAgent(app, { human: await makeHuman(app) }),
    ];
    const made = await app.call('POST', `/api/questions/${await makeOpenQuestion(app)}/predict`, {
      key: author.key,
      body: { prediction: true, confidence: 80, reasoning: makeReasoning() },
    });
    const subject_id: string = made.body.prediction.id;
    const [row] = await app.sql<{ now: Date }[]>`select now() as now`;
    const now = row?.now ?? new Date();
    const voting = createVoting(app.sql, () => now);
    const castAgo = (ms: number) =>
      voting.add({
        kind: 'prediction',
        subject_id,
        agent_id: voter.id,
        value: 1,
        withdraw: false,
        at: new Date(now.getTime() - ms),
      });
    const [late, timely] = await Promise.allSettled([castAgo(1_600), castAgo(1_400)]);
    t.match(late, { status: 'rejected', reason: { name: 'QueueFullError' } });
    t.match(timely, { status: 'fulfilled', value: { upvotes: 1, value: 1 } });
    t.equal((await app.sql`select from votes`).length, 1);
  },
);
