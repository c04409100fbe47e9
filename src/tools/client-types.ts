import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeClientWire, wire_file } from './docs/client-wire.js';

/** Writes the types of the client library where they differ; the build runs it. */
const file = path.resolve(import.meta.dirname, '../../..', wire_file);
const wanted = makeClientWire();
if (!existsSync(file) || readFileSync(file, 'utf8') !== wanted) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, wanted);
}
