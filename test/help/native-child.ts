import { App, us_socket_local_port } from '../../src/http/uws.js';

/**
 * Uses the bare HTTP and websocket library in ways that may end the process: `node native-child.js
 * SCENARIO [ARGUMENT]`. The process prints `port N` once it is listening.
 */
process.on('uncaughtException', () => console.log('caught'));
process.on('unhandledRejection', () => console.log('rejected'));

const [scenario = '', argument = ''] = process.argv.slice(2);
const app = App();

const listen = (port: number): void => {
  (app.listen as (...all: unknown[]) => void).call(
    app,
    '127.0.0.1',
    port,
    0,
    (socket: Parameters<typeof us_socket_local_port>[0] | false) =>
      console.log(socket ? `port ${us_socket_local_port(socket)}` : 'taken'),
  );
};

const scenarios: Record<string, () => void> = {
  /** One path for each way to leave a request unanswered. */
  handlers() {
    app.get('/silent', () => undefined);
    app.get('/throws', () => {
      throw new Error('before');
    });
    app.get('/rejects', async () => {
      throw new Error('before');
    });
    app.get('/throws-later', (res) => {
      res.onAborted(() => undefined);
      throw new Error('after');
    });
    app.get('/rejects-later', async (res) => {
      res.onAborted(() => undefined);
      await Promise.resolve();
      throw new Error('after');
    });
    app.get('/uncorked', (res) => {
      res.onAborted(() => undefined);
      setImmediate(() => {
        res.writeStatus('200 OK').writeHeader('a', 'b').end('x');
      });
    });
    app.get('/fine', (res) => {
      res.end('fine');
    });
    listen(0);
  },
  listen() {
    app.get('/', (res) => {
      res.end(String(process.pid));
    });
    listen(Number(argument));
  },
  idle() {
    app.ws('/ws', { idleTimeout: Number(argument) });
    console.log('fine');
  },
  publish() {
    app.publish('topic', 'message');
    console.log('fine');
  },
};

scenarios[scenario]?.();
