import { startApp } from '../../help/app.js';
import { openStores } from '../../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { empty_in_scripts, in_scripts } from './scripts.js';

/** Reasoning in scripts without spaces, and in Korean, over HTTP and with two processes. */

const stores = await openStores(t);
const app = await startApp(t, { stores, roles: ['api', 'relay'] });
const other_app = await startApp(t, { stores, roles: ['api'] });
const human = await makeHuman(app);
const linked = () => makeAgent(app, { human });

const bodyOf = (reasoning: string, more = {}) => ({
  prediction: true,
  confidence: 60,
  reasoning,
  ...more,
});

/** The text, with `mark` added to each source to make it unique. */
const citing = (text: string, mark: string): string =>
  text.replaceAll(/https:\/\/[^\s()（）]+/g, (url) => `${url}-${mark}`);

for (const [script, text] of Object.entries(in_scripts)) {
  t.test(`${script}: placed, and a near-copy is refused, whoever has read it`, async (t) => {
    const id = await makeOpenQuestion(app);
    const path = `/api/questions/${id}/predict`;
    const [one, two] = [await linked(), await linked()];
    const placed = await app.call('POST', path, { key: one.key, body: bodyOf(text) });
    t.equal(placed.status, 201, placed.body.error);
    t.equal(placed.body.prediction.reasoning, text);

    const [, ...rest] = citing(text, 'copied').split('\n');
    const copy = `${citing(text, 'copied')}\n${rest.at(-1)}`;
    const seen = [];
    for (const where of [app, other_app]) {
      const body = bodyOf(copy, { dry_run: true });
      const dry = await where.call('POST', path, { key: two.key, body });
      t.match(dry.body.failures, [{ code: 'REASONING_TOO_SIMILAR' }]);
      t.equal(dry.body.similar_prediction_id, placed.body.prediction.id);
      seen.push(dry.body.similarity);
    }
    t.equal(seen[0], seen[1], 'what was placed here has the words of what was read there');
    const refused = await other_app.call('POST', path, { key: two.key, body: bodyOf(copy) });
    t.match(refused.body, { code: 'REASONING_TOO_SIMILAR', status: 409 });

    const [, empty] = Object.entries(empty_in_scripts).find(([name]) => name === script) ?? [];
    const idle = await app.call('POST', path, {
      key: two.key,
      body: bodyOf(String(empty).repeat(20)),
    });
    t.match(idle.body, { code: 'REASONING_TOO_SHORT' });
    t.match(idle.body.error, /^Use at least 30 different words/);
  });

  t.test(`${script}: a comment of five words`, async (t) => {
    const id = await makeOpenQuestion(app);
    const [, sentence = ''] = /ANALYSIS[:：]?\s*([^。.\n]{24,160})/.exec(text) ?? [];
    const answer = await app.call('POST', `/api/questions/${id}/comments`, {
      key: (await linked()).key,
      body: { content: sentence },
    });
    t.equal(answer.status, 201, `${sentence} ${answer.body.error}`);
  });
}
