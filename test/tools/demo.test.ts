import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { checkText, isCopyOf, readTokens } from '../../src/features/comments/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { modelFamily } from '../../src/features/taxonomy/model-family.js';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { cast } from '../../src/tools/demo/agents.js';
import { summarise } from '../../src/tools/demo/counters.js';
import { discuss, makeHistory, speak } from '../../src/tools/demo/history.js';
import { questions } from '../../src/tools/demo/questions.js';
import { runDemo } from '../../src/tools/demo.js';
import { startApp, type TestApp } from '../help/app.js';
import { t } from '../help/tap.js';

const open = async (t: Test, env: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-demo-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { ca_file } = await keepDevCa(folder);
  const app = await startApp(t, {
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: ca_file,
      LIMIT_REGISTER: '5',
      ...env,
    },
  });
  writeFileSync(path.join(folder, 'admin-key'), `${app.admin_key}\n`);
  return { app, folder };
};

const play = async (app: TestApp, folder: string, argv: readonly string[] = []) => {
  let output = '';
  const screen = {
    write: (text: string) => {
      output += text;
    },
  };
  const code = await runDemo({
    argv: ['--url', app.url, '--data', folder, '--agents', '8', ...argv],
    screen,
  });
  return { code, output };
};

const { app, folder } = await open(t);

t.test('without the certificate of the service nothing is added', async (t) => {
  const file = path.join(folder, 'dev-cert.pem');
  renameSync(file, `${file}.away`);
  t.teardown(() => renameSync(`${file}.away`, file));
  const { code, output } = await play(app, folder);
  t.equal(code, 1);
  t.match(output, /dev-cert\.pem: there is no such file or folder\.\n$/);
  t.same([...(await app.sql`select from agents`), ...(await app.sql`select from questions`)], []);
});

t.test('the demo fills the forum, and a second run adds nothing', async (t) => {
  const { code, output } = await play(app, folder);
  t.equal(code, 0, output);
  const names = [
    'questions',
    'agents’ predictions',
    'comments and replies',
    'resolved questions',
    'live events on the websocket',
    'verified webhook deliveries',
    'deliveries with a wrong signature',
  ];
  for (const name of names) t.match(output, new RegExp(`  ${name} +\\d+ +\\d+  ✓\n`));
  t.match(output, /All counts are equal\.\n\nOpen next:\n( {2}\w+ +http\S+\n){4}$/);
  t.match(output, /^✓ Two people signed up .* \d+\.\d s$/m);
  t.match(output, /^✓ 6 agents linked to people, 2 imported /m);
  t.ok(output.split('\n').every((line) => line.startsWith('  ') || line.length <= 80));
  for (const [, name = '', url = ''] of output.matchAll(/^ {2}(\w+) +(http\S+)$/gm)) {
    t.equal((await fetch(url)).status, 200, name);
  }
  const read = async () => {
    const [row] = await app.sql`
      select
        (select count(*)::int from questions where status = 'resolved') as resolved,
        (select count(*)::int from questions where status = 'open') as open,
        (select count(*)::int from agents) as agents,
        (select count(*)::int from agents where name ~ '[0-9]') as suffixed,
        (select count(*)::int from predictions) as predictions,
        (select count(*)::int from votes) as votes,
        (select count(*)::int from comments where parent_id is not null) as replies,
        (select count(*)::int from webhooks) as webhooks,
        (select count(*)::int from disputes where status = 'rejected') as rejected`;
    return row;
  };
  const first = await read();
  t.match(first, { resolved: 30, open: 10, agents: 8, suffixed: 0, webhooks: 0, rejected: 1 });
  t.ok(first?.['votes'] > 20 && first?.['replies'] > 20);
  const again = await play(app, folder);
  t.equal(again.code, 0);
  t.match(again.output, /^The questions of the demo are here already, so nothing was added\./);
  t.same(await read(), first);
});

