import { runDemo } from './demo/run.js';

/** `npm run demo`: see `--help`. The first Ctrl-C ends it and cleans up. */
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.exitCode = await runDemo({
  argv: process.argv.slice(2),
  screen: process.stdout,
  stop: stop.signal,
});
