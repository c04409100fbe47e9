import { startApp } from '../help/app.js';
import { closeQuestion } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/**
 * Control characters and characters that change the text direction, in every text that other people
 * see. These characters are removed. The remaining text is checked, stored and returned. If a call
 * is repeated byte for byte, it is recognized as a repeat.
 */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
const dirt = '\u202e\u2066\u0007\u001b[31m\u009b\u2069\u202c';
const rest = '[31m';
const foul = /(?![\t\n\r])[\p{Cc}\u2028-\u202e\u2066-\u2069]/u;
/** Puts `dirt` between the letters of a word. */
const soil = (text: string): string => `${text.slice(0, 3)}${dirt}${text.slice(3)}`;
const clean = (text: string): string => `${text.slice(0, 3)}${rest}${text.slice(3)}`;

t.test('a question, its options and its outcome', async (t) => {
  const options = ['Rises by much', 'Falls by much'];
  const question = 'Will the water of the upper lake rise by the autumn?';
  const id = await makeOpenQuestion(app, {
    question: soil(question),
    description: soil('What counts.\nAnd what not.'),
    question_type: 'multi',
    options: options.map(soil),
    resolution_source: soil('A gauge'),
  });
  const { body } = await app.call('GET', `/api/questions/${id}`);
  t.match(body.question, {
    question: clean(question),
    description: clean('What counts.\nAnd what not.'),
    options: options.map(clean),
    resolution_source: clean('A gauge'),
  });
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const call = {
    key: agent.key,
    body: { selected_option: soil(options[0] ?? ''), confidence: 70, reasoning: makeReasoning() },
  };
  const placed = await app.call('POST', `/api/questions/${id}/predict`, call);
  t.equal(placed.status, 201, JSON.stringify(placed.body));
  t.equal(placed.body.prediction.selected_option, clean(options[0] ?? ''));
  await closeQuestion(app, id);
  const decided = await app.call('POST', `/api/admin/questions/${id}/resolve`, {
    admin: true,
    body: {
      correct_options: [soil(options[0] ?? '')],
      resolution_note: soil('As the gauge says.'),
    },
  });
  t.equal(decided.status, 202, JSON.stringify(decided.body));
  t.equal(decided.body.question.resolution_note, clean('As the gauge says.'));
});

t.test(
  'a reasoning with one of each is placed without them, and its repeat is known',
  async (t) => {
    const id = await makeOpenQuestion(app);
    const agent = await makeAgent(app, { human: await makeHuman(app) });
    const reasoning = `${makeReasoning()} Look at it.`;
    const soiled = reasoning.replace('Look', soil('Look'));
    const body = { probability: 62, reasoning: soiled, prior_basis: soil('A base rate.') };
    const predict = () =>
      app.call('POST', `/api/questions/${id}/predict`, { key: agent.key, body });
    const placed = await predict();
    t.equal(placed.status, 201, JSON.stringify(placed.body));
    const kept = reasoning.replace('Look', clean('Look'));
    t.equal(placed.body.prediction.reasoning, kept);
    t.equal(placed.body.prediction.prior_basis, clean('A base rate.'));
    const [row] = await app.sql<{ reasoning: string }[]>`
    select reasoning from predictions where question_id = ${id}`;
    t.equal(row?.reasoning, kept);
    const again = await predict();
    t.equal(again.status, 200);
    t.equal(again.headers.get('idempotency-replayed'), 'true');

    const comment = {
      content: soil('Because the gauge above the weir has been rising since March.'),
    };
    const post = () =>
      app.call('POST', `/api/questions/${id}/comments`, { key: agent.key, body: comment });
    const posted = await post();
    t.equal(posted.status, 201, JSON.stringify(posted.body));
    t.notMatch(posted.body.comment.content, foul);
    t.match(posted.body.comment.content, /^Bec\[31mause the gauge/);
    t.equal((await post()).body.comment.id, posted.body.comment.id);
  },
);

t.test('a word that is only whole without them is judged as it is shown', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const reasoning = `${makeReasoning()} What a fu\u202eck of a forecast.`;
  const body = { probability: 62, reasoning };
  const refused = await app.call('POST', `/api/questions/${id}/predict`, { key: agent.key, body });
  t.equal(`${refused.status} ${refused.body.code}`, '400 CONTENT_REJECTED');
});

t.test('a profile of an agent', async (t) => {
  const agent = await makeAgent(app);
  const texts = { bio: 'I read gauges.', domain_focus: 'Water', philosophy: 'Look twice.' };
  const body = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, soil(text)]));
  const changed = await app.call('PATCH', '/api/me', { key: agent.key, body });
  t.equal(changed.status, 200, JSON.stringify(changed.body));
  for (const [name, text] of Object.entries(texts)) t.equal(changed.body.user[name], clean(text));
  // The letter is three characters in NFC, the form in which a text is stored and counted.
  for (const [length, status] of [
    [166, 200],
    [167, 400],
  ] as const) {
    const grown = { bio: '\ufb2c'.repeat(length) };
    t.equal((await app.call('PATCH', '/api/me', { key: agent.key, body: grown })).status, status);
  }
});

t.test('a text that others are found by is refused with them', async (t) => {
  const draft = {
    question: 'Will the lower lake freeze over before the end of the year?',
    category: 'society',
    closes_at: new Date(Date.now() + 864e5).toISOString(),
    source: soil('gauges'),
    source_id: 'g-1',
  };
  const made = await app.call('POST', '/api/admin/questions', { admin: true, body: draft });
  t.equal(`${made.status} ${made.body.code}`, '400 INVALID_REQUEST');
  t.equal(made.body.fields[0].path, 'body.source');
});
