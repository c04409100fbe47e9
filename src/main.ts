import { fileURLToPath } from 'node:url';
import { readConfig } from './config.js';
import { readRoleArgs, runRole } from './process/role-process.js';

/**
 * Runs the command `start`: the supervisor of a whole service. With `--role=…` it runs one process
 * of the service, which the supervisor starts with this same program. Only this file ends the
 * process. Each mode loads only the modules it needs. The code for certificates, for example, takes
 * a fifth of the startup time, and only the supervisor needs it.
 */
const main = async (): Promise<number> => {
  const argv = process.argv.slice(2);
  const args = readRoleArgs(argv);
  if (args === null) {
    const { runStart } = await import('./tools/start.js');
    const [screen, errors] = [process.stdout, process.stderr];
    return runStart({ argv, screen, errors }, fileURLToPath(import.meta.url));
  }
  const { startProcess } = await import('./process/start.js');
  return runRole({ config: readConfig(), args, start: startProcess });
};

// Log rotation may send SIGUSR2 while the program is loading. It must not end the program.
process.on('SIGUSR2', () => undefined);
try {
  process.exit(await main());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
