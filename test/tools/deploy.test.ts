import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { commands } from '../../src/boot/commands.mjs';
import { settings } from '../../src/config.js';
import { project_root } from '../help/own-stores.js';
import { runProgram, startProgram } from '../help/run-command.js';
import { endService } from '../help/service.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** What `examples/deploy` installs starts, and asks the service for what it has. */

const folder = path.join(project_root, 'examples', 'deploy');
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');

type Json = Record<string, unknown>;
const readYaml = (name: string): readonly Json[] =>
  parseAllDocuments(read(name)).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as Json;
  });

/** Settings of the program, by their names in upper case. */
const areSettings = (names: readonly string[]): readonly string[] =>
  names.filter((name) => !Object.hasOwn(settings, name));

t.test('the image has all that the program needs, and no more', async (t) => {
  const app = t.testdir({});
  const copies = [...read('Dockerfile').matchAll(/^COPY --from=build \/app\/(\S+) \.\/(\S+)$/gm)];
  t.ok(copies.length > 5);
  for (const [, from = '', to = ''] of copies) {
    const [source, target] = [path.join(project_root, from), path.join(app, to)];
    mkdirSync(path.dirname(target), { recursive: true });
    if (from === 'node_modules') symlinkSync(source, target);
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
  for (const at of ['/health', '/', '/docs/guide/commands', '/docs']) {
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
