import { type ChildProcess, fork } from 'node:child_process';
import type { FromSubscribers, ToSubscribers } from './subscriber-process.js';
import type { Subscribed, SubscribeJob } from './subscribers.js';

/** The bench's side of the subscribers. */
export interface SubscriberGroup {
  readonly pid: number;
  open(job: SubscribeJob): Promise<void>;
  /** Measures from now on; `delivered` is told the number of event frames so far. */
  start(delivered: (count: number) => void): Promise<void>;
  stop(): Promise<Subscribed>;
  /** Closes the sockets. */
  leave(): Promise<void>;
  close(): void;
}

export const startSubscribers = (): SubscriberGroup => {
  const child: ChildProcess = fork(new URL('./subscriber-process.js', import.meta.url), [], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let onDelivered: (count: number) => void = () => undefined;
  child.on('message', (message: FromSubscribers) => {
    if (message.op === 'delivered') onDelivered(message.count);
  });
  const ask = (message: ToSubscribers): Promise<FromSubscribers> =>
    new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => {
        reject(new Error(`The process of the subscribers ended with ${code}.`));
      };
      const onMessage = (answer: FromSubscribers): void => {
        if (answer.op === 'delivered') return;
        child.off('exit', onExit);
        child.off('message', onMessage);
        if (answer.op === 'failed') reject(new Error(`The subscribers failed: ${answer.error}`));
        else resolve(answer);
      };
      child.once('exit', onExit);
      child.on('message', onMessage);
      child.send(message);
    });
  return {
    pid: child.pid ?? 0,
    async open(job) {
      await ask({ op: 'open', job });
    },
    async start(delivered) {
      onDelivered = delivered;
      await ask({ op: 'start' });
    },
    async stop() {
      onDelivered = () => undefined;
      const answer = await ask({ op: 'stop' });
      if (answer.op !== 'result') throw new Error(`The subscribers said ${answer.op}.`);
      return answer.result;
    },
    async leave() {
      await ask({ op: 'close' });
    },
    close: () => child.disconnect(),
  };
};
