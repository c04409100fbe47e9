import { exclusive_port, toBytes, us_listen_socket_close } from '../../src/http/uws.js';
import { openTcp, request, startBare, startChild } from '../help/native.js';
import { startStopwatch } from '../help/stopwatch.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Traps of the HTTP library, observed on the installed build. Run these tests again at every
 * upgrade. If one fails, a rule in `src/http` may no longer be necessary, or no longer be
 * sufficient. Websockets are tested in `test/socket`.
 */

// Each test has its own server, and the longest waits for 12 seconds.
t.jobs = 3;

/** The engine's build for Node 20 is older than the ones for Node 22 and 24. */
const is_node_20 = process.versions.node.startsWith('20.');

type Owner = Parameters<typeof openTcp>[0];

/** A connection on which data was sent. */
const send = async (t: Owner, port: number, ...parts: Parameters<typeof request>) => {
  const tcp = await openTcp(t, port);
  tcp.socket.write(request(...parts));
  return tcp;
};

t.test('1: no answer and no abort handler ends the process, whatever is caught', async (t) => {
  for (const path of ['silent', 'throws', 'rejects']) {
    const child = startChild(t, 'handlers');
    await send(t, await child.port(), `GET /${path}`);
    await until('it has ended', () => child.ended() !== null);
    t.equal(child.ended(), 'SIGABRT', path);
  }
});

t.test('2: a throw after the abort handler leaves the client waiting', async (t) => {
  const child = startChild(t, 'handlers');
  const port = await child.port();
  for (const [path, word] of [
    ['throws-later', 'caught'],
    ['rejects-later', 'rejected'],
  ] as const) {
    const tcp = await send(t, port, `GET /${path}`);
    await until(path, () => child.said.includes(word));
    const other = await send(t, port, 'GET /fine');
    t.match(await other.answer('fine'), /200 OK/, 'the process goes on');
    t.equal(tcp.text(), '');
    t.equal(tcp.closed(), false);
  }
});

t.test('3: one abort handler, the last; a response that is over throws', async (t) => {
  const said: string[] = [];
  const attempt = (name: string, work: () => unknown): void => {
    try {
      work();
      said.push(`${name} passed`);
    } catch {
      said.push(`${name} threw`);
    }
  };
  const { port } = await startBare(t, (app) => {
    app.get('/abort', (res) => {
      res.onAborted(() => said.push('first'));
      res.onAborted(() => {
        said.push('second');
        setImmediate(() => attempt('after abort', () => res.end('x')));
      });
    });
    app.get('/end', (res) => {
      res.end('x');
      attempt('after end', () => res.end('y'));
      attempt('handler after end', () => res.onAborted(() => undefined));
    });
    app.get('/close', (res) => {
      res.close();
      attempt('after close', () => res.writeStatus('200 OK'));
    });
  });
  (await send(t, port, 'GET /abort')).socket.end();
  await until('the abort', () => said.length === 2);
  for (const path of ['end', 'close']) await send(t, port, `GET /${path}`);
  await until('all', () => said.length === 5);
  t.strictSame(said, [
    'second',
    'after abort threw',
    'after end threw',
    'handler after end threw',
    'after close threw',
  ]);
});

t.test('4: the request and its chunks live as long as their callback', async (t) => {
  const seen: unknown[] = [];
  const { port } = await startBare(t, (app) => {
    app.post('/kept', (res, req) => {
      res.onAborted(() => undefined);
      res.onData((chunk) => {
        const before = chunk.byteLength;
        setImmediate(() => {
          seen.push([before, chunk.byteLength]);
          t.throws(() => req.getUrl(), /must not be accessed/);
          res.cork(() => res.end('kept'));
        });
      });
    });
    app.post('/late', (res) => {
      res.onAborted(() => undefined);
      setTimeout(() => {
        res.onData(() => seen.push('late'));
        setTimeout(() => res.cork(() => res.end('late')), 50);
      }, 10);
    });
  });
  for (const path of ['kept', 'late']) {
    const tcp = await send(t, port, `POST /${path}`, 'Content-Length: 5\r\n', 'hello');
    await tcp.answer(path);
  }
  t.strictSame(seen, [[5, 0]], 'detached; and a reader attached later is never called');
});

