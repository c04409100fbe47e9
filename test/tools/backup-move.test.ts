import { copyFileSync, existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Test, t } from 'tap';
import type { Sql } from '../../src/db/client.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { readTables } from '../../src/tools/backup/tables-store.js';
import { runDemo, startReceiver } from '../../src/tools/demo.js';
import { makeCaller } from '../help/app.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import { runTool } from '../help/run-tool.js';
import { endService, launch, startService } from '../help/service.js';
import { makeReasoning } from '../help/story.js';
import { until } from '../help/until.js';

// Two whole services are started, which a busy machine takes its time for.
t.setTimeout(170_000);

const makeFolder = (t: Test): string => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  return folder;
};

/** Rows of every table that nothing changes while a service rests. */
const countRows = async (sql: Sql): Promise<Readonly<Record<string, number>>> => {
  const { tables } = await sql.begin((tx) => readTables(tx));
  const restless = ['leases', 'signers', 'idempotency', 'consensus_snapshots', 'human_tokens'];
  const found: Record<string, number> = {};
  for (const { name } of tables.filter((table) => !restless.includes(table.name))) {
    const [row] = await sql.unsafe<{ n: number }[]>(`select count(*)::int as n from ${name}`);
    found[name] = row?.n ?? -1;
  }
  return found;
};

t.test('what the demo made moves to an empty folder and goes on there', async (t) => {
  const first = await startService(t, { agents: 2, questions: 2 });
  const played = await runDemo({
    argv: ['--url', first.url, '--data', first.folder, '--agents', '6'],
    screen: { write: () => undefined },
  });
  t.equal(played, 0);
  const read = (name: string): string => readFileSync(path.join(first.folder, name), 'utf8');
  const tls = { cert: read('dev-cert.pem'), key: read('dev-key.pem') };
  const receiver = await startReceiver(tls, () => true);
  t.teardown(receiver.close);
  const [{ key = '' } = {}, other] = first.agents;
  const [asked = { id: '' }] = first.questions;
  const url = `https://127.0.0.1:${receiver.port}/hook`;
  const hook = await makeCaller(first.url)('POST', '/api/webhooks', {
    ...{ key, body: { url, events: ['prediction.placed'] } },
  });
  t.equal(hook.status, 201);
  receiver.secret = hook.body.secret;
  const predict = (at: string, by = '') =>
    makeCaller(at)('POST', `/api/questions/${asked.id}/predict`, {
      key: by,
      body: { prediction: true, confidence: 71, reasoning: makeReasoning(by) },
    });
  const before = await predict(first.url, key);
  await until('its delivery', () => receiver.verified.has(before.body.event_id));
  const last = await makeCaller(first.url)('GET', '/api/events?last=1');
  const file = path.join(makeFolder(t), 'kept.tar.gz');
  // The demo deleted its webhook, whose deliveries go a moment later; the boards follow too.
  await until('one delivery is left, and the boards are made', async () => {
    const [row] = await first.sql`
      select
        (select count(*)::int from deliveries) as deliveries,
        exists (select from standing_changes union all select from debater_changes) as waiting`;
    return row?.['deliveries'] === 1 && row['waiting'] === false;
  });
  const counts = await countRows(first.sql);
  const kept = await runTool('backup', { DATA_DIR: first.folder }, file);
  t.match(kept, { code: 0, output: /predictions +37\n[\s\S]*kept\.tar\.gz is written/ });
  t.match(kept.output, /Keep .*\/secret-key too/);
  t.equal(statSync(file).mode & 0o777, 0o600);
  await first.stop();
  const at_rest = await runTool('backup', { DATA_DIR: first.folder }, `${file}.rest`);
  t.match(at_rest, { code: 0, output: /predictions +37\n/ });

  const folder = makeFolder(t);
  const env = { DATA_DIR: folder };
  const no_key = await runTool('restore', env, file);
  t.match(no_key, { code: 1, output: /There is no SECRET_KEY/ });
  t.notOk(existsSync(path.join(folder, 'postgres.json')), 'nothing was changed');
  copyFileSync(path.join(first.folder, 'secret-key'), path.join(folder, 'secret-key'));
  const restored = await runTool('restore', env, file);
  t.match(restored, { code: 0, output: /predictions +37\n[\s\S]*Everything is back/ });

  const second = launch(folder, {
    API_PROCESSES: '1',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: path.join(first.folder, 'dev-ca.pem'),
  });
  t.teardown(() => endService(second.child, folder));
  const at = await second.url;
  const sql = openAdmin(embeddedPostgresUrl(folder) ?? '');
  t.teardown(() => sql.end());
  t.same(await countRows(sql), counts);
  t.match(await runTool('verify', env), { code: 0, output: /Nothing differs/ });

  const after = await predict(at, other?.key);
  t.equal(after.status, 201, 'keys work');
  await until('a delivery signed with the old secret', () =>
    receiver.verified.has(after.body.event_id),
  );
  t.equal(receiver.rejected, 0);
  const events = await makeCaller(at)('GET', `/api/events?after=${last.body.head}`);
  t.match(events.body.events, [{ offset: last.body.head + 1, id: after.body.event_id }]);
  t.same(events.body.events.length, 1);
  t.match(await runTool('verify', env), { code: 0, output: /Nothing differs/ });
  const running = await runTool('restore', env, file, '--replace');
  t.match(running, { code: 1, output: /The service already runs on/ });
});
