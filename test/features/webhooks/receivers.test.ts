import { gzipSync } from 'node:zlib';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { standardSecret } from '../../../src/features/webhooks/signing.js';
import { client_limits } from '../../../src/kit/outbound/connection.js';
import { makeSelfSigned } from '../../help/authority.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  answer,
  cutAfter,
  drip,
  type Misbehaviour,
  plain,
  pour,
  type RawServer,
  say,
  startHostile,
  startMute,
} from './raw-servers.js';
import { makeDeliverTo } from './treatment.js';
import { makeWorld } from './world.js';

/** Receivers that answer well, badly, never or endlessly, and how each answer is handled. */

const world = await makeWorld(t);
const { sql } = world.deps;
t.beforeEach(world.reset);

t.test('real deliveries pass the libraries of Standard Webhooks and of Svix', async (t) => {
  const hook = await world.addHook({ path: '/' });
  await world.record({}, { data: { text: 'Wird es regnen? ☂ "ja"\u2028' } }, { data: {} });
  await world.startSigner();
  await world.settled(3, 'delivered');
  const secret = standardSecret(hook.secret);
  for (const library of [new StandardWebhook(secret), new SvixWebhook(secret)]) {
    for (const { body, headers } of world.receiver.received) {
      const given = headers as Record<string, string>;
      t.doesNotThrow(() => library.verify(body.toString(), given));
      t.throws(() => library.verify(`${body} `, given));
      t.throws(() => library.verify(body.toString(), { ...given, 'webhook-id': 'evt_01' }));
    }
  }
});

t.test('the limits of a call are those of the design', async (t) => {
  t.match(client_limits, {
    wall_ms: 10_000,
    connect_ms: 3_000,
    lookup_ms: 2_000,
    answer_bytes: 4_096,
    kept_bytes: 1_024,
  });
});

const deliverTo = makeDeliverTo(world);

interface Case {
  readonly does: Misbehaviour;
  readonly state: 'delivered' | 'waiting';
  readonly status: number | null;
  readonly error?: string;
  /** Minimum and maximum seconds until the next attempt. */
  readonly delay?: readonly [least: number, most: number];
  readonly answer?: string | RegExp;
}

const one_step = [4, 6] as const;
const chunked = answer('200 OK', 'Transfer-Encoding: chunked');
const bomb = gzipSync(Buffer.alloc(20_000_000));

const failed = { state: 'waiting', delay: one_step } as const;
const broken = { ...failed, status: null } as const;

type Cases = Readonly<Record<string, Case>>;

const good: Cases = {
  '/204': { does: say(answer('204 No Content')), state: 'delivered', status: 204 },
  '/200': {
    does: say(`${answer('200 OK', 'Content-Length: 2')}ok`),
    state: 'delivered',
    status: 200,
    answer: 'ok',
  },
  '/200-to-the-end': {
    does: say(`${answer('200 OK')}until the end`),
    state: 'delivered',
    status: 200,
    answer: 'until the end',
  },
  '/202-after-103': {
    does: say(answer('103 Early Hints') + answer('202 OK', 'Content-Length: 0')),
    state: 'delivered',
    status: 202,
  },
  '/202-after-100': {
    does: say(answer('100 Continue') + answer('202 OK', 'Content-Length: 0')),
    state: 'delivered',
    status: 202,
  },
  '/200-after-20': {
    does: say(answer('102 Processing').repeat(20) + answer('200 OK', 'Content-Length: 0')),
    state: 'delivered',
    status: 200,
  },
  '/299': { does: plain('299 Odd'), state: 'delivered', status: 299 },
};

const failures: Cases = {
  '/300': { does: plain('300 Many'), ...failed, status: 300 },
  '/304': { does: say(answer('304 Not Modified')), ...failed, status: 304 },
  '/404': { does: plain('404 Gone'), ...failed, status: 404 },
  '/410': { does: plain('410 Gone'), ...failed, status: 410 },
  '/500': { does: plain('500 Broken'), ...failed, status: 500 },
  '/999': { does: plain('999 Odd'), ...failed, status: 999 },
};