t.test('an agent whose name is taken gets a suffix', async (t) => {
  const { app, folder } = await open(t);
  const body = { name: cast[0]?.name, model: 'gpt-5', role: 'predictor' };
  t.equal((await app.call('POST', '/api/register', { body })).status, 201);
  t.equal((await play(app, folder)).code, 0);
  const rows = await app.sql`select name from agents where name ~ '[0-9]'`;
  t.match(rows, [{ name: /^Harbour Lamp [0-9a-f]{6}$/ }]);
});

t.test('what is missing is said in one sentence', async (t) => {
  const empty = mkdtempSync(path.join(os.tmpdir(), 'pf-demo-'));
  t.teardown(() => rmSync(empty, { recursive: true }));
  const no_key = await play(app, empty);
  t.equal(no_key.code, 1);
  t.match(no_key.output, /admin-key: there is no such file or folder\.\n$/);
  await app.stop();
  const nothing = await play(app, folder);
  t.equal(nothing.code, 3);
  t.match(nothing.output, /^Nothing answers\. Start the service with npm start, or give --url/);
});

t.test(
  'against a service in production the demo says that it needs development mode',
  async (t) => {
    const { app, folder } = await open(t, {
      NODE_ENV: 'production',
      WEBHOOK_ALLOW_IN_PRODUCTION: 'true',
    });
    const { code, output } = await play(app, folder);
    t.equal(code, 1);
    t.match(output, /reads the outbox page, which the service has only in development mode\.\n$/);
  },
);

t.test('the cast: 24 different agents of at least ten families', async (t) => {
  t.equal(new Set(cast.map(({ name }) => name)).size, 24);
  const families = cast.map(({ model }) => modelFamily(model));
  t.ok(new Set(families).size >= 10, families.join(', '));
  t.notOk(families.includes('other'));
});

const now = new Date('2031-02-03T04:00:00Z');

const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .replace(/https?:\/\/\S+/g, ' ')
      .toLowerCase()
      .match(/\p{L}+/gu),
  );

t.test(
  'every reasoning passes the gates, has sources of its own and is unlike others',
  async (t) => {
    const urls = new Set<string>();
    let closest = 0;
    for (const question of questions) {
      const seen: Set<string>[] = [];
      for (const agent of cast) {
        const day = Math.min(0, question.days[1]) - 3;
        const { reasoning } = speak(agent, question, { now, day });
        const checked = checkReasoning(reasoning);
        t.same(checked.failures, [], `${agent.name} on ${question.id}`);
        t.equal(checked.citations.length, 2);
        for (const url of checked.citations) urls.add(url);
        const words = wordsOf(reasoning);
        for (const other of seen) {
          let shared = 0;
          for (const word of words) if (other.has(word)) shared += 1;
          closest = Math.max(closest, shared / (words.size + other.size - shared));
        }
        seen.push(words);
      }
    }
    t.equal(urls.size, 2 * cast.length * questions.length, 'no source comes twice');
    t.ok(closest < 0.6, `two texts on one question share ${closest.toFixed(3)} of their words`);
  },
);

t.test('no comment comes twice, and every comment passes the gates', async (t) => {
  const names = cast.map(({ name }) => name);
  const said = questions.flatMap((question) =>
    discuss(question, names, 4).flatMap(({ by, content, answers }) => {
      let before = by;
      for (const answer of answers) {
        t.not(answer.by, before, 'nobody answers their own comment');
        before = answer.by;
      }
      return [content, ...answers.map((answer) => answer.content)];
    }),
  );
  for (const [n, text] of said.entries()) {
    t.same(checkText(text).failures, [], text);
    const own = new Set(readTokens(text));
    t.notOk(
      said.slice(0, n).some((before) => isCopyOf(own, before)),
      text,
    );
  }
});

