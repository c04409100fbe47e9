import { runExport } from './export/run.js';

/** `npm run export -- WHAT`: see `--help`. The first Ctrl-C ends it; the same command goes on. */
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.exitCode = await runExport({
  argv: process.argv.slice(2),
  screen: process.stderr,
  stop: stop.signal,
});
