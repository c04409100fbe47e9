import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { runDemo } from '../../src/tools/demo.js';
import { startApp, type TestApp } from '../help/app.js';

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

t.test('the demo plays the story, twice, and leaves no webhook behind', async (t) => {
  const { app, folder } = await open(t);
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
  const { app, folder } = await open(t);
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
  t.equal(nothing.code, 1);
  t.match(nothing.output, /^Nothing answers; start the service with npm start, or give --url/);
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
    t.match(output, /does not run in development mode, whose outbox page the demo reads\.\n$/);
  },
);
