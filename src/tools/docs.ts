import path from 'node:path';
import { runDocs } from './docs/run.js';

/** `npm run docs [-- --check]`: see `--help`. */
process.exitCode = runDocs({
  argv: process.argv.slice(2),
  root: path.resolve(import.meta.dirname, '../../..'),
  say: (line) => console.log(line),
});
