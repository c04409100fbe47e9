import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Filled, fillBlocks } from './markdown.js';
import { makeTables } from './tables.js';

/** What is made of the service's own values, in a checkout: written anew, or compared. */

export interface DocsOptions {
  readonly argv: readonly string[];
  /** The checkout. */
  readonly root: string;
  say(line: string): void;
}

const help = `Usage: npm run docs [-- --check]

Writes the tables of docs/reference.md from the routes, events, faults, limits and settings of the service.

  --check   change nothing; exit code 1 when something is not what it should be`;

const reference = 'docs/reference.md';

/** What the reference should be; its text as it is comes in, so that a test can try others. */
export const fillReference = (root: string, text: string): Filled => {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  return fillBlocks(text, makeTables(scripts));
};

const readOptions = (argv: readonly string[]): { readonly check: boolean } | string => {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    return values.help ? help : { check: values.check };
  } catch (error) {
    return `${error instanceof Error ? error.message : error}\n\n${help}`;
  }
};

/** Exit code: 0 everything is right (now), 1 not. */
export const runDocs = (asked: DocsOptions): number => {
  const { argv, root, say } = asked;
  const options = readOptions(argv);
  if (typeof options === 'string') {
    say(options);
    return argv.includes('--help') ? 0 : 1;
  }
  const file = path.join(root, reference);
  const { text, changed, problems } = fillReference(root, readFileSync(file, 'utf8'));
  for (const problem of problems) say(`${reference}: ${problem}`);
  if (problems.length > 0) return 1;
  if (changed.length === 0) {
    say(`${reference}: every table is right.`);
    return 0;
  }
  if (!options.check) writeFileSync(file, text);
  const names = changed.join(', ');
  say(
    options.check
      ? `${reference}: not what the service is: ${names}. Run: npm run docs`
      : `${reference}: written anew: ${names}.`,
  );
  return options.check ? 1 : 0;
};