const broken_answers: Cases = {
  '/199': { does: say(answer('199 Odd')), ...broken, error: 'connection_lost' },
  '/101': {
    does: say(answer('101 Switching Protocols', 'Upgrade: x', 'Connection: upgrade')),
    ...failed,
    status: 101,
    error: 'answer_invalid',
  },
  '/no-http': { does: say('SSH-2.0-OpenSSH_9.6\r\n'), ...broken, error: 'answer_invalid' },
  '/binary': { does: say(Buffer.alloc(512, 0xff)), ...broken, error: 'answer_invalid' },
  '/two-lengths': {
    does: say(answer('200 OK', 'Content-Length: 1', 'Content-Length: 2')),
    state: 'delivered',
    status: 200,
    error: 'answer_invalid',
  },
  '/nothing': { does: say(''), ...broken, error: 'connection_lost' },
  '/cut-in-headers': {
    does: cutAfter('HTTP/1.1 200 OK\r\nContent-Le'),
    state: 'delivered',
    status: 200,
    error: 'connection_lost',
  },
  '/cut-after-200': {
    does: cutAfter(`${answer('200 OK', 'Content-Length: 100')}only this`),
    state: 'delivered',
    status: 200,
    error: 'connection_lost',
    answer: 'only this',
  },
  '/cut-after-500': {
    does: cutAfter(`${answer('500 Broken', 'Content-Length: 100')}only this`),
    ...failed,
    status: 500,
    error: 'connection_lost',
  },
  '/shorter-than-said': {
    does: say(`${answer('201 Created', 'Content-Length: 50', 'Connection: close')}less`),
    state: 'delivered',
    status: 201,
    error: 'connection_lost',
    answer: 'less',
  },
  '/longer-than-said': {
    does: say(`${answer('200 OK', 'Content-Length: 2')}more than two`),
    state: 'delivered',
    status: 200,
    answer: 'mo',
  },
  '/no-chunks': {
    does: say(`${chunked}these are no chunks`),
    state: 'delivered',
    status: 200,
    error: 'answer_invalid',
  },
  '/cut-in-chunks': {
    does: cutAfter(`${chunked}5\r\nhello\r\n`),
    state: 'delivered',
    status: 200,
    error: 'connection_lost',
    answer: 'hello',
  },
};

const endless_answers: Cases = {
  '/200-after-21': {
    does: say(answer('102 Processing').repeat(21) + answer('200 OK', 'Content-Length: 0')),
    ...broken,
    error: 'answer_invalid',
  },
  '/endless-100': {
    does: pour('', Buffer.from(answer('100 Continue').repeat(50))),
    ...broken,
    error: 'answer_invalid',
  },
  '/megabyte-of-headers': {
    does: say(
      answer('200 OK', ...Array.from({ length: 16_384 }, (_, n) => `X-${n}: ${'h'.repeat(52)}`)),
    ),
    state: 'delivered',
    status: 200,
    error: 'answer_invalid',
  },
  '/endless-header': {
    does: pour('HTTP/1.1 200 OK\r\nX-Long: ', Buffer.alloc(65_536, 'h')),
    state: 'delivered',
    status: 200,
    error: 'answer_invalid',
  },
  '/endless-body': {
    does: pour(answer('200 OK'), Buffer.alloc(65_536, 'y')),
    state: 'delivered',
    status: 200,
    answer: 'y'.repeat(1_024),
  },
  '/endless-500': {
    does: pour(answer('500 Broken'), Buffer.alloc(65_536, 'n')),
    ...failed,
    status: 500,
    answer: 'n'.repeat(1_024),
  },
  '/endless-chunks': {
    does: pour(chunked, Buffer.from('1\r\nz\r\n'.repeat(10_000))),
    state: 'delivered',
    status: 200,
    answer: 'z'.repeat(1_024),
  },
  '/gzip-bomb': {
    does: say(
      Buffer.concat([
        Buffer.from(answer('200 OK', 'Content-Encoding: gzip', `Content-Length: ${bomb.length}`)),
        bomb,
      ]),
    ),
    state: 'delivered',
    status: 200,
    answer: /^.{1,1024}$/s,
  },
};

