import { t } from 'tap';
import type { Tx } from '../../src/db/client.js';
import { findBy } from '../../src/tools/verify/parts.js';
import { moderation_queries } from '../../src/tools/verify/record-store.js';
import { type Answered, startApp } from '../help/app.js';
import { closeQuestion, decideAndSettle, makeForecasts } from '../help/settling.js';
import { makeOpenQuestion } from '../help/story.js';

/** Disputes and hidden content that contradict the record are found, and nothing else. */

const app = await startApp(t, { roles: ['api', 'timer'] });
const admin = (path: string, body: unknown): Promise<Answered> =>
  app.call('POST', `/api/admin/${path}`, { admin: true, body });

const question_id = await makeOpenQuestion(app);
const stated = [true, false, true].map((prediction) => ({ prediction, confidence: 70 }));
const forecasts = await makeForecasts(app, question_id, stated);
await closeQuestion(app, question_id);
await decideAndSettle(app, question_id, 'resolve', { outcome: true });
const disputes: string[] = [];
for (const { agent } of forecasts) {
  const { body } = await app.call('POST', `/api/questions/${question_id}/dispute`, {
    key: agent.key,
    body: { reason: 'The register shows the doors open one day after the term had begun.' },
  });
  disputes.push(body.dispute.id);
}
const note = 'The register says so.';
await admin(`disputes/${disputes[0]}/resolve`, { status: 'upheld', outcome: false, note });
await admin(`disputes/${disputes[1]}/resolve`, { status: 'rejected', note });
await admin(`predictions/${forecasts[0]?.prediction_id}/hide`, { reason: note });

const look = (tx: Tx) => findBy(tx, moderation_queries, '');

/** What is found after the record was broken, in a transaction that is taken back. */
const lookAfter = async (breaking: string): Promise<readonly string[]> => {
  const undo = new Error('undo');
  let found: readonly string[] = [];
  await app.sql
    .begin(async (tx) => {
      await tx.unsafe(breaking);
      found = await look(tx);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return found;
};

t.test('nothing is found where all is right', async (t) => {
  t.same(await lookAfter('select 1'), []);
});

const breakages: readonly (readonly [RegExp, string])[] = [
  [/is upheld by revision 2, which there is not/, 'delete from resolutions where revision = 2'],
  [/not later than its own/, "update disputes set revision = 2 where status = 'upheld'"],
  [/is about revision 9/, "update disputes set revision = 9 where status = 'rejected'"],
  [/of an agent that did not predict/, 'delete from predictions'],
  [
    /is decided by no act/,
    "update disputes set status = 'rejected', new_revision = null where status = 'upheld'",
  ],
  [/which is not upheld/, `update resolutions set decided_by = 'dispute:x' where revision = 2`],
  [/prediction .* is hidden, and no act/, 'update predictions set hidden_at = now()'],
];

for (const [what, breaking] of breakages) {
  t.test(`${what} is found`, async (t) => {
    const found = await lookAfter(breaking);
    t.ok(
      found.some((line) => what.test(line)),
      found.join(' | '),
    );
  });
}
