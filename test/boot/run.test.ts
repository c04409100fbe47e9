import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { project_root } from '../help/own-stores.js';
import { t } from '../help/tap.js';

const readJson = (file: string) =>
  JSON.parse(readFileSync(path.join(project_root, file), 'utf8')) as {
    readonly version: string;
    readonly dependencies: Readonly<Record<string, string>>;
  };

const askVersion = (folder: string): string => {
  const program = path.join(folder, 'src', 'boot', 'run.mjs');
  return execFileSync(process.execPath, [program, '--version'], { encoding: 'utf8' });
};

const { version, dependencies } = readJson('package.json');
const newest = readdirSync(path.join(project_root, 'sql')).sort().at(-1)?.slice(0, 4);

t.test('--version names program, engine and schema', async (t) => {
  const engine = readJson('node_modules/uWebSockets.js/package.json').version;
  t.equal(
    askVersion(project_root),
    `prediction-forum ${version}\n` +
      `engine uWebSockets.js ${engine}, Node ${process.versions.node}\n` +
      `schema ${Number(newest)}\n`,
  );
});

t.test('--version works before packages are installed, and installs none', async (t) => {
  const folder = t.testdir();
  for (const name of ['package.json', 'sql', 'src/boot']) {
    cpSync(path.join(project_root, name), path.join(folder, name), { recursive: true });
  }
  const [, wanted = ''] = dependencies['uWebSockets.js']?.split('@') ?? [];
  t.match(askVersion(folder), `\nengine uWebSockets.js ${wanted}, Node `);
  t.notOk(existsSync(path.join(folder, 'node_modules')));
  t.notOk(existsSync(path.join(folder, 'dist')));
});

t.test('a start that cannot work says so with exit code 2, before anything is built', async (t) => {
  const folder = t.testdir();
  for (const name of ['package.json', 'sql', 'src/boot', 'tsconfig.json']) {
    cpSync(path.join(project_root, name), path.join(folder, name), { recursive: true });
  }
  const start = (limit: string, env: NodeJS.ProcessEnv = {}) =>
    spawnSync('sh', ['-c', `${limit} exec "$0" src/boot/run.mjs start`, process.execPath], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });
  const few = start('ulimit -n 512;');
  t.equal(few.status, 2);
  t.match(few.stderr, /^A process may open 512 files here .*\n$/);
  const with_path = start('', { PUBLIC_URL: 'https://forum.example/here' });
  t.equal(with_path.status, 2);
  t.match(with_path.stderr, /^PUBLIC_URL: The address must have only .*\n$/);
  t.notOk(existsSync(path.join(folder, 'node_modules')));
  t.notOk(existsSync(path.join(folder, 'dist')));
});