/** Answers that request a retry time. Dates are relative to `now_ms`. */
const makeAsking = (now_ms: number): Cases => {
  const in_eight_s = new Date(now_ms + 8_000).toUTCString();
  const asks = (status: string, text: string): Misbehaviour =>
    plain(status, `Retry-After: ${text}`);
  return {
    '/500-asks': { does: asks('500 Broken', '9'), ...failed, status: 500 },
    '/429-0': { does: asks('429 Slow', '0'), ...failed, status: 429, delay: [5, 6] },
    '/429-7': { does: asks('429 Slow', '7'), ...failed, status: 429, delay: [7, 8.4] },
    '/429-99999': { does: asks('429 Slow', '99999'), ...failed, status: 429, delay: [10, 10] },
    '/429-date': { does: asks('429 Slow', in_eight_s), ...failed, status: 429, delay: [7, 9.6] },
    '/429-junk': { does: asks('429 Slow', 'soon, -1'), ...failed, status: 429 },
    '/429-twice': {
      does: plain('429 Slow', 'Retry-After: 7', 'Retry-After: 9'),
      ...failed,
      status: 429,
      delay: [4, 8.4],
    },
    '/429-bare': { does: plain('429 Slow'), ...failed, status: 429 },
    '/503-7': { does: asks('503 Away', '7'), ...failed, status: 503, delay: [7, 8.4] },
  };
};

const makeCases = (now_ms: number): Cases => ({
  ...good,
  ...failures,
  ...broken_answers,
  ...endless_answers,
  ...makeAsking(now_ms),
});

t.test('each answer is a success, or a failure tried again at the right time', async (t) => {
  const cases = makeCases(world.deps.clock().getTime());
  const behaviours = Object.entries(cases).map(([path, { does }]) => [path, does] as const);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const hostile = await startHostile(t, pair, Object.fromEntries(behaviours));
  const urls = Object.keys(cases).map(hostile.url);
  const of = await deliverTo(urls, { wall_ms: 60_000 });
  for (const [path, wanted] of Object.entries(cases)) {
    const { delay_s, ...got } = of(hostile.url(path));
    const { state, status, error = null } = wanted;
    t.match(got, { state, status, error }, path);
    if (wanted.answer !== undefined) t.match(got.answer, wanted.answer, path);
    const [least, most] = wanted.delay ?? [-1, 1];
    // Latencies are whole milliseconds, so the delay is not exact.
    t.ok(delay_s > least - 0.01 && delay_s < most + 0.01, `${path}: ${delay_s} s`);
    t.equal(hostile.count(path), 1, path);
  }
  await until('every connection is closed', () => hostile.open === 0);
});

t.test('no redirect is followed', async (t) => {
  const inside = await startMute(t);
  const codes = [301, 302, 303, 307, 308];
  const moves = codes.flatMap((code) => [
    [`/${code}-inside`, code, `https://127.0.0.1:${inside.port}/`] as const,
    [`/${code}-plain`, code, `http://127.0.0.1:${inside.port}/`] as const,
    [`/${code}-loop`, code, `/${code}-loop`] as const,
  ]);
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const behaviours = moves.map(([path, code, to]) => [
    path,
    plain(`${code} Moved`, `Location: ${to}`),
  ]);
  const hostile = await startHostile(t, pair, Object.fromEntries(behaviours));
  const of = await deliverTo(moves.map(([path]) => hostile.url(path)));
  for (const [path, status] of moves) {
    t.match(of(hostile.url(path)), { state: 'waiting', status, error: null });
    t.equal(hostile.count(path), 1, path);
  }
  t.equal(inside.open, 0);
});

t.test('certificates that are expired, self-signed or for another name are refused', async (t) => {
  const { issue } = world.receiver;
  const pairs = {
    expired: await issue({ names: ['127.0.0.1'], is_expired: true }),
    self_signed: await makeSelfSigned(['127.0.0.1']),
    wrong_name: await issue({ names: ['hooks.acme.com'] }),
    wrong_address: await issue({ names: ['127.0.0.2'] }),
  };
  const servers: RawServer[] = [];
  for (const pair of Object.values(pairs)) {
    servers.push(await startHostile(t, pair, { '/': say(answer('204 No Content')) }));
  }
  const no_tls = await startMute(t, (socket) => socket.end(answer('200 OK')));
  const resets = await startMute(t, (socket) => socket.resetAndDestroy());
  const urls = [...servers.map(({ url }) => url('/')), no_tls.href, resets.href];
  const of = await deliverTo(urls);
  for (const url of urls.slice(0, -1)) {
    t.match(of(url), { state: 'waiting', status: null, error: 'tls_failed' });
  }
  t.match(of(resets.href), { state: 'waiting', status: null, error: /^(tls|connect)_failed$/ });
  for (const server of servers) {
    t.equal(server.connections, 1);
    t.equal(server.count('/'), 0, 'no request was sent');
  }
});

