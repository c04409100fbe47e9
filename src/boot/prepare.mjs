import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { takeLock } from './processes.mjs';

/**
 * Makes a checkout ready to run: installs the packages if the lock file changed since the last
 * installation, and compiles if a source changed. Both leave a stamp, so that a second start only
 * reads the stamps and the modification times of the sources. One process prepares at a time.
 */
export const root = fileURLToPath(new URL('../..', import.meta.url));
const at = (...parts) => path.join(root, ...parts);
const source_folders = ['src', 'clients/typescript/src', 'test', 'bench', 'examples'];
const package_stamp = at('node_modules', '.pf-lock');
const client_project = 'clients/typescript/tsconfig.json';
const client_package = at('clients', 'typescript', 'dist');
const build_stamp = at('dist', '.stamp');

/** Returns null if everything is ready, otherwise a message for the person at the terminal. */
export const prepare = async (terminal) => {
  // An installation without sources, such as an image, already contains the build.
  if (!existsSync(at('tsconfig.json'))) return null;
  if (packagesCurrent() && buildCurrent()) return null;
  mkdirSync(at('dist'), { recursive: true });
  const release = await waitForLock(at('dist', '.lock'), terminal.say);
  try {
    if (!packagesCurrent()) {
      const problem = await install(terminal);
      if (problem !== null) return problem;
    }
    return buildCurrent() ? null : await build(terminal);
  } finally {
    release();
  }
};

const waitForLock = async (file, say) => {
  let said = false;
  for (;;) {
    const { holder, release } = takeLock(file);
    if (holder === 0) return release;
    if (!said) say(`Process ${holder} is preparing this checkout. Waiting for it …`);
    said = true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

const readOrEmpty = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

const hash = (text) => createHash('sha256').update(text).digest('hex');

/** The stamp includes the platform: a copied node_modules may have another platform's binaries. */
const packageHash = () =>
  `${process.platform}-${process.arch} ${hash(readFileSync(at('package-lock.json')))}\n`;

const packagesCurrent = () => {
  const wanted = packageHash();
  const found = readOrEmpty(package_stamp);
  if (found === wanted) return true;
  if (found.split(' ')[0] !== wanted.split(' ')[0] && found !== '') return false;
  if (!installedByHand()) return false;
  writeFileSync(package_stamp, wanted);
  return true;
};

/** True if somebody ran npm by hand and the packages now match the lock file. */
const installedByHand = () => {
  try {
    const wanted = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')).packages;
    const found = JSON.parse(readFileSync(at('node_modules', '.package-lock.json'))).packages;
    return Object.entries(wanted).every(
      ([name, entry]) =>
        name === '' ||
        (found[name] === undefined
          ? entry.optional === true
          : found[name].version === entry.version && existsSync(at(name))),
    );
  } catch {
    return false;
  }
};

/**
 * No package here needs its install script, so none is run: the set-up is then the same whether or
 * not npm allows such scripts. The development packages include the compiler, so production needs
 * them too.
 */
const install = async (terminal) => {
  if (isLink(at('node_modules'))) {
    return 'node_modules is a link, and npm ci would empty the folder behind it. Remove the link.';
  }
  let problem = null;
  await terminal.step('Installing packages (about a minute the first time)', async () => {
    problem = await runNpm();
    return problem === null ? 'Packages installed' : null;
  });
  return problem;
};

const runNpm = async () => {
  rmSync(package_stamp, { force: true });
  rmSync(at('node_modules', '.package-lock.json'), { force: true });
  const own = process.env.npm_execpath ?? '';
  const [command, first] = own.endsWith('npm-cli.js') ? [process.execPath, [own]] : ['npm', []];
  const flags = ['--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  const { code, output } = await runQuietly(command, [
    ...first,
    'ci',
    ...flags,
    '--ignore-scripts',
    '--loglevel=error',
  ]);
  if (code !== 0) return `${output}\nnpm ci failed, so the packages are not installed. See above.`;
  writeFileSync(package_stamp, packageHash());
  // The incremental state of the compiler describes the old packages, so it is deleted.
  rmSync(at('dist', '.tsbuildinfo'), { force: true });
  return null;
};

const isLink = (file) => lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** Stops the command if this process is stopped: an npm left behind would disturb the next run. */
const runQuietly = (command, args) =>
  new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks = [];
    const stop = (signal) => {
      child.kill('SIGTERM');
      child.once('close', () => process.exit(signal === 'SIGINT' ? 130 : 143));
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, stop);
    const finish = (code) => {
      for (const signal of signals) process.removeListener(signal, stop);
      resolve({ code, output: Buffer.concat(chunks).toString('utf8').trimEnd() });
    };
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    child.once('error', (error) => {
      chunks.push(Buffer.from(`${command}: ${error.message}`));
      finish(1);
    });
    child.once('close', (code) => finish(code ?? 1));
  });

