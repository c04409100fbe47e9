import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type Arguments, readArguments } from './arguments.js';
import { readFloors } from './floors.js';
import { runBench } from './frame.js';
import { printable, type Result } from './report.js';
import type { Bench } from './types.js';

export interface CommandOptions {
  /** Every bench by its name; loaded only when it is asked for. */
  readonly benches: Readonly<Record<string, () => Promise<Bench>>>;
  readonly floors_file: string;
  /** The result. */
  print(text: string): void;
  /** What goes on meanwhile. */
  tell(line: string): void;
  readonly stop?: AbortSignal;
}

const measure = async (args: Arguments, options: CommandOptions): Promise<Result> => {
  const bench = await options.benches[args.bench]!();
  const folder = mkdtempSync(path.join(os.tmpdir(), `pf-bench-${args.bench}-`));
  // Postgres runs as another user under root and has to pass through.
  chmodSync(folder, 0o711);
  try {
    const { tell, stop } = options;
    const context = { ...args, folder, tell, ...(stop === undefined ? {} : { stop }) };
    return await runBench(bench, context, readFloors(options.floors_file, args.bench));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const save = (file: string, result: Result): void => {
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
};

/** Exit code: 0 when every floor is met, 1 when not or when a round failed, 2 on wrong words. */
export const runCommand = async (
  argv: readonly string[],
  options: CommandOptions,
): Promise<number> => {
  let args: Arguments;
  try {
    args = readArguments(argv, Object.keys(options.benches));
  } catch (error) {
    options.tell(error instanceof Error ? error.message : String(error));
    return 2;
  }
  try {
    const result = await measure(args, options);
    options.print(printable(result).join('\n'));
    if (args.json !== undefined) save(args.json, result);
    return result.met ? 0 : 1;
  } catch (error) {
    const shown = error instanceof Error ? (error.stack ?? error.message) : String(error);
    options.tell(`The bench failed: ${shown}`);
    return 1;
  }
};
