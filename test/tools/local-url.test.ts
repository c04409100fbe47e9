import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { t } from 'tap';
import { claimDataDir } from '../../src/process/embedded/data-dir.js';
import { localUrl } from '../../src/tools/command.js';

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