const listFiles = (folder) => {
  const found = [];
  const walk = (relative) => {
    for (const entry of readdirSync(at(relative), { withFileTypes: true })) {
      const name = `${relative}/${entry.name}`;
      if (entry.isDirectory()) walk(name);
      else if (entry.isFile()) found.push(name);
    }
  };
  if (existsSync(at(folder))) walk(folder);
  return found;
};

/** These types are made from the service's routes and events, and are not in git. */
const client_types = 'clients/typescript/src/wire.ts';

const listSources = () =>
  source_folders
    .flatMap(listFiles)
    .filter((name) => name !== client_types)
    .sort();

const buildHash = () => {
  const lines = listSources().map((name) => {
    const { size, mtimeMs } = statSync(at(name));
    return `${name} ${size} ${mtimeMs}`;
  });
  const settings = ['tsconfig.json', client_project].map((name) => readOrEmpty(at(name)));
  return hash([...settings, packageHash(), ...lines].join('\n'));
};

const python_types = 'clients/python/prediction_forum/wire.py';

const hasClientTypes = () =>
  (existsSync(at(client_types)) && existsSync(at(python_types))) ||
  !existsSync(at('src', 'tools', 'client-types.ts'));

const hasClientPackage = () => existsSync(client_package) || !existsSync(at(client_project));

const buildCurrent = () =>
  hasClientTypes() && hasClientPackage() && readOrEmpty(build_stamp) === buildHash();

const isAsset = (name) => !/\.(tsx?|mts|cts)$/.test(name);
const outputsOf = (name) =>
  isAsset(name)
    ? [name]
    : name.endsWith('.d.mts') || name.endsWith('.d.ts')
      ? []
      : [name.replace(/tsx?$/, 'js'), name.replace(/tsx?$/, 'js.map')];

const tsc = (...words) =>
  runQuietly(process.execPath, [at('node_modules', 'typescript', 'bin', 'tsc'), '-p', ...words]);

const compileOnce = () => tsc(root);

/**
 * Compiles, makes the types of the client library with the result, and compiles again if the types
 * changed. If the first compilation fails too early for that, its error is returned.
 */
const compile = async () => {
  const first = await compileOnce();
  const maker = at('dist', 'src', 'tools', 'client-types.js');
  if (!existsSync(maker)) return first;
  const before = readOrEmpty(at(client_types));
  const made = await runQuietly(process.execPath, [maker]);
  if (first.code === 0 && made.code !== 0) return { ...made, is_compiled: true };
  return readOrEmpty(at(client_types)) === before ? first : compileOnce();
};

/**
 * Compiles the client library again, for its users. Browsers load these modules unchanged, so they
 * are compiled against browser APIs. The comments are only in the declarations.
 */
const compileClient = async () => {
  if (!existsSync(at(client_project))) return { code: 0, output: '' };
  // Otherwise, outputs of deleted sources would become part of the library.
  rmSync(client_package, { recursive: true, force: true });
  const types_only = ['--declaration', '--emitDeclarationOnly', '--removeComments', 'false'];
  const runs = await Promise.all([tsc(client_project), tsc(client_project, ...types_only)]);
  return runs.find(({ code }) => code !== 0) ?? runs[0];
};

/** Errors in sources have a number. Without a number, the compiler did not reach the sources. */
const sayFailed = (output, is_compiled = false) => {
  if (is_compiled) {
    return 'The compiled sources do not load, so nothing was started. A ReferenceError “before initialization” means that the imports form a cycle.';
  }
  return /error TS\d+/.test(output)
    ? 'The sources do not compile, so nothing was started.'
    : 'The compiler did not finish, so nothing was started. If there is no message above, there may be too little memory. 2 GB is needed.';
};

const build = async (terminal) => {
  let problem = null;
  await terminal.step('Compiling the sources (about a minute the first time)', async () => {
    problem = await buildAll(terminal.update);
    return problem === null ? 'Built' : null;
  });
  return problem;
};

const buildAll = async (update) => {
  const current = buildHash();
  rmSync(build_stamp, { force: true });
  const sources = listSources();
  const outputs = new Set([...sources, client_types].flatMap(outputsOf));
  for (const name of sources.filter(isAsset)) cpSync(at(name), at('dist', name));
  let { code, output, is_compiled = false } = await compile();
  const missing = sources.flatMap(outputsOf).some((name) => !existsSync(at('dist', name)));
  if (code === 0 && missing) {
    // The compiler's incremental state does not notice if somebody deletes output files.
    rmSync(at('dist', '.tsbuildinfo'), { force: true });
    ({ code, output, is_compiled = false } = await compile());
  }
  if (code !== 0) return `${output}\n${sayFailed(output, is_compiled)}`;
  update('Compiling the client library');
  ({ code, output } = await compileClient());
  if (code !== 0) return `${output}\n${sayFailed(output)}`;
  // Remove outputs whose source is gone: otherwise a deleted test would still run.
  for (const name of source_folders.flatMap((folder) => listFiles(`dist/${folder}`))) {
    if (!outputs.has(name.slice('dist/'.length))) rmSync(at(name));
  }
  writeFileSync(build_stamp, current);
  return null;
};
