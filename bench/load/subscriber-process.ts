import { makeSubscribers, type Subscribed, type SubscribeJob } from './subscribers.js';

/** The process of the subscribers: started by the bench, told over IPC what to do. */

export type ToSubscribers =
  | { readonly op: 'open'; readonly job: SubscribeJob }
  | { readonly op: 'start' | 'stop' | 'close' };
export type FromSubscribers =
  | { readonly op: 'ready' }
  /** How much has been delivered so far, every few milliseconds while it is measured. */
  | { readonly op: 'delivered'; readonly count: number }
  | { readonly op: 'result'; readonly result: Subscribed }
  | { readonly op: 'failed'; readonly error: string };

const report_every_ms = 4;

const tell = (message: FromSubscribers): void => {
  process.send?.(message);
};

let subscribers = makeSubscribers();
let reports: NodeJS.Timeout | undefined;

const handle = async (message: ToSubscribers): Promise<void> => {
  if (message.op === 'open') {
    subscribers = makeSubscribers();
    await subscribers.open(message.job);
    tell({ op: 'ready' });
  } else if (message.op === 'start') {
    subscribers.start();
    let last = 0;
    reports = setInterval(() => {
      const count = subscribers.delivered();
      if (count !== last) tell({ op: 'delivered', count });
      last = count;
    }, report_every_ms);
    tell({ op: 'ready' });
  } else if (message.op === 'stop') {
    clearInterval(reports);
    tell({ op: 'result', result: subscribers.stop() });
  } else {
    subscribers.close();
    tell({ op: 'ready' });
  }
};

process.on('message', (message: ToSubscribers) => {
  handle(message).catch((error: unknown) => tell({ op: 'failed', error: String(error) }));
});
process.on('disconnect', () => process.exit(0));
