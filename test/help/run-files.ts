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

/** The longest of the others come first, so that none of them runs alone at the end. */
const long = ['web/every-page', 'tools/commands', 'contract/docs-examples', 'tools/verify'];

/** The position of a file in a list; -1 when it is not there. */
const placeIn = (list: readonly string[], file: string): number =>
  list.findIndex((start) => file.startsWith(`dist/test/${start}`));

const files = process.argv.slice(2);
const services = files.filter((file) => placeIn(heavy, file) !== -1);
services.sort((a, b) => placeIn(heavy, a) - placeIn(heavy, b));
const others = files.filter((file) => placeIn(heavy, file) === -1);
others.sort((a, b) => placeIn(long, b) - placeIn(long, a));

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
