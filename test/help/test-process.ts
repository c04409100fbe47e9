import { on } from 'node:events';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { t as root } from 'tap';
import { runFile } from './tap.js';
import { begun, no_more } from './tap-reader.js';

/**
 * A process that runs the test files that `run-files.ts` sends it, one after another. The files of
 * a folder mostly load the same modules. Loading takes longer than many tests, and here it is done
 * once.
 */

// The parent limits the time of each file; the process has no limit of its own.
root.setTimeout(0);

// Keeps the process alive between two files. Otherwise tap might think that the tests are over.
const open = setInterval(() => undefined, 60_000);
for await (const [file] of on(process, 'message')) {
  if (file === no_more) break;
  process.send?.(begun);
  await runFile(file, () => import(pathToFileURL(path.resolve(file)).href));
}
clearInterval(open);
process.disconnect();
