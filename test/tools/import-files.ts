import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runImport } from '../../src/tools/import.js';
import type { TestApp } from '../help/app.js';
import type { Teardown } from '../help/stores.js';

/** `npm run import` against a service that the test starts, with files that the test writes. */
export const openImport = (t: Teardown, app: TestApp) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-import-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const write = (name: string, content: string | Buffer): string => {
    const file = path.join(folder, name);
    writeFileSync(file, content);
    return file;
  };
  const key_file = write('admin-key', `${app.admin_key}\n`);
  return {
    write,
    /** Writes a file of records. Strings are written unchanged. */
    writeLines: (name: string, records: readonly unknown[]): string => {
      const lines = records.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
      return write(name, lines.map((line) => `${line}\n`).join(''));
    },
    async run(file: string, argv: readonly string[] = [], stop?: AbortController) {
      let output = '';
      const screen = { write: (text: string) => (output += text) };
      const code = await runImport({
        argv: [file, '--url', app.url, '--admin-key-file', key_file, ...argv],
        screen,
        patience_ms: 5_000,
        ...(stop === undefined ? {} : { stop: stop.signal }),
      });
      return { code, output };
    },
  };
};
