import { existsSync } from 'node:fs';
import path from 'node:path';
import {
  QuickstartStopped,
  quickstart,
  quickstart_options,
  quickstartHelp,
} from '#client/quickstart.js';
import {
  type Call,
  localUrl,
  readPlaces,
  runCommand,
  Stopped,
  startCommand,
  writeLine,
} from './command.js';

/** `prediction-forum quickstart`: the client library's quickstart for this folder's service. */

const help = quickstartHelp(
  'prediction-forum quickstart',
  'the one in this folder, else port 8080 or PORT',
);

/** Only the service of this folder gets its admin key automatically. */
const ownAdminKey = () => {
  const file = path.join(readPlaces().DATA_DIR, 'admin-key');
  return existsSync(file) ? { 'admin-key-file': file } : {};
};

export const runQuickstart = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: quickstart_options,
    takes: [0, 1],
    async work(typed, [address], { screen }) {
      const values = address === undefined ? { ...ownAdminKey(), ...typed } : typed;
      const say = (lines: string): void => writeLine(screen, lines);
      try {
        const result = await quickstart({ address: address ?? localUrl(), values, say });
        return { code: 0, result };
      } catch (error) {
        if (!(error instanceof QuickstartStopped)) throw error;
        throw new Stopped(error.message, error.exit_code);
      }
    },
  });

await startCommand(import.meta.filename, runQuickstart);
