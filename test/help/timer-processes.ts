import { type ChildProcess, fork } from 'node:child_process';
import type { Test } from 'tap';
import type { Stores } from './stores.js';

/** Starts `count` processes of a module on the same stores. Waits until each has started. */
export const startTimers = async (
  t: Pick<Test, 'teardown'>,
  module: URL,
  { stores, count }: { readonly stores: Stores; readonly count: number },
): Promise<readonly ChildProcess[]> => {
  const children: ChildProcess[] = [];
  for (let n = 0; n < count; n += 1) {
    const child = fork(module, [JSON.stringify(stores)], { stdio: 'inherit' });
    children.push(child);
    t.teardown(() => child.kill('SIGKILL'));
  }
  const started = (child: ChildProcess) =>
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', () => reject(new Error('the timer ended')));
    });
  await Promise.all(children.map(started));
  return children;
};