t.test('the wall clock ends what has no end, and its slots go to the next', async (t) => {
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const slow: Readonly<Record<string, Misbehaviour>> = {
    '/never': () => undefined,
    '/byte-a-second': drip(answer('200 OK', 'Content-Length: 60'), 1_000),
    '/header-drip': drip('HTTP/1.1 200 OK\r\nX-Slow: ', 50),
    '/body-drip': drip(answer('200 OK'), 50),
  };
  const hostile = await startHostile(t, pair, slow);
  const stalled = await startMute(t);
  const urls = [...Object.keys(slow).map(hostile.url), stalled.href];
  for (const url of urls) await world.addHook({ url });
  // Six deliveries share two slots at each receiver, so the last ones wait until others end.
  await world.record(...Array.from({ length: 6 }, () => ({})));
  const webhooks = world.openWebhooks({ limits: { wall_ms: 400 } });
  const signer = await world.startSigner({ webhooks });
  const count = 6 * urls.length;
  await until('every first attempt', async () => {
    const ended = await sql<{ error: string | null }[]>`
      select error from attempts where attempt = 1`;
    return ended.length === count && ended.every(({ error }) => error === 'timeout');
  });
  const rows = await sql<{ state: string; with_status: boolean }[]>`
    select d.state, bool_or(a.status = 200) is true as with_status
    from deliveries d
    join attempts a on a.webhook_id = d.webhook_id and a.event_id = d.event_id
    group by d.webhook_id, d.event_id, d.state`;
  t.equal(
    rows.filter(({ with_status }) => with_status).length,
    18,
    'three of them begin to answer',
  );
  for (const { state, with_status } of rows) t.equal(state === 'delivered', with_status);
  await signer.stop();
  await until('every connection is closed', () => hostile.open + stalled.open === 0);
});

const collectGarbage = async (): Promise<number> => {
  const { setFlagsFromString } = await import('node:v8');
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let n = 0; n < 3; n += 1) {
    gc();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
};

t.test('memory stays flat whatever is sent back', async (t) => {
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const megabyte = Buffer.alloc(2 ** 20, 'x');
  const hostile = await startHostile(t, pair, {
    '/body': pour(answer('200 OK'), megabyte),
    '/header': pour('HTTP/1.1 200 OK\r\nX-Long: ', megabyte),
    '/chunks': pour(chunked, Buffer.from('1\r\nz\r\n'.repeat(100_000))),
    '/interim': pour('', Buffer.from(answer('100 Continue').repeat(40_000))),
    '/bomb': say(Buffer.concat([Buffer.from(answer('200 OK', 'Content-Encoding: gzip')), bomb])),
  });
  const paths = ['/body', '/header', '/chunks', '/interim', '/bomb'];
  const targets = paths.map((path) => {
    const target = world.webhooks.client.parse(hostile.url(path));
    if (target.kind === 'problem') throw new Error(target.sentence);
    return target;
  });
  const callAll = async (): Promise<void> => {
    const calls = targets.map((target) =>
      world.webhooks.client.post({ target, headers: {}, body: Buffer.from('{}') }),
    );
    for (const { answer: kept } of await Promise.all(calls)) t.ok(kept.length <= 1_024);
  };
  await callAll();
  await until('every connection is closed', () => hostile.open === 0);
  const before_mb = await collectGarbage();
  for (let n = 0; n < 30; n += 1) await callAll();
  await until('every connection is closed', () => hostile.open === 0);
  const after_mb = await collectGarbage();
  t.equal(hostile.connections, 31 * paths.length);
  t.ok(after_mb - before_mb < 16, `${before_mb} MB before, ${after_mb} MB after`);
});
