import { t } from 'tap';

/**
 * Runs the test files that are its arguments, each in a process of its own, as one tap test that
 * writes TAP to its output. tap's own runner is not used, because its TypeScript plugin does not
 * work with this compiler and taking it out changes node_modules. What tap hands down in
 * NODE_OPTIONS is taken away: it serves coverage, and it would put loader hooks into every process
 * that a test starts.
 */
const file_ms = 180_000;

// Each file has its limit; the whole run, which grows with the tests, has none.
t.setTimeout(0);
t.jobs = 2;
for (const file of process.argv.slice(2)) {
  const name = file.replace(/^dist\//, '').replace(/js$/, 'ts');
  t.spawn(
    'env',
    ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', file],
    { timeout: file_ms, buffered: true, stdio: ['ignore', 'pipe', 'inherit'] },
    name,
  );
}
