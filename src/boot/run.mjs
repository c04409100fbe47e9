/**
 * `node src/boot/run.mjs TARGET [arguments]` is what every npm script calls. It makes the checkout
 * ready (packages, build) and then runs the compiled entry in this same process, which reads its
 * own arguments from `process.argv.slice(2)`. Plain JavaScript without a dependency, because it
 * runs before anything is installed.
 */
const targets = {
  start: 'dist/src/main.js',
  test: 'dist/test/run.js',
  demo: 'dist/src/tools/demo.js',
  import: 'dist/src/tools/import.js',
  export: 'dist/src/tools/export.js',
  bench: 'dist/bench/run.js',
  doctor: 'dist/src/tools/doctor.js',
  verify: 'dist/src/tools/verify.js',
  'pool-comparison': 'dist/src/tools/pool-comparison.js',
  backup: 'dist/src/tools/backup.js',
  restore: 'dist/src/tools/restore.js',
  docs: 'dist/src/tools/docs.js',
  soak: 'dist/test/soak.js',
  faults: 'dist/test/faults.js',
  mixed: 'dist/test/mixed.js',
  walk: 'dist/test/entered.js',
  mutants: 'dist/test/mutants.js',
  build: null,
};

const fail = (message) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
};

const run = async (target, args) => {
  const { prepare, root } = await import('./prepare.mjs');
  const problem = await prepare((line) => process.stderr.write(`${line}\n`));
  if (problem !== null) return fail(problem);
  const entry = targets[target];
  if (entry === null) return;
  const { default: path } = await import('node:path');
  const { pathToFileURL } = await import('node:url');
  const file = path.join(root, entry);
  process.argv = [process.argv[0], file, ...args];
  await import(pathToFileURL(file).href);
};

const [major, minor] = process.versions.node.split('.').map(Number);
const [target, ...args] = process.argv.slice(2);
if (major < 20 || (major === 20 && minor < 11)) {
  fail(`Node 20.11 or newer is needed; this is ${process.version}.`);
} else if (!Object.hasOwn(targets, target)) {
  fail(`Usage: node src/boot/run.mjs ${Object.keys(targets).join('|')} [arguments]`);
} else {
  await run(target, args);
}
