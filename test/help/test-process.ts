import { on } from 'node:events';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { t as root } from 'tap';
import { runFile } from './tap.js';
import { no_more } from './tap-reader.js';

/**
 * A process that runs test files one after another, as `run-files.ts` names them. Files of a folder
 * load mostly the same modules, which takes longer than many of the tests; here it is done once.
 */

// A file has a time limit, which the parent keeps; the process has none.
root.setTimeout(0);

// Between two files nothing else may be open, which tap takes for the end of the tests.
const open = setInterval(() => undefined, 60_000);
for await (const [file] of on(process, 'message')) {
  if (file === no_more) break;
  process.send?.('begun');
  await runFile(file, () => import(pathToFileURL(path.resolve(file)).href));
}
clearInterval(open);
process.disconnect();
