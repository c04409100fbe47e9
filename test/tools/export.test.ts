import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { tableFromIPC } from 'apache-arrow';
import { readParquet } from 'parquet-wasm';
import type { Test } from 'tap';
import { seed, seedPredictions } from '../../bench/env/seed.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { runExport } from '../../src/tools/export.js';
import { sha256 } from '../features/exports/world.js';
import { startApp } from '../help/app.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** `npm run export` against a running service. The command is killed partway, then continues. */

const agents = 100;
const questions = 80;
const rows = agents * questions;

const app = await startApp(t, { env: { LIMIT_EXPORTS: '100000' } });
await seed(app.sql, { keys: Array.from({ length: agents }, makeApiKey), questions });
await seedPredictions(app.sql, { agents, questions, from_ms: Date.now() - 86_400_000 });

const makeFolder = (t: Test): string => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-export-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const run = async (...argv: string[]) => {
  let said = '';
  const screen = { write: (text: string) => (said += text) };
  const code = await runExport({ argv, screen, patience_ms: 3_000 });
  return { code, said };
};

const entry = new URL('../../src/tools/export.js', import.meta.url).pathname;

const start = (...argv: string[]): ChildProcess =>
  spawn(process.execPath, [entry, ...argv], { stdio: 'ignore' });

const ended = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve) => child.once('exit', (code) => resolve(code)));

interface Gate {
  readonly url: string;
  /** Forwards everything from now on. */
  open(): void;
}

