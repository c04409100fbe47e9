import { t as root, type Test } from 'tap';

/**
 * `t` of the test file that is being run. Several files share a process: each is one test of the
 * process, and what its tests register for all of them (`t.teardown`, `t.beforeEach`, `t.jobs`) ends
 * with the file. A file that is run by itself has the root of tap.
 */
let current: Test = root;

/** Runs what `load` imports as one test with this name. */
export const runFile = (name: string, load: () => Promise<unknown>): Promise<unknown> =>
  root.test(name, { timeout: 0 }, async (file) => {
    current = file;
    await load();
  });

export const t: Test = new Proxy(root, {
  get(_root, name) {
    const value: unknown = Reflect.get(current, name, current);
    return typeof value === 'function' ? value.bind(current) : value;
  },
  set: (_root, name, value) => Reflect.set(current, name, value, current),
});
