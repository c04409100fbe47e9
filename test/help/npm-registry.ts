import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { project_root } from './own-stores.js';
import type { EmptyFolder } from './packed-client.js';
import type { Teardown } from './stores.js';

/** A registry on this machine, so that `npm install` works as documented without the network. */

const run = promisify(execFile);

/** Serves one installed package. Returns the registry's URL for `npm_config_registry`. */
export const startNpmRegistry = async (
  t: Teardown,
  name: string,
  { base, env }: EmptyFolder,
): Promise<string> => {
  const source = path.join(project_root, 'node_modules', name);
  const { version } = JSON.parse(readFileSync(path.join(source, 'package.json'), 'utf8'));
  const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', base, source];
  const { stdout } = await run('npm', words, { cwd: base, env });
  const [{ filename }] = JSON.parse(stdout);
  const tarball = readFileSync(path.join(base, filename));
  const server = createServer((request, response) => {
    if (request.url === `/${filename}`) {
      response.end(tarball);
      return;
    }
    const dist = { tarball: `http://${request.headers.host}/${filename}` };
    const versions = { [version]: { name, version, dist } };
    response.statusCode = request.url === `/${name}` ? 200 : 404;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};
