import { findStatus } from '../../../src/kit/outbound/status-line.js';
import { t } from '../../help/tap.js';

const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n';

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
    [early.repeat(3), null],
    ['SSH-2.0-OpenSSH_9.2\r\n', null],
    ['HTTP/2 200 \r\n', null],
    ['HTTP/1.1 2000 OK\r\n', null],
    ['HTTP/1.1 20 OK\r\n', null],
    [`HTTP/1.1 200 ${'O'.repeat(8_180)}`, null],
    ['', null],
  ] as const) {
    t.equal(findStatus(Buffer.from(text, 'latin1'), 2), found, JSON.stringify(text.slice(0, 80)));
  }
});
