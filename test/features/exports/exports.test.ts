import { get, type IncomingMessage } from 'node:http';
import type { Test } from 'tap';
import { seed, seedPredictions } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { cutSlowReaders } from '../../../src/features/exports/exports.js';
import { startApp } from '../../help/app.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { readLines } from './world.js';

/** Limits on concurrent exports and on their duration, and the moment that an export represents. */

const agents = 100;
const questions = 80;
const path = '/api/export/predictions';
const app = await startApp(t, { roles: ['api'], env: { LIMIT_EXPORTS: '100000' } });
await seed(app.sql, { keys: Array.from({ length: agents }, makeApiKey), questions });
await seedPredictions(app.sql, { agents, questions, from_ms: Date.now() - 86_400_000 });

const piece_bytes = 65_536;

/** Number of pieces, out of 100, that a reader gets if each takes it this long. */
const readAt = async (ms_per_piece: number): Promise<number> => {
  let now_ms = 0;
  let read = 0;
  async function* pieces() {
    for (let n = 0; n < 100; n += 1) yield new Uint8Array(piece_bytes);
  }
  try {
    for await (const _ of cutSlowReaders(pieces(), () => now_ms)) {
      read += 1;
      now_ms += ms_per_piece;
    }
  } catch {
    return read;
  }
  return read;
};

t.test('a reader slower than 64 KiB a second is cut after a minute', async (t) => {
  t.equal(await readAt(0), 100);
  t.equal(await readAt(1_000), 100, '64 KiB a second');
  t.equal(await readAt(1_100), 55);
  t.equal(await readAt(9_000), 7);
});

t.test('a snapshot lies before every transaction that may still write', async (t) => {
  const snapshotOf = async () => {
    const { headers } = await app.call('GET', path);
    return Date.parse(headers.get('x-export-snapshot') ?? '');
  };
  await app.sql.begin(async (tx) => {
    const [began] = await tx<{ at: Date }[]>`select now() as at`;
    const begin_ms = Number(began?.at);
    t.ok((await snapshotOf()) <= begin_ms - 2_000);
    const recent = new Date(Date.now() - 2_001).toISOString();
    const refused = await app.call('GET', `${path}?snapshot=${recent}`);
    t.match(refused, { status: 503, body: { code: 'UNAVAILABLE', retryable: true } });
    t.equal(refused.headers.get('retry-after'), '5');
    const older = new Date(begin_ms - 2_500).toISOString();
    t.equal((await app.call('GET', `${path}?snapshot=${older}`)).status, 200);
  });
});

/** Requests a URL and never reads the body of the answer. */
const openUnread = (t: Test, url: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (answer) => {
      t.teardown(() => answer.destroy());
      answer.pause();
      resolve(answer);
    });
    request.on('error', reject);
  });

t.test('two at once for one address; an export that ends makes room', async (t) => {
  const [first, second] = [
    await openUnread(t, `${app.url}${path}?format=csv`),
    await openUnread(t, `${app.url}${path}?format=json`),
  ];
  for (const what of ['', '/manifest']) {
    const refused = await app.call('GET', `${path}${what}`);
    t.match(refused, { status: 429, body: { code: 'TOO_MANY_EXPORTS', retryable: true } });
    t.ok(Number(refused.headers.get('retry-after')) >= 1);
  }
  first.destroy();
  const answer = await until('there is room', async () => {
    const opened = await app.call('GET', `${path}?format=ndjson`);
    return opened.status === 200 ? opened : undefined;
  });
  t.equal(readLines(String(answer.body)).length, agents * questions);
  second.destroy();
  await until('nothing is held in Postgres', async () => {
    const open = await app.sql`
      select from pg_stat_activity
      where application_name = 'prediction-forum exports'
        and datname = current_database()
        and state <> 'idle'`;
    return open.length === 0;
  });
});

t.test('so many a minute, and not one more', async (t) => {
  const app = await startApp(t, { roles: ['api'], env: { LIMIT_EXPORTS: '4' } });
  for (const what of [path, `${path}/manifest`, '/api/export/calibration']) {
    t.equal((await app.call('GET', what)).status, 200);
  }
  t.equal((await app.call('GET', '/api/export/consensus-history')).status, 200);
  t.match(await app.call('GET', path), { status: 429, body: { code: 'RATE_LIMITED' } });
});
