import { createHmac } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../config.js';
import type { Deps } from '../../kit/deps.js';
import { exchange_counters } from '../../kit/http/exchange.js';
import { deriveKey } from '../../kit/sealing.js';
import type { Result } from './content.js';
import { type Job, piece_bytes, piece_places } from './job.js';
import type { Privacy } from './predictions-store.js';
import type { FromWorker, ToWorker, WorkerSetup } from './worker.js';

/**
 * The api's side of the thread that makes exports. The thread is started by the first export and
 * ended when there has been none for a while; one that dies takes its exports along and the next
 * export starts another.
 */

/** At once, of one process and of one address. */
export const most_exports = { process: 4, address: 2 } as const;

/** How long an export waits for a place: short ones are through by then. */
const place_wait_ms = 3_000;

const idle_ms = 30_000;
const heap_mb = 256;
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

type Listen = (message: FromWorker) => void;

/** The thread, started when it is needed; one listener for each export. */
class Thread {
  readonly #setup: WorkerSetup;
  readonly #log: Deps['log'];
  readonly #listeners = new Map<number, Listen>();
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | undefined;
  #last_id = 0;

  constructor(setup: WorkerSetup, log: Deps['log']) {
    this.#setup = setup;
    this.#log = log;
  }

  join(listen: Listen): number {
    this.#last_id += 1;
    this.#listeners.set(this.#last_id, listen);
    clearTimeout(this.#idle);
    return this.#last_id;
  }

  leave(id: number): void {
    this.#listeners.delete(id);
    this.#worker?.postMessage({ kind: 'close', id } satisfies ToWorker);
    if (this.#listeners.size > 0) return;
    this.#idle = setTimeout(() => void this.#end(), idle_ms);
    this.#idle.unref();
  }

  send(message: ToWorker): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(message);
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const ended = this.#end();
    this.#failAll('the service ends');
    await ended;
  }

  #start(): Worker {
    const made = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: this.#setup,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heap_mb },
    });
    made.unref();
    made.on('message', (message: FromWorker) => this.#listeners.get(message.id)?.(message));
    made.on('error', (error) => {
      this.#log.error({ error: String(error) }, 'exports: the thread failed');
    });
    made.on('exit', () => {
      if (this.#worker !== made) return;
      this.#worker = null;
      this.#failAll('the thread that makes exports ended');
    });
    return made;
  }

  async #end(): Promise<void> {
    const old = this.#worker;
    this.#worker = null;
    await old?.terminate();
  }

  #failAll(message: string): void {
    for (const [id, listen] of [...this.#listeners]) {
      listen({ kind: 'failed', id, message, code: 'CONNECTION_CLOSED' });
    }
  }
}

type Leave = () => void;

interface Waiter {
  readonly address: string;
  readonly give: (leave: Leave) => void;
}

/** Places for exports at once; whoever finds none waits a little, in the order of coming. */
class Places {
  readonly #addresses = new Map<string, number>();
  readonly #waiters: Waiter[] = [];
  open = 0;

  enter(address: string): Promise<Leave | null> {
    const leave = this.#take(address);
    if (leave !== null) return Promise.resolve(leave);
    return new Promise((resolve) => {
      const give = (given: Leave | null): void => {
        clearTimeout(timer);
        const at = this.#waiters.indexOf(waiter);
        if (at !== -1) this.#waiters.splice(at, 1);
        resolve(given);
      };
      const waiter: Waiter = { address, give };
      const timer = setTimeout(() => give(null), place_wait_ms);
      this.#waiters.push(waiter);
    });
  }

  #take(address: string): Leave | null {
    const mine = this.#addresses.get(address) ?? 0;
    if (this.open >= most_exports.process || mine >= most_exports.address) return null;
    this.open += 1;
    this.#addresses.set(address, mine + 1);
    let is_left = false;
    return () => {
      if (is_left) return;
      is_left = true;
      this.#leave(address);
    };
  }

  #leave(address: string): void {
    this.open -= 1;
    const left = (this.#addresses.get(address) ?? 1) - 1;
    if (left === 0) this.#addresses.delete(address);
    else this.#addresses.set(address, left);
    for (const waiter of [...this.#waiters]) {
      const leave = this.#take(waiter.address);
      if (leave !== null) waiter.give(leave);
    }
  }
}

export interface Exports {
  /** Takes a place, or null when there is none; it is left by calling what is returned. */
  enter(address: string): Promise<Leave | null>;
  /**
   * The bytes of an export, to be read to the end or returned from. A piece is good until the next
   * is asked for.
   */
  run(job: Job, onEnd?: (result: Result) => void): AsyncGenerator<Uint8Array>;
  /** Open exports. */
  count(): number;
  close(): Promise<void>;
}

/** Others ask for much when they ask more often than this. */
const many_per_second = 50;
const look_ms = 100;

/** Whether requests come that often, looked at from time to time. */
const makeOthers = () => {
  const count = (): number => exchange_counters.opened;
  let last = { count: count(), at_ms: performance.now() };
  let is_many = false;
  return (): boolean => {
    const now = { count: count(), at_ms: performance.now() };
    const passed_ms = now.at_ms - last.at_ms;
    if (passed_ms >= look_ms) {
      is_many = now.count - last.count > (many_per_second * passed_ms) / 1_000;
      last = now;
    }
    return is_many;
  };
};

/** Messages in the order of their coming, each taken once. */
const makeInbox = () => {
  const arrived: FromWorker[] = [];
  let wake: ((message: FromWorker) => void) | null = null;
  return {
    put(message: FromWorker): void {
      if (wake === null) arrived.push(message);
      else wake(message);
      wake = null;
    },
    take(): Promise<FromWorker> {
      const message = arrived.shift();
      if (message !== undefined) return Promise.resolve(message);
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
  };
};

async function* runIn(
  thread: Thread,
  job: Job,
  onEnd: ((result: Result) => void) | undefined,
): AsyncGenerator<Uint8Array> {
  const inbox = makeInbox();
  const id = thread.join(inbox.put);
  const shared = new SharedArrayBuffer(piece_places * piece_bytes);
  const othersAsk = makeOthers();
  try {
    thread.send({ kind: 'open', id, job, shared });
    for (;;) {
      const message = await inbox.take();
      if (message.kind === 'failed') throw new ExportFailed(message.message, message.code);
      if (message.kind === 'end') {
        onEnd?.(message.result);
        return;
      }
      yield new Uint8Array(shared, message.at, message.bytes);
      thread.send({ kind: 'taken', id, others_ask: othersAsk() });
    }
  } finally {
    thread.leave(id);
  }
}

export const createExports = ({ config, log }: Pick<Deps, 'config' | 'log'>): Exports => {
  const thread = new Thread(
    {
      database_url: config.DATABASE_URL ?? '',
      prepare: config.DATABASE_PREPARE,
      connections: 1,
      privacy: makePrivacy(config),
    },
    log,
  );
  const places = new Places();
  return {
    enter: (address) => places.enter(address),
    run: (job, onEnd) => runIn(thread, job, onEnd),
    count: () => places.open,
    close: () => thread.close(),
  };
};
