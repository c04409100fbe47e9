import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { pickPort } from '../../src/process/embedded/processes.js';
import { keepRole } from '../../src/process/role-process.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';

/** A role process that stands still, and one whose supervisor does. */

const entry = fileURLToPath(new URL('./service.js', import.meta.url));

const startRole = async (t: Test) => {
  const data_dir = makeTestFolder();
  const port = await pickPort();
  const said: string[] = [];
  const role = keepRole({
    args: { role: 'api', index: 0, shared_port: false },
    entry,
    data_dir,
    heap_mb: 100,
    output: 'inherit',
    env: { ...process.env, DATA_DIR: data_dir, PORT: String(port), HOST: '127.0.0.1' },
    say: (line) => said.push(line),
  });
  t.teardown(async () => {
    await role.stop(2_000);
    removeTestFolder(data_dir);
  });
  await role.ready;
  const readPid = async (path = '/'): Promise<number> => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        signal: AbortSignal.timeout(500),
      });
      return ((await answer.json()) as { pid: number }).pid;
    } catch {
      return 0;
    }
  };
  return { readPid, said };
};

const line = 'The api 0 process ended (it stood still); it is started again.';

t.test('a role that stands still, or is in a loop without end, is replaced', async (t) => {
  const stopped = await startRole(t);
  const spinning = await startRole(t);
  const pids = [await stopped.readPid(), await spinning.readPid()];
  const from_ms = performance.now();
  process.kill(pids[0] as number, 'SIGSTOP');
  await spinning.readPid('/spin');
  for (const [n, { readPid, said }] of [stopped, spinning].entries()) {
    const pid = await until('another one answers', readPid, 60_000);
    t.not(pid, pids[n]);
    t.same(said, [line]);
  }
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms > 4_000 && passed_ms < allow(10_000), `after ${Math.round(passed_ms)} ms`);
});

t.test('a supervisor that stood still, as with its machine, kills nobody for it', async (t) => {
  const { readPid, said } = await startRole(t);
  const pid = await readPid();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000);
  const end_ms = performance.now() + 1_300;
  await until('it has looked a few times', () => performance.now() > end_ms);
  t.equal(await readPid(), pid);
  t.same(said, []);
});
