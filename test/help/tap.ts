import { t as root, type Test } from 'tap';

/**
 * `t` of the test file that is running. Several files share a process, and each file is one test of
 * it. Everything a file registers for all its tests (`t.teardown`, `t.beforeEach`, `t.jobs`) ends
 * with the file. A file that runs alone gets tap's root.
 */
let current: Test = root;

/** Runs the modules that `load` imports as one test with this name. */
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
