import { runImport } from './import/run.js';

/** `npm run import -- FILE`: see `--help`. The first Ctrl-C ends it between two calls. */
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.exitCode = await runImport({
  argv: process.argv.slice(2),
  screen: process.stdout,
  stop: stop.signal,
});
