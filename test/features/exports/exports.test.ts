import { t } from 'tap';
import { cutSlowReaders } from '../../../src/features/exports/exports.js';
import { startApp } from '../../help/app.js';

/** How long an export may be read, and the moment that it stands for. */

const piece_bytes = 65_536;

/** How many of 100 pieces a reader gets that takes each of them so late. */
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
  const app = await startApp(t, { roles: ['api'], env: { LIMIT_EXPORTS: '100000' } });
  const path = '/api/export/predictions';
  const snapshotOf = async () => {
    const { headers } = await app.call('GET', path);
    return Date.parse(headers.get('x-export-snapshot') ?? '');
  };
  await app.sql.begin(async (tx) => {
    const [began] = await tx<{ at: Date }[]>`select now() as at`;
    const begin_ms = Number(began?.at);
    t.ok((await snapshotOf()) <= begin_ms - 2_000);
    const asked = new Date(Date.now() - 2_001).toISOString();
    const refused = await app.call('GET', `${path}?snapshot=${asked}`);
    t.match(refused, { status: 503, body: { code: 'UNAVAILABLE', retryable: true } });
    t.equal(refused.headers.get('retry-after'), '5');
    const older = new Date(begin_ms - 2_500).toISOString();
    t.equal((await app.call('GET', `${path}?snapshot=${older}`)).status, 200);
  });
});
