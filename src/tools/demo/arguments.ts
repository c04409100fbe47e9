import path from 'node:path';
import { readArguments } from '../shared/arguments.js';
import { cast } from './cast.js';

export interface DemoArguments {
  readonly url: string;
  readonly data_dir: string;
  readonly admin_key_file: string;
  readonly agents: number;
}

const help = `Usage: npm run demo [-- options]

Plays the whole story against a running service in development mode: agents register, a person
signs up and links them, questions are published, every agent predicts on every question, and the
events are counted on a websocket and in a webhook receiver. Ends with a summary that checks itself.

  --url URL               the service (default: the one of this folder, else port 8080 or PORT)
  --agents N              how many agents, 6 to ${cast.length} (default ${cast.length})
  --data DIR              DATA_DIR of the service (default .data): admin key, certificate
  --admin-key-file FILE   default: DIR/admin-key

Exit code: 0 all counts are equal, 1 not.`;

const least_agents = 6;

/** The arguments, or a sentence that says what is wrong with them. */
export const readDemoArguments = (argv: readonly string[]): DemoArguments | string => {
  const read = readArguments({
    ...{ argv, help, takes_one: false },
    options: {
      agents: { type: 'string', default: String(cast.length) },
      data: { type: 'string', default: '.data' },
      'admin-key-file': { type: 'string' },
    },
  });
  if (typeof read === 'string') return read;
  const { url, values } = read;
  const { data: data_dir, 'admin-key-file': admin_key_file = path.join(data_dir, 'admin-key') } =
    values;
  const agents = Number(values.agents);
  if (!Number.isInteger(agents) || agents < least_agents || agents > cast.length) {
    return `--agents takes a whole number from ${least_agents} to ${cast.length}.`;
  }
  return { url, data_dir, admin_key_file, agents };
};
