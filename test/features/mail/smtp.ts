import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import type { Teardown } from '../../help/stores.js';

/** A mail server on 127.0.0.1 that stores accepted e-mails. Its answers to RCPT can be scripted. */

interface TakenMail {
  readonly to: string;
  readonly text: string;
}

export const startSmtp = async (t: Teardown) => {
  const taken: TakenMail[] = [];
  const refusals: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let to = '';
    let text: string[] | null = null;
    let rest = '';
    const answerTo = (line: string): string | null => {
      if (text !== null && line !== '.') {
        text.push(line);
        return null;
      }
      if (text !== null) {
        taken.push({ to, text: text.join('\n') });
        text = null;
      } else if (/^RCPT TO/i.test(line)) {
        to = line.slice(8);
        return refusals.shift() ?? '250 ok';
      } else if (/^DATA/i.test(line)) {
        text = [];
        return '354 go on';
      }
      return /^QUIT/i.test(line) ? '221 bye' : '250 ok';
    };
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('utf8')).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const answer = answerTo(line);
        if (answer !== null) socket.write(`${answer}\r\n`);
      }
    });
    socket.write('220 localhost\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    /** Number of connections so far. */
    countConnections: () => sockets.size,
    /** Answers the next RCPT commands with these answers, in this order, instead of 250. */
    refuseNext: (...answers: string[]) => refusals.push(...answers),
  };
};
