import path from 'node:path';
import { parseArgs } from 'node:util';
import { localUrl } from '../shared/local-url.js';
import { cast } from './cast.js';

export interface DemoArguments {
  readonly url: string;
  readonly data_dir: string;
  readonly admin_key_file: string;
  readonly agents: number;
}

export const help = `Usage: npm run demo [-- options]

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
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        url: { type: 'string', default: localUrl() },
        agents: { type: 'string', default: String(cast.length) },
        data: { type: 'string', default: '.data' },
        'admin-key-file': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return help;
    const agents = Number(values.agents);
    if (!Number.isInteger(agents) || agents < least_agents || agents > cast.length) {
      return `--agents takes a whole number from ${least_agents} to ${cast.length}.`;
    }
    if (!/^https?:\/\//.test(values.url) || !URL.canParse(values.url)) {
      return `--url takes an address like http://127.0.0.1:8080, not ${values.url}.`;
    }
    return {
      url: values.url,
      data_dir: values.data,
      admin_key_file: values['admin-key-file'] ?? path.join(values.data, 'admin-key'),
      agents,
    };
  } catch (error) {
    return `${error instanceof Error ? error.message : error}\n\n${help}`;
  }
};
