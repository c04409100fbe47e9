import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Test, t } from 'tap';
import { type Peers, peersOf } from '../../src/kit/http/peers.js';
import type { HttpResponse } from '../../src/kit/http/uws.js';
import { request, startBare } from '../help/native.js';
import { until } from '../help/until.js';
import { connect as connectWs } from '../help/ws-client.js';

/** Addresses of who is connected, asked for as seldom as may be. */

const shown = (raw: string): string => [...Buffer.from(raw, 'latin1')].join('.');

const start = async (t: Test) => {
  const seen: string[] = [];
  let peers: Peers | undefined;
  let asked = 0;
  const { port } = await startBare(t, (app) => {
    peers = peersOf(app);
    t.equal(peersOf(app), peers, 'one for each app');
    app.ws('/ws', {
      upgrade(res, req, context) {
        const header = (name: string) => req.getHeader(`sec-websocket-${name}`);
        res.upgrade({}, header('key'), header('protocol'), header('extensions'), context);
        peers?.onUpgraded();
      },
    });
    app.get('/*', (res) => {
      const counted = {
        getRemoteAddress: () => {
          asked += 1;
          return res.getRemoteAddress();
        },
      } as HttpResponse;
      seen.push(shown((peers as Peers).addressOf(counted)));
      res.end('x');
    });
  });
  const open = async (address: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    t.teardown(() => {
      socket.destroy();
    });
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Socket): Promise<string | undefined> => {
    socket.write(request('GET /'));
    await once(socket, 'data');
    return seen.at(-1);
  };
  const askedFor = (): number => asked;
  return { port, open, ask, askedFor };
};

t.test('one address is asked for once, several every time', async (t) => {
  const { open, ask, askedFor } = await start(t);
  const [one, same] = [await open('127.0.0.1'), await open('127.0.0.1')];
  t.equal(await ask(one), '127.0.0.1');
  t.equal(await ask(same), '127.0.0.1');
  t.equal(askedFor(), 0, 'known from the connections');
  const other = await open('127.0.0.2');
  t.equal(await ask(other), '127.0.0.2');
  t.equal(await ask(one), '127.0.0.1');
  t.equal(askedFor(), 2);
  const third = await open('127.0.0.3');
  one.destroy();
  same.destroy();
  t.equal(await ask(third), '127.0.0.3');
  t.equal(await ask(other), '127.0.0.2', 'which one is left is not known');
  t.equal(askedFor(), 4);
});

t.test('when nobody is left, the next one is known again', async (t) => {
  const { port, open, ask, askedFor } = await start(t);
  const websocket = await connectWs(t, port);
  const first = [await open('127.0.0.1'), await open('127.0.0.2')] as const;
  t.equal(await ask(first[0]), '127.0.0.1', 'the websocket left once, not twice');
  t.equal(await ask(first[1]), '127.0.0.2');
  for (const socket of first) socket.destroy();
  await until('both are gone', async () => {
    const last = await open('127.0.0.3');
    const before = askedFor();
    const is_right = (await ask(last)) === '127.0.0.3';
    last.destroy();
    return is_right && askedFor() === before;
  });
  const back = await open('127.0.0.2');
  t.equal(await ask(back), '127.0.0.2');
  websocket.ws.terminate();
});