/** A proxy in front of the service that stops an answer after this many bytes of its body. */
const startGate = async (t: Test, held_after: number): Promise<Gate> => {
  let is_open = false;
  const server: Server = createServer((incoming, answer) => {
    const upstream = request(
      `${app.url}${incoming.url}`,
      { headers: { ...incoming.headers, 'accept-encoding': 'identity' } },
      (given) => {
        answer.writeHead(given.statusCode ?? 500, given.headers);
        let sent = 0;
        given.on('data', (piece: Buffer) => {
          const part = is_open ? piece : piece.subarray(0, Math.max(0, held_after - sent));
          sent += part.byteLength;
          answer.write(part);
          if (part.byteLength < piece.byteLength) given.pause();
        });
        given.on('end', () => answer.end());
        given.on('error', () => answer.destroy());
      },
    );
    upstream.on('error', () => answer.destroy());
    answer.on('close', () => upstream.destroy());
    upstream.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const open = (): void => {
    is_open = true;
  };
  return { url: `http://127.0.0.1:${port}`, open };
};

/** These tests mostly wait. One address may have two concurrent exports. */
t.jobs = 2;
for (const format of ['csv', 'ndjson', 'json', 'parquet']) {
  t.test(
    `killed in between, ${format} is the same to the last byte`,
    { buffered: true },
    async (t) => {
      const folder = makeFolder(t);
      const file = path.join(folder, `killed.${format}`);
      const held_after = format === 'parquet' ? 100_000 : 1_500_000;
      const gate = await startGate(t, held_after);
      const argv = ['predictions', '--format', format, '--out', file, '--url', gate.url];
      const child = start(...argv);
      const gone = ended(child);
      await until('it is half done', () => {
        return existsSync(`${file}.part`) && statSync(`${file}.part`).size === held_after;
      });
      child.kill('SIGKILL');
      await gone;
      t.notOk(existsSync(file), 'nothing that looks finished');
      const { snapshot } = JSON.parse(readFileSync(`${file}.part.json`, 'utf8'));

      gate.open();
      const again = await run(...argv);
      t.match(again, { code: 0, said: /Continuing the export of / });

      const whole = path.join(folder, `whole.${format}`);
      const second = await run(
        ...['predictions', '--format', format, '--out', whole, '--url', app.url],
        ...['--snapshot', snapshot],
      );
      t.equal(second.code, 0, second.said);
      t.ok(readFileSync(file).equals(readFileSync(whole)));
      const manifest = JSON.parse(readFileSync(`${file}.manifest.json`, 'utf8'));
      t.match(manifest, { rows, snapshot, file: { sha256: sha256(readFileSync(file)) } });
      t.notOk(
        existsSync(`${file}.part`) || existsSync(`${file}.part.json`),
        'nothing is left over',
      );
      if (format !== 'parquet') return;
      const table = tableFromIPC(readParquet(readFileSync(file)).intoIPCStream());
      t.equal(table.numRows, rows, 'several row groups');
    },
  );
}

t.test('a part of another export is not gone on with', async (t) => {
  const file = path.join(makeFolder(t), 'a.csv');
  const state = { address: `${app.url}/api/export/predictions`, query: { format: 'ndjson' } };
  writeFileSync(
    `${file}.part.json`,
    JSON.stringify({ ...state, snapshot: '2026-01-01T00:00:00Z' }),
  );
  writeFileSync(`${file}.part`, 'something');
  const argv = ['predictions', '--format', 'csv', '--out', file, '--url', app.url];
  t.match(await run(...argv), { code: 1, said: /belongs to another export.*or delete the file/ });
  t.equal(readFileSync(`${file}.part`, 'utf8'), 'something');
  rmSync(`${file}.part`);
  t.equal((await run(...argv)).code, 0);
});

t.test(
  'a part that does not fit is found by its SHA-256, and the export begins anew',
  async (t) => {
    const file = path.join(makeFolder(t), 'a.ndjson');
    const snapshot = new Date(Date.now() - 10_000).toISOString();
    const state = { address: `${app.url}/api/export/predictions`, query: { format: 'ndjson' } };
    writeFileSync(`${file}.part.json`, JSON.stringify({ ...state, snapshot }));
    writeFileSync(`${file}.part`, 'what is not of this export');
    const { code, said } = await run('predictions', '--out', file, '--url', app.url);
    t.equal(code, 0, said);
    t.match(said, 'The rows have changed since the export started. Starting again.');
    t.equal(readFileSync(file, 'utf8').split('\n').length - 1, rows);
  },
);

t.test('filtered, and nothing is overwritten', async (t) => {
  const file = path.join(makeFolder(t), 'some.csv');
  const argv = ['consensus-history', '--format', 'csv', '--out', file, '--url', app.url];
  const made = await run(...argv, '--model-family', 'gpt');
  t.equal(made.code, 0, made.said);
  const lines = readFileSync(file, 'utf8').split('\r\n');
  t.equal(lines.length - 2, (Math.ceil(agents / 8) * questions) | 0);
  t.match(await run(...argv), { code: 1, said: /already exists\. Give --force/ });
});

t.test('a redirect and a page of somebody else are no export', async (t) => {
  const answers = [
    [302, { location: 'https://forum.example/' }, /is redirected to https:\/\/forum\.example\//],
    [200, { 'content-type': 'Text/HTML' }, /answers with a page, not with an export/],
  ] as const;
  for (const [status, headers, said] of answers) {
    const server = createServer((_, answer) => answer.writeHead(status, headers).end('x'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const out = path.join(makeFolder(t), 'x');
    t.match(await run('predictions', '--url', url, '--out', out), { code: 1, said });
    t.notOk(existsSync(out));
  }
});

t.test('wrong words and refusals are said in a sentence', async (t) => {
  const out = ['--out', path.join(makeFolder(t), 'x')];
  for (const [code, argv, said] of [
    [0, ['--help'], /^Usage: /],
    [
      2,
      ['opinions'],
      /SUBJECT must be predictions, .*comments, or consensus-history, not opinions/,
    ],
    [2, ['predictions', '--format', 'xlsx'], /csv, ndjson, json, parquet, not xlsx/],
    [2, ['predictions', '--url', 'nowhere'], /--url must be an address/],
    [2, ['predictions', '--colour'], /Unknown option "--colour"/],
    [
      1,
      ['predictions', '--since', 'yesterday', '--url', app.url, ...out],
      /refused the export: .*query\.since/,
    ],
    [3, ['predictions', '--url', 'http://127.0.0.1:1', ...out], /sends no export \(/],
  ] as const) {
    const answer = await run(...argv);
    t.match(answer.said, said);
    t.equal(answer.code, code);
  }
});
