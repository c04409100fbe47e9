import os from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openSql, type Sql } from '../../kit/pg/client.js';
import type { Result } from './content.js';
import { type Job, piece_bytes, type RunningJob, runJob } from './job.js';
import type { Privacy } from './predictions-store.js';

/**
 * The thread that makes exports, so that the loop of the api process only hands their bytes on. It
 * has one connection of its own, in which the pages of all exports follow each other, so that they
 * never keep more than one core of Postgres busy; and one piece of each export ready: what nobody
 * takes is not made.
 */

export interface WorkerSetup {
  readonly database_url: string;
  readonly prepare: boolean;
  readonly connections: number;
  readonly privacy: Privacy;
}

export type ToWorker =
  | {
      readonly kind: 'open';
      readonly id: number;
      readonly job: Job;
      /** Of two pieces, which take turns; memory of its own for each would be much to collect. */
      readonly shared: SharedArrayBuffer;
    }
  | { readonly kind: 'next' | 'close'; readonly id: number };

export type FromWorker =
  | {
      readonly kind: 'piece';
      readonly id: number;
      /** Where it lies in the shared memory. */
      readonly at: number;
      readonly bytes: number;
    }
  | { readonly kind: 'end'; readonly id: number; readonly result: Result }
  | {
      readonly kind: 'failed';
      readonly id: number;
      readonly message: string;
      readonly code: string;
    };

const niceness = 5;
const statement_timeout_ms = 60_000;

interface Held extends RunningJob {
  readonly shared: Uint8Array;
  /** Which half the next piece goes into. */
  turn: 0 | 1;
}

const yieldToOthers = (): void => {
  try {
    // On Linux this is the priority of the calling thread alone.
    if (process.platform === 'linux') os.setPriority(niceness);
  } catch {
    // Nothing depends on it.
  }
};

const openStore = ({ database_url, connections, prepare }: WorkerSetup): Sql =>
  openSql({
    url: database_url,
    pool: connections,
    prepare,
    name: 'exports',
    statement_timeout_ms,
  });

const serve = (port: MessagePort, setup: WorkerSetup): void => {
  const sql = openStore(setup);
  const privacy: Privacy = {
    ...setup.privacy,
    inner_pad: Buffer.from(setup.privacy.inner_pad),
    outer_pad: Buffer.from(setup.privacy.outer_pad),
  };
  const running = new Map<number, Held>();

  const send = (message: FromWorker): void => port.postMessage(message);

  const sendNext = async (id: number): Promise<void> => {
    const job = running.get(id);
    if (job === undefined) return;
    try {
      const next = await job.pieces.next();
      if (!running.has(id)) return;
      if (next.done === true) {
        running.delete(id);
        send({ kind: 'end', id, result: job.result() });
      } else {
        const at = job.turn * piece_bytes;
        job.shared.set(next.value, at);
        job.turn = job.turn === 0 ? 1 : 0;
        send({ kind: 'piece', id, at, bytes: next.value.byteLength });
      }
    } catch (error) {
      running.delete(id);
      const { message = String(error), code = '' } = error as { message?: string; code?: string };
      send({ kind: 'failed', id, message, code: String(code) });
    }
  };

  port.on('message', (message: ToWorker) => {
    const { kind, id } = message;
    if (kind === 'open') {
      const shared = new Uint8Array(message.shared);
      running.set(id, { ...runJob(sql, message.job, privacy), shared, turn: 0 });
      void sendNext(id);
    } else if (kind === 'next') void sendNext(id);
    else {
      const job = running.get(id);
      running.delete(id);
      job?.pieces.return(undefined).catch(() => undefined);
    }
  });
};

if (parentPort !== null) {
  yieldToOthers();
  serve(parentPort, workerData as WorkerSetup);
}
