import fc from 'fast-check';
import { createStatusReader } from '../../../src/kit/outbound/status-line.js';
import { t } from '../../help/tap.js';

const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n';

/** Reads the pieces one after the other, until something is found. */
const read = (...pieces: readonly string[]) => {
  const take = createStatusReader(2);
  for (const piece of pieces) {
    const found = take(Buffer.from(piece, 'latin1'));
    if (found !== null) return found;
  }
  return null;
};

t.test('the status is that of the first final line', async (t) => {
  for (const [text, found] of [
    ['HTTP/1.1 200 OK\r\n', 200],
    ['HTTP/1.0 404\r\n', 404],
    ['HTTP/1.1 500 \r\nX', 500],
    ['HTTP/1.1 204 No Content\n', 204],
    ['\r\nHTTP/1.1 200 OK\r\n', 200],
    ['HTTP/1.1 101 Switching Protocols\r\n', 101],
    [`${early}HTTP/1.1 202 Accepted\r\n`, 202],
    [`${early.repeat(2)}HTTP/1.1 200 OK\r\nHTTP/1.1 500 No\r\n`, 200],
    ['HTTP/1.1 200 OK', null],
    [`${early}HTTP/1.1 20`, null],
    [`${early.slice(0, -2)}HTTP/1.1 200 OK\r\n`, null],
    [early.repeat(3), 'invalid'],
    ['SSH-2.0-OpenSSH_9.2\r\n', 'invalid'],
    ['HTTP/2 200 \r\n', 'invalid'],
    ['HTTP/1.1 2000 OK\r\n', 'invalid'],
    ['HTTP/1.1 20 OK\r\n', 'invalid'],
    [`HTTP/1.1 200 ${'O'.repeat(8_180)}`, 'invalid'],
  ] as const) {
    t.equal(read(text), found, JSON.stringify(text.slice(0, 80)));
  }
});

t.test('it does not matter how the bytes are cut', async (t) => {
  const text = `${early}${early}HTTP/1.1 207 Multi-Status\r\nX: y\r\n\r\n`;
  const cuts = fc.array(fc.nat(text.length), { maxLength: 20 });
  fc.assert(
    fc.property(cuts, (places) => {
      const ends = [...places.toSorted((a, b) => a - b), text.length];
      const pieces = ends.map((end, n) => text.slice(ends[n - 1] ?? 0, end));
      return read(...pieces) === 207;
    }),
  );
  t.pass('whatever the cuts');
});
