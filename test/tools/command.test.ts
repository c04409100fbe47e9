import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { printable } from '#client/printable.js';
import { claimDataDir } from '../../src/process/embedded/data-dir.js';
import { localUrl, makeProgress } from '../../src/tools/command.js';
import { runDemo } from '../../src/tools/demo.js';
import { runExport } from '../../src/tools/export.js';
import { runImport } from '../../src/tools/import.js';
import { runTool } from '../help/run-tool.js';
import { t } from '../help/tap.js';

/** No text from a service, a file or a setting affects the terminal that shows it. */

const dirt = 'x\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\u2066\u200f\r\u2028y';
const foul = /(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

const makeScreen = () => {
  const screen = { said: '', write: (piece: string) => (screen.said += piece) };
  return screen;
};

/** A service that refuses every call with such texts. */
const startFoul = async (): Promise<string> => {
  const error = { error: dirt, code: 'INVALID_REQUEST', status: 400, fields: [], request_id: dirt };
  const server = createServer((_asked, answer) => {
    answer.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Closes at the very end, because the demo still has calls in progress when it gives up.
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

t.test('what moves a cursor, rings or turns text is replaced, and the rest stays', async (t) => {
  t.notMatch(printable(dirt), foul);
  t.equal(printable('a\tb\nשלום, a 👨‍👩‍👧'), 'a\tb\nשלום, a 👨‍👩‍👧');
});

t.test('progress writes none', async (t) => {
  const screen = makeScreen();
  makeProgress(screen).say(dirt);
  t.notMatch(screen.said, foul);
});

t.test('export, import and demo say what a service refuses without one', async (t) => {
  const url = await startFoul();
  const folder = t.testdir({ 'in.ndjson': `{"question":"${'q'.repeat(20)}"}\n`, 'admin-key': 'k' });
  const key = ['--admin-key-file', path.join(folder, 'admin-key')];
  const exported = makeScreen();
  const out = ['--out', path.join(folder, 'out.csv')];
  t.equal(await runExport({ argv: ['predictions', '--url', url, ...out], screen: exported }), 1);
  const imported = makeScreen();
  const file = path.join(folder, 'in.ndjson');
  t.equal(await runImport({ argv: ['--url', url, ...key, file], screen: imported }), 1);
  const played = makeScreen();
  t.equal(await runDemo({ argv: ['--url', url, '--data', folder], screen: played }), 1);
  for (const { said } of [exported, imported, played]) {
    t.match(said, /x\ufffd\]0;title/);
    t.notMatch(said, foul);
  }
});

t.test('doctor and verify say a setting without one', async (t) => {
  for (const tool of ['doctor', 'verify']) {
    const env = { PORT: '0', DATA_DIR: path.join(t.testdir(), dirt) };
    const { output } = await runTool(tool, env);
    t.match(output, /\ufffd/, tool);
    t.notMatch(output, foul, tool);
  }
});

t.test('a tool finds the service of its folder', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-local-url-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const before = { ...process.env };
  t.teardown(() => {
    process.env = before;
  });
  process.env = { ...before, PF_DATA_DIR: folder, PF_PORT: '8111' };
  t.equal(localUrl(), 'http://127.0.0.1:8111', 'none runs: where it would');
  const claim = await claimDataDir(folder);
  claim.note({ state: 'running', url: 'http://127.0.0.1:9123' });
  t.equal(localUrl(), 'http://127.0.0.1:9123', 'what it said');
  claim.release();
  t.equal(localUrl(), 'http://127.0.0.1:8111', 'it ended without a word');
  process.env = { ...process.env, PF_PORT: 'abc' };
  t.equal(localUrl(), 'http://127.0.0.1:8080', 'settings that are wrong keep no tool from going');
});
