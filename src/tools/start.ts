import { readConfig } from '../config.js';
import { runSupervisor } from '../process/supervisor.js';
import { type Call, runCommand } from './command.js';

const help = `Usage: prediction-forum start

Runs the service until it is stopped (SIGINT or SIGTERM; a second one ends it by force). Everything
is set by the environment; prediction-forum doctor lists the settings.

With --json the document comes once the service runs; what it says then goes to the standard error.

Exit code: 0 it was stopped; 1 it failed, or was stopped by force; 2 it cannot start here as things are:
a setting is wrong, this machine lacks something, or the data are of another version.`;

/** `entry` is the program of the role processes. */
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