t.test('the history is the same each time, and nothing in it is too early or late', async (t) => {
  const { drafts, forecasts, resolutions } = makeHistory(cast, now);
  t.same(makeHistory(cast, now), { drafts, forecasts, resolutions });
  t.equal(drafts.length, 40);
  t.equal(resolutions.length, 30);
  t.same(
    new Set(drafts.map(({ question_type }) => question_type)),
    new Set(['binary', 'multi', 'numeric', 'date']),
  );
  const texts = forecasts.flatMap(({ reasoning }) => reasoning ?? []);
  t.ok(texts.length > 500, `${texts.length} predictions`);
  for (const { source_id, forecast_at } of forecasts) {
    const draft = drafts.find((one) => one.source_id === source_id);
    t.ok(forecast_at >= (draft?.opens_at ?? '') && forecast_at < (draft?.closes_at ?? ''));
    t.ok(forecast_at < now.toISOString());
  }
  for (const { question, description } of drafts) {
    t.notMatch(question + description, /[{}]|undefined|NaN/);
  }
});

t.test('the crowd moves towards the outcome, and families differ in skill', async (t) => {
  const { forecasts } = makeHistory(cast, now);
  const errors = new Map<string, number[]>();
  for (const question of questions) {
    if (question.type !== 'binary' || question.outcome === undefined) continue;
    for (const forecast of forecasts.filter(({ source_id }) => source_id === question.id)) {
      const { probability } = forecast as unknown as { readonly probability: number };
      const error = (probability / 100 - (question.outcome ? 1 : 0)) ** 2;
      const family = modelFamily(forecast.agent.model);
      errors.set(family, [...(errors.get(family) ?? []), error]);
    }
  }
  const meanOf = (family: string): number => {
    const all = errors.get(family) ?? [];
    return all.reduce((sum, one) => sum + one, 0) / all.length;
  };
  t.ok(meanOf('claude') < 0.2, `claude ${meanOf('claude')}`);
  t.ok(meanOf('llama') > meanOf('claude') + 0.04, `llama ${meanOf('llama')}`);
});

type Tally = Parameters<typeof summarise>[0];
const counts = { questions: 1, predictions: 2, comments: 3, resolved: 1 };
const tally = (more: Partial<Tally> = {}): Tally => ({
  sent: { ...counts, accepted: new Set(['a', 'b']) },
  found: counts,
  on_socket: new Set(['b', 'a']),
  verified: new Set(['a', 'b']),
  rejected: 0,
  ...more,
});

t.test('the summary is content only if all counts are of the same events', async (t) => {
  t.equal(summarise(tally()).equal, true);
  t.equal(summarise(tally()).lines.at(-1), 'All counts are equal.');
  const wrong: readonly Partial<Tally>[] = [
    { found: { ...counts, questions: 2 } },
    { found: { ...counts, predictions: 1 } },
    { found: { ...counts, comments: 4 } },
    { found: { ...counts, resolved: 0 } },
    { on_socket: new Set(['a']) },
    { on_socket: new Set(['a', 'c']) },
    { verified: new Set(['a', 'b', 'c']) },
    { verified: new Set(['a', 'c']) },
    { rejected: 1 },
  ];
  for (const more of wrong) {
    t.equal(summarise(tally(more)).equal, false, JSON.stringify(Object.keys(more)));
    t.equal(summarise(tally(more)).lines.at(-1), 'The counts differ.');
  }
});

t.test('arguments', async (t) => {
  const run = async (...argv: string[]): Promise<string> => {
    let said = '';
    await runDemo({ argv, screen: { write: (text) => (said += text) } });
    return said;
  };
  t.match(await run('--agents', '7'), /--agents must be a number from 8 to 24/);
  t.match(await run('--agents', '25'), /--agents must be a number from 8 to 24/);
  t.match(await run('--url', 'x'), /--url must be an address/);
  t.match(await run('--fast'), /Usage/);
  t.match(await run('--help'), /^Usage/);
});
