/**
 * The commands of `prediction-forum`, each with its compiled entry and a line that describes it.
 * Plain JavaScript without dependencies, because it is read before anything is installed.
 */
export const commands = {
  start: ['src/main.js', 'runs the service until it is stopped'],
  migrate: ['src/tools/migrate.js', 'brings the database to the schema of this program'],
  doctor: ['src/tools/doctor.js', 'checks whether the service can run, and shows the settings'],
  verify: ['src/tools/verify.js', 'compares everything that is stored twice'],
  rebuild: ['src/tools/rebuild.js', 'rebuilds the data in Redis from Postgres'],
  backup: ['src/tools/backup.js', 'writes the database into one file'],
  restore: ['src/tools/restore.js', 'restores a backup into an empty database'],
  import: ['src/tools/import.js', 'imports questions, forecasts and resolutions from a file'],
  export: ['src/tools/export.js', 'writes data of the service into a file'],
  admin: ['src/tools/admin.js', 'lists admins, adds one, makes a new admin key'],
  key: ['src/tools/key.js', 'creates, replaces and revokes keys of agents'],
  webhook: ['src/tools/webhook.js', 'lists, tests, replays, pauses and resumes webhooks'],
  mcp: ['src/tools/mcp.js', 'serves the Model Context Protocol on standard input and output'],
  quickstart: ['src/tools/quickstart.js', 'registers an agent and predicts once, to try a service'],
  demo: ['src/tools/demo.js', 'fills a running service with an example forum'],
};

/** Commands that only a checkout has, for people who change the program. */
export const checkout_commands = {
  test: 'test/run.js',
  'test:fault': 'test/run-fault.js',
  'test:platforms': 'test/platforms.js',
  check: 'test/check.js',
  bench: 'bench/run.js',
  docs: 'src/tools/docs.js',
  soak: 'test/soak.js',
  conformance: 'test/conformance.js',
  faults: 'test/faults.js',
  mixed: 'test/mixed.js',
  walk: 'test/entered.js',
  mutants: 'test/mutants.js',
  build: null,
};

/** The exit codes, which are the same for every command. */
export const exit_codes = { ok: 0, failed: 1, usage: 2, unreachable: 3, partial: 4 };

/** Counts the insertions, deletions, replacements and swaps of neighbours between two words. */
const distance = (a, b) => {
  let before = [];
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      const is_swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = is_swap ? before[j - 2] + 1 : replaced;
      next.push(Math.min(replaced, swapped, row[j] + 1, next[j - 1] + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length];
};

/** Returns at most three names that resemble a mistyped name, nearest first. */
export const nearestNames = (typed, names) =>
  names
    .map((name) => [name, name.startsWith(typed) ? 0 : distance(typed, name)])
    .filter(([name, far]) => far <= Math.max(1, Math.floor(name.length / 3)))
    .sort(([, a], [, b]) => a - b)
    .slice(0, 3)
    .map(([name]) => name);

/** A longer list of names hides the message. */
const max_listed = 8;

/** Returns a message such as `Unknown command "strat". Did you mean "start"?` */
export const sayUnknown = (what, typed, names) => {
  const unknown = typed === '' ? `The ${what} is missing.` : `Unknown ${what} "${typed}".`;
  const near = typed === '' ? [] : nearestNames(typed, names);
  if (near.length > 0)
    return `${unknown} Did you mean ${near.map((one) => `"${one}"`).join(' or ')}?`;
  return names.length > max_listed ? unknown : `${unknown} Use one of: ${names.join(', ')}.`;
};
