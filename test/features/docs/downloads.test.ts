import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import { npm_package, pip_package } from '../../../src/features/docs/downloads.js';
import { startApp } from '../../help/app.js';
import { project_root } from '../../help/own-stores.js';
import { t } from '../../help/tap.js';

const app = await startApp(t, { roles: ['api'] });

const readPackage = async (file: string) => {
  const answer = await fetch(app.url + file);
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'application/gzip');
  const entries = await unpackTar(gunzipSync(Buffer.from(await answer.arrayBuffer())));
  return new Map(entries.map(({ header, data }) => [header.name, Buffer.from(data ?? [])]));
};

const read = (...names: readonly string[]): string =>
  readFileSync(path.join(project_root, 'clients', ...names), 'utf8');

t.test('the package for npm has the built library and nothing else', async (t) => {
  const files = await readPackage(npm_package);
  t.equal(String(files.get('package/package.json')), read('typescript', 'package.json'));
  const { version } = JSON.parse(read('typescript', 'package.json'));
  t.match(npm_package, `-${version}.tgz`);
  t.ok(files.has('package/dist/index.js') && files.has('package/dist/index.d.ts'));
  t.same(
    [...files.keys()].filter(
      (name) => !/^package\/(?:dist\/|LICENSE|\w+\.(?:json|md)$)/.test(name),
    ),
    [],
  );
});

t.test('the package for pip has the modules, also the generated ones', async (t) => {
  const files = await readPackage(pip_package);
  const root = path.posix.basename(pip_package, '.tar.gz');
  const project = read('python', 'pyproject.toml');
  t.equal(String(files.get(`${root}/pyproject.toml`)), project);
  t.match(root, /version = "(.+)"/.exec(project)?.[1]);
  for (const name of ['__init__.py', 'client.py', 'wire.py', 'py.typed']) {
    t.ok(files.has(`${root}/prediction_forum/${name}`), name);
  }
  t.same(
    [...files.keys()].filter((name) => /test|pycache/.test(name)),
    [],
  );
});

t.test('an unchanged package is 304, and other names are 404', async (t) => {
  const { headers } = await fetch(app.url + npm_package);
  const again = await fetch(app.url + npm_package, {
    headers: { 'if-none-match': headers.get('etag') ?? '' },
  });
  t.equal(again.status, 304);
  for (const name of ['nothing.tgz', '..%2Fpackage.json', 'constructor', 'toString']) {
    t.equal((await fetch(`${app.url}/downloads/${name}`)).status, 404, name);
  }
});