t.test('5 and 9: no limit for bodies; what is slow is cut after about 12 seconds', async (t) => {
  const aborted: string[] = [];
  const { port } = await startBare(t, (app) => {
    app.post('/up', (res) => {
      let size = 0;
      res.onAborted(() => aborted.push('upload'));
      res.onData((chunk, is_last) => {
        size += chunk.byteLength;
        if (is_last) res.end(`size ${size}`);
      });
    });
    app.get('/fine', (res) => {
      res.end('fine');
    });
    app.get('/copied', (res) => {
      const bytes = Buffer.alloc(16_000_000, 'x');
      res.end(bytes);
      bytes.fill('y');
    });
    app.get('/down', (res) => {
      res.onAborted(() => aborted.push('download'));
      const chunk = Buffer.alloc(1_000_000, 'x');
      let written = 0;
      while (res.write(chunk) && written < 100) written += 1;
      t.ok(written < 100, 'write says false when the reader stands still');
      res.onWritable(() => true);
    });
  });
  const url = `http://127.0.0.1:${port}`;
  const big = await fetch(`${url}/up`, { method: 'POST', body: Buffer.alloc(20_000_000) });
  t.equal(await big.text(), 'size 20000000');
  const copied = await (await fetch(`${url}/copied`)).text();
  t.notOk(copied.includes('y'), 'end has copied');

  const started_ms = performance.now();
  const readWatch = startStopwatch();
  const slow = await send(t, port, 'POST /up', 'Content-Length: 1000000\r\n');
  const drip = setInterval(() => slow.socket.write(Buffer.alloc(400)), 100);
  t.teardown(() => clearInterval(drip));
  const idle = await send(t, port, 'GET /fine');
  await idle.answer('fine');
  const stalled = await openTcp(t, port);
  stalled.socket.pause();
  stalled.socket.write(request('GET /down'));
  await until('all are cut', () => aborted.length === 2 && idle.closed(), 60_000);
  const took_ms = performance.now() - started_ms;
  t.strictSame([...aborted].sort(), ['download', 'upload']);
  t.ok(took_ms > 8_000 && readWatch() < 20_000, `after ${Math.round(took_ms)} ms`);
});

t.test('6: a request behind an unanswered one closes the connection', async (t) => {
  let aborted = false;
  const { port } = await startBare(t, (app) => {
    app.get('/later', (res) => {
      res.onAborted(() => {
        aborted = true;
      });
    });
    app.get('/now', (res) => {
      res.end('now');
    });
  });
  const tcp = await openTcp(t, port);
  tcp.socket.write(request('GET /later') + request('GET /now'));
  await until('it is closed', () => tcp.closed());
  t.ok(aborted);
  t.equal(tcp.text(), '');
  const answered = await openTcp(t, port);
  answered.socket.write(request('GET /now') + request('GET /now'));
  await until('both', () => answered.text().split('200 OK').length === 3);
});

t.test('7: HEAD, OPTIONS, 405, a last slash and decoding are left to us', async (t) => {
  const { port } = await startBare(t, (app) => {
    app.get('/thing', (res) => {
      res.end('thing');
    });
    app.get('/named/:name', (res, req) => {
      res.end(`<${req.getParameter(0)}>`);
    });
    app.any('/any', (res, req) => {
      res.end(`<${req.getMethod()}>`);
    });
  });
  const ask = async (line: string, until_text: string): Promise<string> =>
    (await send(t, port, line)).answer(until_text);
  for (const line of ['HEAD /thing', 'OPTIONS /thing', 'PUT /thing', 'GET /thing/']) {
    t.match(await ask(line, '</html>'), /^HTTP\/1\.1 404 /, line);
  }
  t.match(await ask('GET /named/a%2Fb', '>'), /<a%2Fb>/);
  t.match(await ask('HEAD /any', '<head>'), /Content-Length: 6\r\n\r\n<head>/, 'with a body');
});

t.test('8: outside its callbacks nothing is corked', async (t) => {
  const child = startChild(t, 'handlers');
  await (await send(t, await child.port(), 'GET /uncorked')).answer('x');
  await until('a warning', () => child.said.some((line) => line.includes('corked callback')));
});

t.test('13: a port that was asked for by number is shared, unless it is exclusive', async (t) => {
  const first = startChild(t, 'listen', '0');
  const port = await first.port();
  const second = startChild(t, 'listen', String(port));
  await until('it is refused', () => second.said.includes('taken'));
  first.process.kill('SIGKILL');
  await until('it is gone', () => first.ended() !== null);
  const pair = [startChild(t, 'listen', String(port)), startChild(t, 'listen', String(port))];
  for (const child of pair) t.equal(await child.port(), port, 'both listen');
  const { app } = await startBare(t, () => undefined);
  const exclusive = await new Promise((resolve) => {
    (app.listen as (...all: unknown[]) => void).call(
      app,
      '127.0.0.1',
      port,
      exclusive_port,
      resolve,
    );
  });
  t.equal(exclusive, false);
});

t.test('14: closing cuts what is under way; not listening cuts nothing', async (t) => {
  let aborted = false;
  const { app, port, socket } = await startBare(t, (bare) => {
    bare.get('/now', (res) => {
      res.end('now');
    });
    bare.get('/later', (res) => {
      res.onAborted(() => {
        aborted = true;
      });
    });
  });
  const tcp = await send(t, port, 'GET /now');
  await tcp.answer('now');
  us_listen_socket_close(socket);
  tcp.socket.write(request('GET /now'));
  await until('kept alive', () => tcp.text().split('200 OK').length === 3);
  tcp.socket.write(request('GET /later'));
  await t.rejects(fetch(`http://127.0.0.1:${port}/now`), 'nobody new gets in');
  app.close();
  await until('cut', () => tcp.closed() && aborted);
});

