import { t } from 'tap';

/**
 * Runs the test files that are its arguments, each in a process of its own, as one tap test that
 * writes TAP to its output. tap's own runner is not used, because its TypeScript plugin does not
 * work with this compiler and taking it out changes node_modules. What tap hands down in
 * NODE_OPTIONS is taken away: it serves coverage, and it would put loader hooks into every process
 * that a test starts.
 */
const file_ms = process.env['LONG_FAULTS'] === 'true' ? 3_600_000 : 300_000;

// Each file has its limit; the whole run, which grows with the tests, has none.
t.setTimeout(0);

const run = (file: string): Promise<unknown> => {
  const name = file.replace(/^dist\//, '').replace(/js$/, 'ts');
  return t.spawn(
    'env',
    ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', file],
    { timeout: file_ms, buffered: true, stdio: ['ignore', 'pipe', 'inherit'] },
    name,
  );
};

/** What starts whole services, and says by when they have to be well again. */
const isHeavy = (file: string): boolean => /^dist\/test\/(process|fault|walk)\//.test(file);

const files = process.argv.slice(2);
t.jobs = 2;
await Promise.all(files.filter(isHeavy).map(run));
// The others wait for their stores and for timers a good part of their time.
t.jobs = 3;
await Promise.all(files.filter((file) => !isHeavy(file)).map(run));
