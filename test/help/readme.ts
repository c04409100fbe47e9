import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { project_root } from './own-stores.js';

/** Reads the README for tests, which run its examples unchanged. */

export const readDocument = (name: string): string =>
  readFileSync(path.join(project_root, name), 'utf8');

/** The text between `<!-- name:begin -->` and `<!-- name:end -->`. */
export const readMarked = (document: string, name: string): string => {
  const [, found] = document.split(new RegExp(`^<!-- ${name}:(?:begin|end) -->$`, 'm'));
  if (found === undefined) throw new Error(`There is no part "${name}".`);
  return found;
};

/** The same text with blanks in place of its code blocks, in which comments look like headings. */
const blankCode = (text: string): string =>
  text.replace(/^```.*?^```$/gms, (block) => ' '.repeat(block.length));

/** The text under a heading, up to the next heading of the same or a higher level. */
export const readSection = (document: string, heading: string): string => {
  const level = /^#+/.exec(heading)?.[0].length ?? 0;
  const start = document.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`There is no heading "${heading}".`);
  const rest = document.slice(start + heading.length + 2);
  const end = blankCode(rest).search(new RegExp(`^#{1,${level}} `, 'm'));
  return end === -1 ? rest : rest.slice(0, end);
};

/** The fenced blocks in one language, in order. */
export const readFenced = (text: string, language: string): readonly string[] =>
  Array.from(
    text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')),
    ([, code]) => code ?? '',
  );

/** The output that an example promises in its comment lines. */
export const promisedOutput = (code: string): readonly string[] =>
  code
    .split('\n')
    .filter((line) => line.startsWith('# '))
    .map((line) => line.slice(2));

/** A line of output without the parts that differ between runs. */
export const shapeOf = (line: string): string =>
  line
    .replace(/\b(sk|hv|hs)_[\w-]{40,}/g, '<$1>')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<id>')
    .replace(/First Light \d+/g, 'First Light <number>')
    .replace(/"latency_ms":\d+/g, '"latency_ms":<number>');

/**
 * Runs a script with bash, by default in the checkout. The first command that fails ends the
 * script.
 */
export const runBash = (
  script: string,
  env: Readonly<Record<string, string>>,
  cwd = project_root,
) =>
  new Promise<{ code: number; lines: readonly string[]; errors: string }>((resolve) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: 60_000 };
    execFile(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', script],
      options,
      (error, output, errors) => {
        const lines = output.split('\n').filter((line) => line !== '');
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), lines, errors });
      },
    );
  });

/** Runs an example module with Node, by default in the checkout, until it is stopped. */
export const runModule = (
  code: string,
  env: Readonly<Record<string, string>>,
  cwd = project_root,
) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return {
    /** Everything that the module has written so far, errors included. */
    output: () => output,
    /** The exit code of the module. Null if it was stopped. */
    ended: new Promise<number | null>((resolve) => child.once('close', resolve)),
    stop: () => child.kill('SIGKILL'),
  };
};
