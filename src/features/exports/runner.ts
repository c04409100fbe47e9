import { createHmac } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../config.js';
import type { Deps } from '../../kit/deps.js';
import { deriveKey } from '../../kit/sealing.js';
import type { Result } from './content.js';
import type { Job } from './job.js';
import type { Privacy } from './predictions-store.js';
import type { FromWorker, ToWorker, WorkerSetup } from './worker.js';

/**
 * The api's side of the thread that makes exports. The thread is started by the first export and
 * ended when there has been none for a while; one that dies takes its exports along and the next
 * export starts another.
 */

/** At once, of one process and of one address. */
export const most_exports = { process: 4, address: 2 } as const;

const idle_ms = 30_000;
const key_purpose = 'export-pseudonym/1';
const block_bytes = 64;

const keyOf = (config: Pick<Config, 'SECRET_KEY'>): Buffer =>
  deriveKey(config.SECRET_KEY ?? '', key_purpose);

/** What stands for an agent in exports: HMAC-SHA-256 of its id, the first 128 bits in hex. */
export const pseudonymOf = (config: Pick<Config, 'SECRET_KEY'>, agent_id: string): string =>
  createHmac('sha256', keyOf(config)).update(agent_id).digest('hex').slice(0, 32);

const makePrivacy = (config: Config): Privacy => {
  const key = Buffer.alloc(block_bytes);
  keyOf(config).copy(key);
  return {
    inner_pad: key.map((byte) => byte ^ 0x36),
    outer_pad: key.map((byte) => byte ^ 0x5c),
    hides_open: config.HIDE_REASONING,
  } as Privacy;
};

class ExportFailed extends Error {
  override readonly name = 'ExportFailed';
  constructor(
    message: string,
    /** Of Postgres, by which an outage is known. */
    readonly code: string,
  ) {
    super(message);
  }
}

interface Listener {
  onMessage(message: FromWorker): void;
}

export interface Exports {
  /** Takes a place; null when there is none. The place is left by calling what is returned. */
  enter(address: string): (() => void) | null;
  /** The bytes of an export; to be read to the end or returned from. */
  run(job: Job, onEnd?: (result: Result) => void): AsyncGenerator<Uint8Array>;
  /** Open exports. */
  count(): number;
  close(): Promise<void>;
}

export const createExports = ({ config, log }: Pick<Deps, 'config' | 'log'>): Exports => {
  const listeners = new Map<number, Listener>();
  const addresses = new Map<string, number>();
  let worker: Worker | null = null;
  let idle: NodeJS.Timeout | undefined;
  let last_id = 0;
  let open = 0;

  const failAll = (message: string): void => {
    for (const [id, listener] of [...listeners]) {
      listener.onMessage({ kind: 'failed', id, message, code: 'CONNECTION_CLOSED' });
    }
  };

  const start = (): Worker => {
    const data: WorkerSetup = {
      database_url: config.DATABASE_URL ?? '',
      prepare: config.DATABASE_PREPARE,
      connections: 2,
      privacy: makePrivacy(config),
    };
    const made = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: data,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    made.unref();
    made.on('message', (message: FromWorker) => listeners.get(message.id)?.onMessage(message));
    made.on('error', (error) => log.error({ error: String(error) }, 'exports: the thread failed'));
    made.on('exit', () => {
      if (worker !== made) return;
      worker = null;
      failAll('the thread that makes exports ended');
    });
    return made;
  };

  const stopLater = (): void => {
    clearTimeout(idle);
    idle = setTimeout(() => {
      if (listeners.size > 0) return;
      const old = worker;
      worker = null;
      void old?.terminate();
    }, idle_ms);
    idle.unref();
  };

  const send = (message: ToWorker): void => {
    worker ??= start();
    worker.postMessage(message);
  };

  async function* run(job: Job, onEnd?: (result: Result) => void): AsyncGenerator<Uint8Array> {
    last_id += 1;
    const id = last_id;
    let arrived: FromWorker | null = null;
    let wake = (): void => undefined;
    listeners.set(id, {
      onMessage(message) {
        arrived = message;
        wake();
      },
    });
    clearTimeout(idle);
    const receive = async (): Promise<FromWorker> => {
      if (arrived === null)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      const message = arrived as FromWorker | null;
      arrived = null;
      if (message === null) throw new ExportFailed('nothing arrived', '');
      return message;
    };
    try {
      send({ kind: 'open', id, job });
      for (;;) {
        const message = await receive();
        if (message.kind === 'failed') throw new ExportFailed(message.message, message.code);
        if (message.kind === 'end') {
          onEnd?.(message.result);
          return;
        }
        // The one after this is made while this one is read.
        send({ kind: 'next', id });
        yield message.piece;
      }
    } finally {
      listeners.delete(id);
      worker?.postMessage({ kind: 'close', id } satisfies ToWorker);
      if (listeners.size === 0) stopLater();
    }
  }

  return {
    enter(address) {
      const mine = addresses.get(address) ?? 0;
      if (open >= most_exports.process || mine >= most_exports.address) return null;
      open += 1;
      addresses.set(address, mine + 1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        open -= 1;
        const now = (addresses.get(address) ?? 1) - 1;
        if (now === 0) addresses.delete(address);
        else addresses.set(address, now);
      };
    },
    run,
    count: () => open,
    async close() {
      clearTimeout(idle);
      const old = worker;
      worker = null;
      failAll('the service ends');
      await old?.terminate();
    },
  };
};
