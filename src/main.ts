import { fileURLToPath } from 'node:url';
import { readConfig } from './config.js';
import { readRoleArgs, runRole } from './process/role-process.js';

/**
 * Without arguments: the supervisor of a whole service. With `--role=…`: one process of it, which
 * the supervisor starts with this same program. The only place that ends the process. Each loads
 * only what it needs: certificates are the supervisor's alone, and cost a fifth of a start.
 */
const main = async (): Promise<number> => {
  const config = readConfig();
  const args = readRoleArgs(process.argv.slice(2));
  if (args === null) {
    const { runSupervisor } = await import('./process/supervisor.js');
    return runSupervisor({ config, env: process.env, entry: fileURLToPath(import.meta.url) });
  }
  const { startProcess } = await import('./process/start.js');
  return runRole({ config, args, start: startProcess });
};

try {
  process.exit(await main());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
