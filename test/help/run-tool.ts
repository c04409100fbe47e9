import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { project_root } from './own-stores.js';

export interface ToolRan {
  readonly code: number | null;
  /** What it wrote, errors last. */
  readonly output: string;
}

/** Runs a command of `src/tools` to its end, with these settings and no others. */
export const runTool = async (
  tool: string,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<ToolRan> => {
  const entry = path.join(project_root, 'dist', 'src', 'tools', `${tool}.js`);
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, output: output + errors };
};
