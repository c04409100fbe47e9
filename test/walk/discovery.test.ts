import { createHash } from 'node:crypto';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { startApp } from '../help/app.js';
import { runWorkflow } from '../help/arazzo.js';
import { readFenced, runBash } from '../help/readme.js';
import { act, closeQuestion } from '../help/settling.js';
import { makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Documents at fixed paths, for programs: the catalog, the skills, and a workflow (run here). */

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes.
type Any = any;

const app = await startApp(t);
const human = await makeHuman(app);
const readJson = async (path: string): Promise<Any> => (await fetch(app.url + path)).json();

/** Makes the predictions older, because a forecast cannot be revised in its first minute. */
const letPass = async (seconds: number): Promise<void> => {
  await app.sql`
    update predictions set
      created_at = created_at - make_interval(secs => ${seconds}),
      revised_at = revised_at - make_interval(secs => ${seconds})`;
};

t.test('the catalog is a linkset whose links lead somewhere', async (t) => {
  const head = await app.call('HEAD', '/.well-known/api-catalog');
  t.equal(head.status, 200);
  t.equal(
    head.headers.get('content-type'),
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  );
  t.match(head.headers.get('link'), /^<\/\.well-known\/api-catalog>; rel="api-catalog"/);
  const { linkset } = await readJson('/.well-known/api-catalog');
  const [catalog, api, ...others] = linkset;
  t.equal(catalog.anchor, `${app.url}/.well-known/api-catalog`);
  const items = catalog.item.map(({ href }: Any) => href);
  t.same(
    items,
    [api, ...others].map(({ anchor }: Any) => anchor),
    'every interface has a context of its own',
  );
  const targets = [api, ...others].flatMap(({ anchor: _, ...relations }: Any) =>
    Object.values(relations).flat(),
  ) as Any[];
  t.ok(targets.length > 7);
  for (const { href, type } of targets) {
    const { status, headers } = await app.call('GET', href.slice(app.url.length));
    t.equal(status, 200, href);
    t.equal(headers.get('content-type')?.split(';')[0], type, href);
  }
  const rels = Object.keys(api).sort();
  t.same(rels, ['anchor', 'service-desc', 'service-doc', 'service-meta', 'status']);
});

t.test('the front page names the catalog and the documents, also from the cache', async (t) => {
  for (let n = 0; n < 2; n += 1) {
    const { headers, body } = await app.call('GET', '/');
    const link = headers.get('link') ?? '';
    for (const [rel, path] of [
      ['api-catalog', '/.well-known/api-catalog'],
      ['service-desc', '/openapi.json'],
      ['service-desc', '/arazzo.json'],
      ['service-doc', '/llms.txt'],
      ['service-meta', '/.well-known/agent-skills/index.json'],
    ]) {
      t.ok(link.includes(`<${path}>; rel="${rel}"`), `${rel} ${path}`);
    }
    t.match(body, '<link rel="api-catalog" href="/.well-known/api-catalog"');
  }
});

/** The Markdown of the skills, by name. */
const readSkills = async (): Promise<ReadonlyMap<string, string>> => {
  const { skills } = await readJson('/.well-known/agent-skills/index.json');
  const texts = skills.map(async ({ name, url }: Any) => [
    name,
    await (await fetch(new URL(url, app.url))).text(),
  ]);
  return new Map((await Promise.all(texts)) as [string, string][]);
};

t.test('the index of skills is that of Agent Skills Discovery 0.2.0', async (t) => {
  const index = await readJson('/.well-known/agent-skills/index.json');
  t.equal(index.$schema, 'https://schemas.agentskills.io/discovery/0.2.0/schema.json');
  t.equal(index.skills.length, 3);
  const texts = await readSkills();
  for (const { name, type, description, url, digest } of index.skills) {
    t.match(name, /^[a-z0-9]+(-[a-z0-9]+)*$/);
    t.equal(type, 'skill-md');
    t.equal(url, `/.well-known/agent-skills/${name}/SKILL.md`);
    const text = texts.get(name) ?? '';
    t.equal(digest, `sha256:${createHash('sha256').update(text).digest('hex')}`);
    t.ok(text.startsWith(`---\nname: ${name}\ndescription: ${description}\n`), name);
    t.ok(description.length > 20 && description.length <= 1_024);
    t.ok(text.includes(`BASE=${app.url}\n`), 'its commands have the address of this service');
    const { headers } = await app.call('GET', url);
    t.equal(headers.get('content-type'), 'text/markdown; charset=utf-8');
  }
});

/** Runs all commands of a skill, and prints some of its variables at the end. */
const runSkill = async (name: string, shown: readonly string[], env: Record<string, string>) => {
  const blocks = readFenced((await readSkills()).get(name) ?? '', 'bash');
  const lines = shown.map((variable) => `echo "${variable}=$${variable}"`);
  const ran = await runBash([...blocks, ...lines].join('\necho\n'), env);
  const read = (variable: string): string =>
    ran.lines.find((line) => line.startsWith(`${variable}=`))?.slice(variable.length + 1) ?? '';
  return { ...ran, output: ran.lines.join('\n'), read };
};

t.test('the commands of the skills work as they stand, one skill after the other', async (t) => {
  const env = { AGENT_NAME: 'Skilled reader', MODEL: 'claude-sonnet-4', HUMAN_TOKEN: human.token };
  const registered = await runSkill('register-and-link', ['FORUM_KEY'], env);
  t.equal(registered.errors, '');
  t.equal(registered.code, 0);
  t.match(registered.output, `${app.url}/link`);
  t.match(registered.output, '"owner_linked":true');
  const FORUM_KEY = registered.read('FORUM_KEY');

  // An earlier forecast of the agent is resolved, so that it has a score.
  const resolved_id = await makeOpenQuestion(app);
  const body = { prediction: true, confidence: 90, reasoning: makeReasoning() };
  const earlier = { key: FORUM_KEY, body };
  t.equal((await app.call('POST', `/api/questions/${resolved_id}/predict`, earlier)).status, 201);
  await closeQuestion(app, resolved_id);
  await act(app, resolved_id, 'resolve', { outcome: true, resolution_note: 'As it says.' });
  await until('it is scored', async () => {
    const { predictions } = (await app.call('GET', '/api/me/predictions', { key: FORUM_KEY })).body;
    return predictions[0].score !== null;
  });

  const QUESTION_ID = await makeOpenQuestion(app);
  const placed = await runSkill('forecast-a-question', ['QUESTION_ID', 'PREDICTION_ID'], {
    FORUM_KEY,
  });
  t.equal(placed.errors, '');
  t.equal(placed.code, 0);
  t.match(placed.output, '"can_predict":true');
  t.match(placed.output, '"would_be_accepted":true');
  t.equal(placed.read('QUESTION_ID'), QUESTION_ID, 'the only one that is open');
  const PREDICTION_ID = placed.read('PREDICTION_ID');
  const readConfidence = async () => {
    const [row] = await app.sql`select confidence from predictions where id = ${PREDICTION_ID}`;
    return row?.['confidence'];
  };
  t.equal(await readConfidence(), 7_200);

  const too_soon = await runSkill('follow-and-score', [], { FORUM_KEY, PREDICTION_ID });
  t.equal(too_soon.code, 22, 'a refusal ends the commands');
  t.match(too_soon.output, 'REVISION_TOO_SOON');
  await letPass(61);
  const scored = await runSkill('follow-and-score', ['AFTER', 'EVENTS'], {
    FORUM_KEY,
    PREDICTION_ID,
  });
  t.equal(scored.errors, '');
  t.equal(scored.code, 0);
  t.equal(await readConfidence(), 8_150);
  t.ok(Number(scored.read('AFTER')) > 0);
  t.match(scored.read('EVENTS'), PREDICTION_ID);
  t.match(scored.output, /"score":\{[^}]*"brier":0\.0/);
  t.match(scored.output, '"performance"');
});

const workflow_inputs = {
  agent_name: 'Workflow reader',
  model: 'gpt-5',
  human_token: human.token,
  prediction: true,
  confidence: 60,
  reasoning: makeReasoning(),
  new_confidence: 75,
  reason: 'The operator confirmed the new date, and two of the delays are resolved.',
};

t.test('the workflow is valid Arazzo by the linter of Redocly', async (t) => {
  const source = JSON.stringify(await readJson('/arazzo.json'));
  const config = await createConfig({ extends: ['spec'] });
  const lint = async (text: string) =>
    (await lintFromString({ source: text, absoluteRef: '/arazzo.json', config })).map(
      ({ message, location }) => `${message} ${location[0]?.pointer}`,
    );
  t.same(await lint(source), []);
  t.not((await lint(source.replace('"stepId":"link"', '"stepId":"register"'))).length, 0);
  t.not((await lint(source.replaceAll('"condition"', '"conditions"'))).length, 0);
});

t.test('the workflow, carried out as it is written, ends with its own event', async (t) => {
  await makeOpenQuestion(app);
  const waits: number[] = [];
  const wait = async (seconds: number): Promise<void> => {
    waits.push(seconds);
    await letPass(seconds);
  };
  const document = await readJson('/arazzo.json');
  const { outputs, calls } = await runWorkflow(document, 'forecast', {
    inputs: workflow_inputs,
    wait,
  });
  t.same(
    calls.map(({ stepId, status }) => `${stepId} ${status}`),
    [
      'register 201',
      'link 200',
      'findQuestion 200',
      'dryRun 200',
      'predict 201',
      'revise 429',
      'revise 200',
      'readOwnEvent 200',
    ],
  );
  t.same(waits, [60]);
  const [row] = await app.sql`
    select confidence, revision, revision_event_id from predictions where id = ${outputs.prediction_id}`;
  t.match(row, { confidence: 7_500, revision: 1 });
  const { events } = await readJson(`/api/events?after=${outputs.offset - 1}&limit=1`);
  t.equal(events[0].id, row?.['revision_event_id']);

  const again = runWorkflow(document, 'forecast', { inputs: workflow_inputs, wait });
  await t.rejects(again, /register: .*DUPLICATE_NAME/, 'a step that is refused ends it');
});
