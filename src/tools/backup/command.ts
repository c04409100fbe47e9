import { parseArgs } from 'node:util';
import { ConfigError } from '../../config.js';
import { isOutage } from '../../kit/pg/client.js';
import { DamagedFile } from './archive.js';
import type { Line } from './tables-store.js';

/** What the two commands have in common at the terminal: arguments, errors in plain words. */

export const sayRows = ({ table, rows }: Line): void => {
  if (rows > 0) console.log(`  ${table.padEnd(24)} ${rows.toLocaleString('en-US').padStart(12)}`);
};

const system_problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'this user may not read or write it',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

const explain = (error: unknown, file: string): string => {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof ConfigError) return error.message;
  if (error instanceof DamagedFile) return `${file} cannot be used: ${error.message}.`;
  const problem = system_problems[String((error as NodeJS.ErrnoException).code)];
  if (problem !== undefined) return `${file}: ${problem}.`;
  return isOutage(error) ? `Postgres does not answer: ${error.message}.` : error.message;
};

export interface Command {
  readonly help: string;
  readonly flags: readonly string[];
  /** Used when none is given; without it the command shows its help. */
  readonly file?: string;
  /** Said after an error. */
  readonly nothing_done: string;
  readonly work: (file: string, isSet: (flag: string) => boolean) => Promise<void>;
}

/** An error is told in one sentence, and the exit code is 1. */
export const runCommand = async (command: Command): Promise<void> => {
  const { help, flags, nothing_done, work } = command;
  const options = Object.fromEntries(
    [...flags, 'help'].map((flag) => [flag, { type: 'boolean' } as const]),
  );
  let file = command.file ?? '';
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    file = positionals[0] ?? file;
    const is_asked = values['help'] === true;
    if (!is_asked && file !== '') return await work(file, (flag) => values[flag] === true);
    console.log(help);
    process.exitCode = is_asked ? 0 : 1;
  } catch (error) {
    console.error(`${explain(error, file)} ${nothing_done}`);
    process.exitCode = 1;
  }
};
