import { pino } from 'pino';
import { publicUrl, readConfig } from '../config.js';
import { rebuildTallies } from '../features/consensus/index.js';
import { rebuildStream } from '../features/events/index.js';
import { rebuildBoards } from '../features/leaderboards/index.js';
import type { Deps } from '../http/deps.js';
import { type Call, readAction, runCommand, startCommand, writeLine } from './command.js';
import { withBoth } from './stores.js';

const rebuilds = {
  consensus: async (deps: Deps) => {
    await rebuildTallies(deps);
    return 'every tally';
  },
  boards: async (deps: Deps) => `${await rebuildBoards(deps)} slices`,
  stream: async ({ sql, redis, config }: Deps) =>
    `${await rebuildStream({ sql, redis, prefix: config.REDIS_PREFIX })} entries`,
} as const satisfies Record<string, (deps: Deps) => Promise<string>>;

type Part = keyof typeof rebuilds;
const parts = Object.keys(rebuilds) as readonly Part[];

const help = `Usage: prediction-forum rebuild [PART]

Rebuilds the state in Redis from Postgres: consensus (the tallies of questions), boards
(leaderboards), stream (the end of the log). Without PART it rebuilds all of them. The service may
be running. It restores missing state by itself, so use this command only if the state is wrong.
Then run prediction-forum verify.

Exit code: 0 it is rebuilt; 3 Redis or Postgres does not answer.`;

export const runRebuild = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: {},
    takes: [0, 1],
    work(_, [part], { screen }) {
      const wanted = part === undefined ? parts : [readAction(part, parts)];
      const config = readConfig();
      const say = (line: string): void => writeLine(screen, line);
      const access = { name: 'rebuild', pool: 3, statement_timeout_ms: 300_000, say };
      return withBoth(config, access, async (sql, redis) => {
        const [row] = await sql<{ now: Date }[]>`select now()`;
        const ahead_ms = (row?.now.getTime() ?? Date.now()) - Date.now();
        const deps: Deps = {
          config,
          sql,
          reads: sql,
          redis,
          log: pino({ level: 'silent' }),
          clock: () => new Date(Date.now() + ahead_ms),
          public_url: publicUrl(config),
        };
        const rebuilt: Partial<Record<Part, string>> = {};
        for (const name of wanted) {
          rebuilt[name] = await rebuilds[name](deps);
          say(`${name}: ${rebuilt[name]}`);
        }
        return { code: 0, result: { rebuilt } };
      });
    },
  });

await startCommand(import.meta.filename, runRebuild);