t.test('15: too many headers get a page or no answer, and so do long ones', async (t) => {
  let calls = 0;
  const { port } = await startBare(t, (app) => {
    app.any('/*', (res, req) => {
      calls += 1;
      let count = 0;
      req.forEach(() => {
        count += 1;
      });
      res.end(`count ${count}.`);
    });
  });
  const headers = (count: number): string =>
    Array.from({ length: count - 1 }, (_, index) => `X${index}: y\r\n`).join('');
  const most = await send(t, port, 'GET /', headers(98));
  t.match(await most.answer('.'), /count 98\./);
  const over = await send(t, port, 'GET /', headers(99));
  const long = await send(t, port, 'GET /', `X: ${'y'.repeat(16_000)}\r\n`);
  t.match(await long.answer('.'), /count 2\./, 'set by UWS_HTTP_MAX_HEADERS_SIZE');
  const longer = await send(t, port, 'GET /', `X: ${'y'.repeat(20_000)}\r\n`);
  const expected = is_node_20 ? /count 2\./ : /^HTTP\/1\.1 431 /;
  t.match(await longer.answer('.'), expected, 'Node 20 takes any length in one piece');
  const pieces = await openTcp(t, port);
  pieces.socket.write(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}`);
  t.match(await pieces.answer('431'), /^HTTP\/1\.1 431 /);
  if (is_node_20) t.equal(over.text(), '', 'neither an answer nor a close');
  else t.match(await over.answer('431'), /^HTTP\/1\.1 431 /);
  t.equal(calls, is_node_20 ? 3 : 2);
});

t.test('16: endWithoutBody with a length writes it, and on Node 20 waits for a body', async (t) => {
  const { port } = await startBare(t, (app) => {
    // Without an abort handler the process would end, because the response counts as abandoned.
    app.any('/told', (res) => {
      res.onAborted(() => undefined);
      res.endWithoutBody(5);
    });
    app.any('/undefined', (res) => {
      res.onAborted(() => undefined);
      res.endWithoutBody(undefined);
    });
    app.any('/written', (res) => {
      res.writeHeader('Content-Length', '5').endWithoutBody();
    });
  });
  const sized = await send(t, port, 'HEAD /told');
  await sized.answer('Content-Length: 5\r\n\r\n');
  sized.socket.write(request('HEAD /told'));
  const isOver = () => sized.closed() || sized.text().split('200 OK').length === 3;
  await until('it is closed, or answered again', isOver);
  t.equal(sized.closed(), is_node_20);
  const none = await (await send(t, port, 'HEAD /undefined')).answer('\r\n\r\n');
  t.match(none, /Content-Length: 9223372036854775808/, 'taken for a number');
  const written = await send(t, port, 'HEAD /written');
  t.match(await written.answer('\r\n\r\n'), /Content-Length: 5\r\n/);
  written.socket.write(request('HEAD /written'));
  await until('both', () => written.text().split('200 OK').length === 3);
});

const refuses_pieces = is_node_20 ? 'is 505' : 'is read';

t.test(`17: a first line that comes in pieces ${refuses_pieces}, later pieces are`, async (t) => {
  const { port } = await startBare(t, (app) => {
    app.get('/thing', (res) => {
      res.end('thing');
    });
  });
  const whole = request('GET /thing');
  const first_line = whole.indexOf('\r\n') + 2;
  const other = await openTcp(t, port);
  for (const at of [5, 10, first_line - 1, first_line, first_line + 3]) {
    const tcp = await openTcp(t, port);
    tcp.socket.write(whole.slice(0, at));
    // By the time another client is answered, the first piece has been read.
    other.socket.write(whole);
    const before = other.pieces();
    await until('the other answer', () => other.pieces() > before);
    tcp.socket.write(whole.slice(at));
    const is_505 = is_node_20 && at < first_line;
    const expected = is_505 ? /^HTTP\/1\.1 505 / : /^HTTP\/1\.1 200 OK[\s\S]*thing$/;
    t.match(await tcp.answer(is_505 ? '505' : 'thing'), expected, `${at} bytes first`);
  }
});

t.test('18: a string of Latin-1 is Latin-1 on Node 24; bytes are UTF-8 everywhere', async (t) => {
  const { port } = await startBare(t, (app) => {
    app.get('/strings', (res) => {
      res.writeHeader('X-Name', 'bär').end('bär');
    });
    app.get('/wide', (res) => {
      res.end('bär €');
    });
    app.get('/bytes', (res) => {
      res.writeHeader('X-Name', toBytes('bär')).end(toBytes('bär'));
    });
  });
  const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
  const said = process.versions.node.startsWith('24.') ? 'bär' : latin1('bär');
  const ask = async (path: string, last: string) =>
    (await send(t, port, `GET ${path}`)).answer(`\r\n\r\n${last}`);
  for (const [path, text] of [
    ['/strings', said],
    ['/bytes', latin1('bär')],
  ] as const) {
    const answer = await ask(path, text);
    t.ok(answer.includes(`X-Name: ${text}\r\n`), path);
    t.ok(answer.endsWith(`\r\n\r\n${text}`), path);
  }
  t.ok((await ask('/wide', latin1('bär €'))).endsWith(latin1('bär €')), 'wider text is right');
});
