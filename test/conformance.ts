import { t } from 'tap';
import { no_limits, startApp } from './help/app.js';
import { clients, emitMany, headOf, runSuite } from './help/conformance.js';
import { readNumbers } from './help/long-run.js';
import { withoutPython } from './help/python.js';
import { makeOpenQuestion } from './help/story.js';

/**
 * `npm run conformance -- [--events N] [--seed N]`: both clients follow a million events while they
 * are written, over connections that are cut at random. Then the suite checks the service itself.
 */

const { events, seed } = readNumbers('conformance', {
  events: 1_000_000,
  seed: 1 + (Date.now() % 1_000_000),
});

t.setTimeout(0);
const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits, check_answers: false });
const question_ids = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
const show = (text: string): void => void process.stderr.write(text);

t.test(`clients follow ${events} events`, async (t) => {
  const without_python = withoutPython();
  if (without_python !== false) t.comment(`left out: Python, ${without_python}`);
  const chosen = without_python === false ? Object.values(clients) : [clients.typescript];
  const after = await headOf(app);
  const args = [app.url, '--seed', String(seed), '--after', String(after)];
  const ends = ['--until', String(after + events)];
  const [{ code, output }] = await Promise.all([
    runSuite([...args, ...ends, ...chosen.flatMap((command) => ['--client', command])], show),
    emitMany(app, question_ids, events),
  ]);
  t.equal(code, 0, output);
  t.equal(output.match(/events, exactly/g)?.length, chosen.length);
});

t.test('the service keeps its promises', async (t) => {
  const { code, output } = await runSuite([app.url, '--seed', String(seed)], show);
  t.equal(code, 0, output);
});
