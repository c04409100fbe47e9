import { readConfig } from '../config.js';
import { runSupervisor } from '../process/supervisor.js';
import { type Call, runCommand } from './command.js';

const help = `Usage: prediction-forum start

Runs the service until SIGINT or SIGTERM stops it. A second signal ends it by force. All settings
are environment variables, and prediction-forum doctor lists them.

With --json it writes the document once the service is running, and all else to standard error.

Exit code: 0 it was stopped; 1 it failed, or was stopped by force; 2 it cannot start here: a setting
is wrong, this machine lacks something, or the data has another version.`;

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
