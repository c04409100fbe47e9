import { readConfig } from '../config.js';
import { runSupervisor } from '../process/supervisor.js';
import { type Call, runCommand } from './command.js';

const help = `Usage: prediction-forum start

Runs the service until it is stopped (SIGINT or SIGTERM; a second one ends it by force). Everything
is set by the environment; prediction-forum doctor lists the settings.

With --json the document comes once the service runs; what it says then goes to the standard error.

Exit code: 0 it was stopped; 1 it could not start, or was stopped by force; 2 a setting is wrong, or the
schema of the database is an older one, which an older program has to upgrade first.`;

/** `entry`: the program of the role processes. */
export const runStart = (call: Call, entry: string): Promise<number> =>
  runCommand(call, {
    help,
    options: {},
    work: (values, _, { report }) =>
      runSupervisor({
        config: readConfig(),
        env: process.env,
        entry,
        ...(values.json === true ? { onRunning: report } : {}),
      }),
  });
