import path from 'node:path';
import { benches } from './benches.js';
import { runCommand } from './frame/command.js';

/** `npm run bench -- NAME …`: see frame/arguments.ts. The first Ctrl-C stops and cleans up. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stop.abort(new Error('Interrupted.')));
}
process.exitCode = await runCommand(process.argv.slice(2), {
  benches,
  floors_file: path.resolve(import.meta.dirname, '../../bench/floors.json'),
  stop: stop.signal,
  print: (text) => process.stdout.write(`${text}\n`),
  tell: (line) => process.stderr.write(`${line}\n`),
});
