import { t } from 'tap';
import { startApp } from '../../help/app.js';
import {
  closeQuestion,
  decide,
  findWrongAccounts,
  makeForecasts,
  untilSettled,
} from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';

/** A dispute is upheld before anybody was paid: whoever settles then pays the new outcome only. */

const app = await startApp(t, { roles: ['api'] });

t.test('an outcome that was disputed before it was settled is paid to nobody', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const stated = [true, false].map((prediction) => ({ prediction, confidence: 80 }));
  const [one, other] = await makeForecasts(app, question_id, stated);
  await closeQuestion(app, question_id);
  t.equal((await decide(app, question_id, 'resolve', { outcome: true })).status, 202);
  const filed = await app.call('POST', `/api/questions/${question_id}/dispute`, {
    key: other?.agent.key ?? '',
    body: { reason: 'The register shows the doors open one day after the term had begun.' },
  });
  const upheld = await app.call('POST', `/api/admin/disputes/${filed.body.dispute.id}/resolve`, {
    admin: true,
    body: { status: 'upheld', outcome: false, note: 'The register says so.' },
  });
  t.match(upheld, { status: 200, body: { dispute: { status: 'upheld', new_revision: 2 } } });

  await startApp(t, { roles: ['api', 'timer'], stores: app.stores });
  await untilSettled(app.sql, question_id);
  const scores = await app.sql`
    select agent_id, net, revision from scores where question_id = ${question_id} order by net`;
  t.match(scores, [
    { agent_id: one?.agent.id, net: -156, revision: 2 },
    { agent_id: other?.agent.id, net: 84, revision: 2 },
  ]);
  t.same(await findWrongAccounts(app.sql), []);
});
