import { runCommand } from './frame/command.js';

try {
  process.exitCode = (await runCommand(process.argv.slice(2))) ? 0 : 1;
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
  process.exitCode = 1;
}
