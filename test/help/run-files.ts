import { t } from 'tap';

/**
 * Runs the test files that are its arguments, each in a process of its own, as one tap test that
 * writes TAP to its output. tap's own runner is not used, because its TypeScript plugin does not
 * work with this compiler and taking it out changes node_modules. What tap hands down in
 * NODE_OPTIONS is taken away: it serves coverage, and it would put loader hooks into every process
 * that a test starts.
 */
const file_ms = process.env['LONG_FAULTS'] === 'true' ? 3_600_000 : 600_000;

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

/** Whole services are started by these, longest first. */
const heavy = [
  'fault/settling',
  'fault/kills',
  'fault/pauses',
  'fault/half-open',
  'fault/',
  'tools/backup',
  'walk/',
  'process/s',
];

/** The position of a file in the list above; -1 for all others. */
const weightOf = (file: string): number =>
  heavy.findIndex((start) => file.startsWith(`dist/test/${start}`));

const files = process.argv.slice(2);
const services = files.filter((file) => weightOf(file) !== -1);
services.sort((a, b) => weightOf(a) - weightOf(b));
const others = files.filter((file) => weightOf(file) === -1);

/** Runs what is left in the queues, one file at a time. */
const work = async (...queues: string[][]): Promise<void> => {
  for (;;) {
    const file = queues.find(({ length }) => length > 0)?.shift();
    if (file === undefined) return;
    await run(file);
  }
};

// Two services at once keep two cores busy; what says by when it has to be well again would fail
// with more. A third file fills the pauses: most others wait for their stores and for timers.
t.jobs = 3;
await Promise.all([work(services, others), work(services, others), work(others)]);
