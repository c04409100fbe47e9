import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

/**
 * `node examples/deploy/trim.mjs node_modules` removes from production packages the files that this
 * Node never loads on this machine: engine binaries for other platforms, source maps, types, static
 * libraries and notes.
 */

const [folder] = process.argv.slice(2);
const { platform, arch, versions } = process;
const engine = `uws_${platform}_${arch}_${versions.modules}.node`;
const unused = /\.(?:map|[cm]?ts|a|md)$/i;

const isUnused = (name) => unused.test(name) || (/^uws_.*\.node$/.test(name) && name !== engine);

for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  const is_licence = /licen[cs]e|notice/i.test(entry.name);
  if (entry.isFile() && isUnused(entry.name) && !is_licence) {
    rmSync(path.join(entry.parentPath, entry.name));
  }
}
