import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { commands } from '../../src/boot/commands.mjs';
import { engineProblem } from '../../src/boot/machine.mjs';
import { settings } from '../../src/config.js';
import { npm_package, pip_package } from '../../src/features/docs/downloads.js';
import { project_root } from '../help/own-stores.js';
import { runProgram, startProgram } from '../help/run-command.js';
import { endService } from '../help/service.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** The files in `examples/deploy` start the service, and use only existing settings and paths. */

const folder = path.join(project_root, 'examples', 'deploy');
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

type Json = Record<string, unknown>;
const readYaml = (name: string): readonly Json[] =>
  parseAllDocuments(read(name)).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as Json;
  });

/** Returns the upper-case names that are not settings of the program. */
const areSettings = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !Object.hasOwn(settings, name));

/** Installs packages as the Dockerfile does, without unused files. Returns the folder. */
const makePackages = (t: Pick<Test, 'equal'>, build: string): string => {
  const packages = path.join(build, 'node_modules');
  const run = (command: string, ...words: string[]) =>
    execFileSync(command, words, { cwd: build, stdio: 'pipe', encoding: 'utf8' });
  for (const name of ['package.json', 'package-lock.json', 'examples/deploy/trim.mjs']) {
    cpSync(path.join(project_root, name), path.join(build, name));
  }
  run('cp', '-al', path.join(project_root, 'node_modules'), packages);
  // npm writes to this file, which is shared with the checkout.
  rmSync(path.join(packages, '.package-lock.json'));
  const steps = [
    ...read('Dockerfile').matchAll(/^ {2}&& (npm prune .*?|node examples.*?)(?: \\)?$/gm),
  ];
  t.equal(steps.length, 2);
  for (const [, step = ''] of steps) run('sh', '-ec', step);
  return packages;
};

t.test('the image has a Node that the engine has a binary for', async (t) => {
  const { engines } = JSON.parse(readFileSync(path.join(project_root, 'package.json'), 'utf8'));
  const [, major = ''] = /^FROM node:(\d+)-trixie-slim$/m.exec(read('Dockerfile')) ?? [];
  t.equal(engines.node, '^20.11 || ^22 || ^24');
  const machine = { platform: 'linux', node: `${major}.1.0`, glibc: '2.41', descriptors: 65_536 };
  t.equal(engineProblem(machine), null);
});

t.test('the image has all that the program needs, and no more', { timeout: 0 }, async (t) => {
  const app = t.testdir({});
  const packages = makePackages(t, path.join(app, 'build'));
  const mb = Number(execFileSync('du', ['-sm', packages], { encoding: 'utf8' }).split('\t')[0]);
  t.ok(mb <= 145, `the packages have ${mb} MB, 30 of them fonts`);
  t.strictSame(
    readdirSync(path.join(packages, 'uWebSockets.js')).filter((name) => name.endsWith('.node')),
    [`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`],
  );
  const copies = [...read('Dockerfile').matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S+)$/gm)];
  t.ok(copies.length > 5);
  for (const [, from = '', to = ''] of copies) {
    const [source, target] = [path.join(project_root, from), path.join(app, to)];
    mkdirSync(path.dirname(target), { recursive: true });
    if (from === 'node_modules') renameSync(packages, target);
    else cpSync(source, target, { recursive: true });
  }
  const stores = await openStores(t);
  const data = path.join(app, 'data');
  const env = {
    NODE_ENV: 'production',
    PORT: '0',
    DATA_DIR: data,
    API_PROCESSES: '1',
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
  };
  const program = path.join(app, 'src', 'boot', 'run.mjs');
  const migrated = await runProgram({ ...env, PROGRAM: program }, 'migrate', '--json');
  t.match(migrated.document, { ok: true, applied: [] }, migrated.errors);
  const service = startProgram({ ...env, PROGRAM: program }, 'start', '--json');
  t.teardown(() => endService(service, data));
  let output = '';
  service.stdout?.on('data', (piece) => (output += piece));
  await until('it runs', () => output.endsWith('\n'));
  const { url } = JSON.parse(output);
  for (const at of ['/health', '/', '/docs/guide/commands', '/docs', npm_package, pip_package]) {
    t.equal((await fetch(`${url}${at}`)).status, 200, at);
  }
  t.notOk(existsSync(path.join(app, 'dist', '.stamp')), 'nothing was built');
});

t.test('compose sets settings that there are, and starts after what it needs', async (t) => {
  const [compose] = readYaml('compose.yaml');
  const { services } = compose as { services: Record<string, Json> };
  const { environment, depends_on, build } = services['forum'] as Record<string, Json>;
  t.same(areSettings(Object.keys(environment ?? {})), []);
  t.same(Object.keys(depends_on ?? {}), ['postgres', 'redis']);
  t.ok(existsSync(path.join(folder, String(build?.['context']), String(build?.['dockerfile']))));
});

t.test('the manifests run commands that there are, with settings that there are', async (t) => {
  const [config, secret] = readYaml('kubernetes/config.yaml');
  const names = [config?.['data'], secret?.['stringData']].flatMap((one) =>
    Object.keys(one as object),
  );
  t.same(areSettings(names), []);
  const all = readYaml('kubernetes/forum.yaml');
  t.same(
    all.map(({ kind }) => kind),
    ['Deployment', 'Service', 'PodDisruptionBudget', 'Ingress'],
  );
  const text = JSON.stringify(all[0]);
  for (const [, command = ''] of text.matchAll(/"args":\["([\w-]+)"/g)) {
    t.ok(Object.hasOwn(commands, command), command);
  }
  t.match(text, /"path":"\/readyz".*"path":"\/livez"/);
});

t.test('the unit is one that systemd takes', async (t) => {
  const unit = read('prediction-forum.service');
  const [, file = ''] = /^ExecStart=.* node (\S+) start$/m.exec(unit) ?? [];
  t.ok(existsSync(path.join(project_root, file)));
  if (!existsSync('/usr/bin/systemd-analyze')) return t.comment('systemd-analyze is not there');
  const verified = path.join(folder, 'prediction-forum.service');
  t.doesNotThrow(() =>
    execFileSync('systemd-analyze', ['verify', '--man=no', verified], { stdio: 'pipe' }),
  );
});
