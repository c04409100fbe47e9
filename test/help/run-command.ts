import { type ChildProcess, execFile, spawn } from 'node:child_process';
import path from 'node:path';
import type { Answered } from './app.js';
import { project_root } from './own-stores.js';

/**
 * Runs `prediction-forum …` in its installed form: the program from `bin`, with only these
 * settings. The setting `PROGRAM` names the program of another installation.
 */
const own_program = path.join(project_root, 'src', 'boot', 'run.mjs');

type Env = Readonly<Record<string, string>>;

const ownEnv = (env: Env): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  ...env,
});

/** Runs a command to completion. `document` is its standard output, if all of it is JSON. */
export const runProgram = (env: Env, ...args: readonly string[]) =>
  new Promise<{ code: number | null; output: string; errors: string; document: Answered['body'] }>(
    (resolve) => {
      const options = { env: ownEnv(env), maxBuffer: 1e8 };
      const child = execFile(env['PROGRAM'] ?? own_program, args, options, (_, output, errors) => {
        const document = output.startsWith('{') ? JSON.parse(output) : undefined;
        resolve({ code: child.exitCode, output, errors, document });
      });
    },
  );

/** Starts a command that keeps running. */
export const startProgram = (env: Env, ...args: readonly string[]): ChildProcess =>
  spawn(env['PROGRAM'] ?? own_program, args, {
    env: ownEnv(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
