import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions } from 'smtp-server';
import type { Teardown } from '../../help/stores.js';

/** A mail server on 127.0.0.1 that stores accepted e-mails. Its answers can be scripted. */

export interface TakenMail {
  readonly to: string;
  readonly text: string;
}

type Command = 'MAIL' | 'RCPT' | 'DATA';

const readAll = async (stream: SMTPServerDataStream): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8').replaceAll('\r\n', '\n');
};

/** `450 later` as the error that the server's callbacks take. */
const errorOf = (answer: string) =>
  Object.assign(new Error(answer.slice(4)), { responseCode: Number(answer.slice(0, 3)) });

export const startSmtp = async (t: Teardown) => {
  const taken: TakenMail[] = [];
  const refusals: { readonly command: Command; readonly answer: string }[] = [];
  const refuse = (command: Command) => {
    const [first] = refusals;
    if (first?.command !== command) return null;
    refusals.shift();
    return errorOf(first.answer);
  };
  let connections = 0;
  /** Called after the server took an e-mail and before it answers. */
  let onTaken = async (_: TakenMail): Promise<void> => undefined;
  const handlers: SMTPServerOptions = {
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    closeTimeout: 100,
    onConnect(_, callback) {
      connections += 1;
      callback();
    },
    onMailFrom: (_, __, callback) => callback(refuse('MAIL')),
    onRcptTo: (_, __, callback) => callback(refuse('RCPT')),
    onData(stream, session, callback) {
      const take = async () => {
        const text = await readAll(stream);
        const refused = refuse('DATA');
        if (refused !== null) throw refused;
        const to = `<${session.envelope.rcptTo[0]?.address}>`;
        taken.push({ to, text });
        await onTaken({ to, text });
      };
      take().then(
        () => callback(),
        (error: Error) => callback(error),
      );
    },
  };
  /** A closed server does not listen again, so each start makes a new one. */
  const listen = async (port: number): Promise<SMTPServer> => {
    const server = new SMTPServer(handlers);
    server.on('error', () => undefined);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
    return server;
  };
  let server = await listen(0);
  const { port } = server.server.address() as AddressInfo;
  const close = () => new Promise<void>((resolve) => server.close(resolve));
  t.teardown(close);
  return {
    url: `smtp://127.0.0.1:${port}`,
    taken,
    /** Number of connections so far. */
    countConnections: () => connections,
    /** Answers the next RCPT commands with these answers, in this order, instead of 250. */
    refuseNext: (...answers: string[]) => {
      refusals.push(...answers.map((answer) => ({ command: 'RCPT' as const, answer })));
    },
    refuseNextAt: (command: Command, answer: string) => refusals.push({ command, answer }),
    onTaken: (listener: typeof onTaken) => {
      onTaken = listener;
    },
    close,
    /** Listens again, at the same address. */
    listen: async () => {
      server = await listen(port);
    },
  };
};
