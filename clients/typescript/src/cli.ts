#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { printable } from './printable.js';
import { QuickstartStopped, quickstart, quickstart_options, quickstartHelp } from './quickstart.js';

/** The command `prediction-forum quickstart`, which is also called `prediction-forum-client`. */

const default_address = 'http://127.0.0.1:8080';
const help = quickstartHelp('prediction-forum quickstart', default_address);
const options = { ...quickstart_options, help: { type: 'boolean', short: 'h' } } as const;

const say = (lines: string): void => void process.stdout.write(`${printable(lines)}\n`);

const run = async ([command, ...args]: readonly string[]): Promise<void> => {
  let parsed: ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [sentence] = (error as Error).message.split('. ');
    throw new QuickstartStopped(`${sentence}. See --help.`, 2);
  }
  const { values, positionals } = parsed;
  if (values.help === true || command === '--help' || command === '-h') return say(help);
  if (command !== 'quickstart' || positionals.length > 1) throw new QuickstartStopped(help, 2);
  await quickstart({ address: positionals[0] ?? default_address, values, say });
};

run(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${printable(error.message)}\n`);
  process.exitCode = error instanceof QuickstartStopped ? error.exit_code : 1;
});
