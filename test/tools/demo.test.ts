import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { modelFamily } from '../../src/features/taxonomy/model-family.js';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { cast, scripts, speak } from '../../src/tools/demo/texts.js';
import { runDemo, summarise } from '../../src/tools/demo.js';
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
    argv: ['--url', app.url, '--data', folder, '--agents', '6', ...argv],
    screen,
  });
  return { code, output };
};

const { app, folder } = await open(t);

t.test('the demo plays the story, twice, and leaves no webhook behind', async (t) => {
  for (const predictions of [36, 72]) {
    const { code, output } = await play(app, folder);
    t.equal(code, 0, output);
    t.match(output, /predictions accepted +36 {2}✓/);
    t.match(output, /sum of the consensus totals +36 {2}✓/);
    t.match(output, /events on the websocket +36 {2}✓/);
    t.match(output, /verified webhook deliveries +36 {2}✓/);
    t.match(output, /All counts are equal\.\n\nOpen next:\n( {2}\w+ +http\S+\n){4}$/);
    for (const [, name = '', url = ''] of output.matchAll(/^ {2}(\w+) +(http\S+)$/gm)) {
      t.equal((await fetch(url)).status, 200, name);
    }
    const [row] = await app.sql`
      select
        (select count(*)::int from predictions) as predictions,
        (select count(*)::int from webhooks) as webhooks,
        (select count(*)::int from agents where owner_id is not null) as linked`;
    t.same(row, { predictions, webhooks: 0, linked: predictions / 6 });
  }
});

t.test('what is missing is said in one sentence', async (t) => {
  const empty = mkdtempSync(path.join(os.tmpdir(), 'pf-demo-'));
  t.teardown(() => rmSync(empty, { recursive: true }));
  const no_key = await play(app, empty);
  t.equal(no_key.code, 1);
  t.match(no_key.output, /admin-key: there is no such file or folder\.\n$/);
  rmSync(path.join(folder, 'dev-cert.pem'));
  const no_certificate = await play(app, folder);
  t.equal(no_certificate.code, 1);
  t.match(no_certificate.output, /dev-cert\.pem: there is no such file or folder\.\n$/);
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

t.test('the cast: 25 different agents of at least six families', async (t) => {
  t.equal(new Set(cast.map(({ name }) => name)).size, 25);
  const families = cast.map(({ model }) => modelFamily(model));
  t.ok(new Set(families).size >= 6, families.join(', '));
  t.notOk(families.includes('other'));
  t.ok(new Set(families.slice(0, 6)).size >= 2);
  for (const { name } of cast) t.ok(name.length + 7 <= 50, name);
});

const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .replace(/https?:\/\/\S+/g, ' ')
      .toLowerCase()
      .match(/\p{L}+/gu),
  );

t.test(
  'every reasoning passes the gates, has sources of its own, and is unlike the others',
  async (t) => {
    const urls = new Set<string>();
    let closest = 0;
    for (const [question, script] of scripts.entries()) {
      const seen: Set<string>[] = [];
      for (const [agent, member] of cast.entries()) {
        const stated = speak({ agent, question, run_id: '0a1b2c' });
        const checked = checkReasoning(stated.reasoning);
        t.same(checked.failures, [], `${member.name} on question ${question}`);
        t.equal(checked.citations.length, 2);
        for (const url of checked.citations) urls.add(url);
        t.ok(Number.isInteger(stated.confidence));
        t.ok(stated.confidence >= 4 && stated.confidence <= 96);
        if (script.options === undefined) t.ok(stated.confidence >= 50);
        else t.ok(script.options.includes(stated.selected_option ?? ''));
        const words = wordsOf(stated.reasoning);
        for (const other of seen) {
          let shared = 0;
          for (const word of words) if (other.has(word)) shared += 1;
          closest = Math.max(closest, shared / (words.size + other.size - shared));
        }
        seen.push(words);
      }
    }
    t.equal(urls.size, 2 * cast.length * scripts.length, 'no source comes twice');
    t.ok(closest < 0.6, `two texts on one question share ${closest.toFixed(3)} of their words`);
    const answers = cast.map((_, agent) => speak({ agent, question: 0, run_id: 'x' }));
    t.ok(new Set(answers.map(({ confidence }) => confidence)).size > 5, 'opinions differ');
  },
);

t.test('the questions fit the limits of the contract', async (t) => {
  t.ok(scripts.length >= 5);
  for (const script of scripts) {
    const text = script.question.replace('{date}', '2031-01-01');
    t.notMatch(text, /[{}]/);
    t.ok(text.length >= 10 && text.length <= 500);
    t.ok(script.description.length <= 10_000);
    t.ok(script.options === undefined || script.options.length >= 2);
  }
});

type Tally = Parameters<typeof summarise>[0];
const tally = (more: Partial<Tally> = {}): Tally => ({
  wanted: 2,
  accepted: new Set(['a', 'b']),
  consensus_total: 2,
  on_socket: new Set(['b', 'a']),
  verified: new Set(['a', 'b']),
  rejected: 0,
  ...more,
});

t.test('the summary is content only when all four counts are of the same events', async (t) => {
  t.match(summarise(tally()), { equal: true, lines: [/accepted +2 {2}✓/] });
  t.equal(summarise(tally()).lines.at(-1), 'All counts are equal.');
  const wrong: readonly Partial<Tally>[] = [
    { consensus_total: 3 },
    { on_socket: new Set(['a']) },
    { on_socket: new Set(['a', 'c']) },
    { verified: new Set(['a', 'b', 'c']) },
    { verified: new Set(['a', 'c']) },
    { accepted: new Set(['a']) },
    { wanted: 3 },
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
  t.match(await run('--agents', '5'), /--agents must be a number from 6 to 25/);
  t.match(await run('--agents', '26'), /--agents must be a number from 6 to 25/);
  t.match(await run('--url', 'x'), /--url must be an address/);
  t.match(await run('--fast'), /Usage/);
  t.match(await run('--help'), /^Usage/);
});
