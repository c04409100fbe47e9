import { execFile } from 'node:child_process';
import path from 'node:path';
import { project_root } from './own-stores.js';

/**
 * Runs a command of `src/tools` to completion, with only these settings. Returns its output, errors
 * last.
 */
export const runTool = (
  tool: string,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const entry = path.join(project_root, 'dist', 'src', 'tools', `${tool}.js`);
    const options = { env: { PATH: process.env['PATH'], ...env }, maxBuffer: 1e8 };
    const child = execFile(process.execPath, [entry, ...args], options, (_, output, errors) => {
      resolve({ code: child.exitCode, output: output + errors });
    });
  });
