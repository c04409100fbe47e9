import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { readOrEmpty } from './processes.js';

/**
 * Postgres refuses to run as root. Under root it runs as another user of the system, and what that
 * user can reach is found out by really trying: a checkout may lie in a folder with mode 0700, on a
 * mount without exec or with user mapping, and no rule about modes covers all of it.
 */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Null when this process is not root: then Postgres runs as the same user. */
export const chooseAccount = (): Account | null => {
  if (process.getuid?.() !== 0) return null;
  const users = readOrEmpty('/etc/passwd')
    .split('\n')
    .map((line) => line.split(':'));
  const user =
    users.find((fields) => fields[0] === 'postgres') ??
    users.find((fields) => fields[0] === 'nobody');
  return { uid: Number(user?.[2] ?? 65_534), gid: Number(user?.[3] ?? 65_534) };
};

/** Who a cluster that is already there belongs to; that user goes on running it. */
export const ownerOf = (folder: string): Account | null => {
  const { uid, gid } = statSync(folder);
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
};

export interface Attempt {
  readonly ok: boolean;
  readonly output: string;
}

interface AttemptOptions {
  readonly account: Account | null;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** Runs a command to its end as the account; a command that cannot be started is not ok. */
export const runAs = (
  [command = '', ...args]: readonly string[],
  { account, env, input = '' }: AttemptOptions,
): Attempt => {
  const result = spawnSync(command, args, {
    cwd: '/',
    input,
    encoding: 'utf8',
    timeout: 120_000,
    ...(env === undefined ? {} : { env }),
    ...(account ?? {}),
  });
  const output = result.error?.message ?? `${result.stdout}${result.stderr}`;
  return { ok: result.status === 0, output };
};

/** Whether the account can write files in the folder. */
export const canWrite = (folder: string, account: Account | null): boolean =>
  runAs(['sh', '-c', 'cd "$0" && : > .probe && rm .probe', folder], { account }).ok;
