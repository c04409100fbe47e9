import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/config.js';
import { makeLog } from '../../src/kit/log.js';
import { type RoleArgs, readRoleArgs, runRole } from '../../src/process/role-process.js';
import { runSupervisor } from '../../src/process/supervisor.js';

/**
 * A service under the real supervisor whose roles do almost nothing. The api answers every request
 * with its pid and its settings; the other roles only run. `/exit` ends the api process, `/spin`
 * puts it in an endless loop, and `/busy?8` keeps it busy for eight seconds. The role in `CRASHES`
 * throws soon after it is ready.
 */
const startRole = async (config: ReturnType<typeof readConfig>, role: string) => {
  if (process.env['CRASHES'] === role) {
    setTimeout(() => {
      throw new Error('the disk of this role is gone');
    }, 50);
  }
  if (role !== 'api') {
    const timer = setInterval(() => undefined, 1_000);
    return { stop: async () => clearInterval(timer) };
  }
  const server = createServer((request, response) => {
    if (request.url === '/exit') process.exit(7);
    while (request.url === '/spin');
    const [path, seconds] = request.url?.split('?') ?? [];
    const until_ms = performance.now() + 1_000 * Number(seconds);
    while (path === '/busy' && performance.now() < until_ms);
    const { DATABASE_URL, REDIS_URL, ADMIN_KEY, WEBHOOK_ALLOW_CIDRS, WEBHOOK_CA_FILE } = config;
    const body = { DATABASE_URL, REDIS_URL, ADMIN_KEY, WEBHOOK_ALLOW_CIDRS, WEBHOOK_CA_FILE };
    response.setHeader('connection', 'close');
    response.end(JSON.stringify({ pid: process.pid, ...body }));
  });
  await new Promise<void>((resolve) => server.listen(config.PORT, config.HOST, resolve));
  const { port } = server.address() as AddressInfo;
  return { port, stop: () => new Promise<void>((resolve) => server.close(() => resolve())) };
};

const config = readConfig();

const startLogged = (_: unknown, { role, log_file }: RoleArgs) => {
  makeLog('info', { role, pid: process.pid }, log_file).log.info('starts');
  return startRole(config, role);
};

const args = readRoleArgs(process.argv.slice(2));
const entry = fileURLToPath(import.meta.url);
try {
  process.exit(
    args === null
      ? await runSupervisor({ config, env: process.env, entry })
      : await runRole({ config, args, start: startLogged }),
  );
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
