import { type ChildProcess, fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeDevCa } from '../../src/process/embedded/dev-ca.js';
import type { Arrived, FromReceivers, ReceiveJob, ToReceivers } from '../load/receiver-process.js';
import type { Bed } from './bed.js';

/** The bench's side of the process that receives webhooks. */
export interface Receivers {
  readonly pid: number;
  readonly ca_file: string;
  url(path: string): string;
  /** Forgets what came before; `arrived` is fulfilled when all that is wanted has come. */
  expect(job: ReceiveJob): Promise<{ readonly arrived: Promise<Arrived> }>;
}

const hear = <Op extends FromReceivers['op']>(child: ChildProcess, op: Op) =>
  new Promise<Extract<FromReceivers, { op: Op }>>((resolve, reject) => {
    const onExit = (code: number | null): void => {
      reject(new Error(`The receivers ended with ${code}.`));
    };
    const onMessage = (message: FromReceivers): void => {
      if (message.op !== op) return;
      child.off('exit', onExit).off('message', onMessage);
      resolve(message as Extract<FromReceivers, { op: Op }>);
    };
    child.on('exit', onExit).on('message', onMessage);
  });

export interface ReceiversOptions {
  /** Of every webhook, for checking signatures. */
  readonly secret: string;
  /** After this an expectation is answered with what has come by then. */
  readonly patience_ms: number;
}

export const startReceivers = async (bed: Bed, options: ReceiversOptions): Promise<Receivers> => {
  const { folder } = bed.context;
  const { ca, cert, key } = await makeDevCa();
  const write = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const ca_file = write('receivers-ca.pem', ca);
  const files = {
    key_file: write('receivers-key.pem', key),
    cert_file: write('receivers.pem', cert),
  };
  const child = fork(new URL('../load/receiver-process.js', import.meta.url), [], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  bed.onClose(() => child.disconnect());
  const send = (message: ToReceivers): void => void child.send(message);
  const listening = hear(child, 'listening');
  send({ op: 'listen', ...files, secret: options.secret });
  const { port } = await listening;
  return {
    pid: child.pid ?? 0,
    ca_file,
    url: (at) => `https://127.0.0.1:${port}${at}`,
    async expect(job) {
      const expecting = hear(child, 'expecting');
      send({ op: 'expect', job });
      await expecting;
      const timer = setTimeout(() => send({ op: 'tell' }), options.patience_ms);
      const arrived = hear(child, 'arrived').then(({ arrived: figures }) => {
        clearTimeout(timer);
        return figures;
      });
      return { arrived };
    },
  };
};
