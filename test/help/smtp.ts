import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import type { Teardown } from './stores.js';

/** A mail server on 127.0.0.1 that keeps what it takes; its answers can be scripted. */

export interface TakenMail {
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

export interface SmtpServer {
  readonly url: string;
  readonly taken: readonly TakenMail[];
  /** Connections so far. */
  readonly connections: number;
  /** What the next RCPT commands get instead of 250, in this order. */
  refuseNext(...answers: string[]): void;
}

export const startSmtp = async (t: Teardown): Promise<SmtpServer> => {
  const taken: TakenMail[] = [];
  const refusals: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const talk = (socket: Socket): void => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    const say = (line: string): void => {
      socket.write(`${line}\r\n`);
    };
    let from = '';
    let to = '';
    let text: string[] | null = null;
    let rest = '';
    const readLine = (line: string): void => {
      if (text !== null) {
        if (line !== '.') {
          text.push(line);
          return;
        }
        taken.push({ from, to, text: text.join('\n') });
        text = null;
        say('250 taken');
      } else if (/^(EHLO|HELO)/i.test(line)) say('250 localhost');
      else if (/^MAIL FROM/i.test(line)) {
        from = line.slice(10);
        say('250 ok');
      } else if (/^RCPT TO/i.test(line)) {
        to = line.slice(8);
        say(refusals.shift() ?? '250 ok');
      } else if (/^DATA/i.test(line)) {
        text = [];
        say('354 go on');
      } else if (/^QUIT/i.test(line)) {
        say('221 bye');
        socket.end();
      } else say('250 ok');
    };
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('utf8')).split('\r\n');
      rest = lines.pop() ?? '';
      lines.forEach(readLine);
    });
    say('220 localhost');
  };
  const server = createServer(talk);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    get connections() {
      return connections;
    },
    refuseNext: (...answers) => refusals.push(...answers),
  };
};
