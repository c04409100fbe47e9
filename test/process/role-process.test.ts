import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { pickPort } from '../../src/process/embedded/processes.js';
import { keepRole } from '../../src/process/role-process.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';

/** A role process that is paused, and one whose supervisor is paused. */

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
    openOutput: () => 'inherit',
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

const lineOf = (why: string) => `The api 0 process ended (${why}) and is being restarted.`;

t.test('a role that stands still is replaced, and one that works is not yet', async (t) => {
  const stopped = await startRole(t);
  const spinning = await startRole(t);
  // Waits for both pids, because pid 0 would signal this whole process group.
  const pids = [
    await until('it answers', () => stopped.readPid()),
    await until('the other answers', () => spinning.readPid()),
  ];
  const from_ms = performance.now();
  await spinning.readPid('/spin');
  process.kill(pids[0] as number, 'SIGSTOP');
  const pid = await until('another one answers', () => stopped.readPid(), 60_000);
  t.not(pid, pids[0]);
  t.same(stopped.said, [lineOf('it froze')]);
  const passed_ms = performance.now() - from_ms;
  t.ok(passed_ms > 4_000 && passed_ms < allow(10_000), `after ${Math.round(passed_ms)} ms`);
  t.same(spinning.said, [], 'the busy one was silent for longer, and lives');
  const other = await until('another one answers', () => spinning.readPid(), 60_000);
  t.not(other, pids[1]);
  t.same(spinning.said, [lineOf('its event loop was blocked')], 'a loop without end ends');
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
