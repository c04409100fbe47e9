import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openSql, type Sql } from '../../kit/pg/client.js';
import type { Result } from './content.js';
import { type Job, piece_bytes, piece_places, type RunningJob, runJob } from './job.js';
import type { Pace } from './pace.js';
import type { Privacy } from './predictions-store.js';

/**
 * The thread that makes exports, so that the loop of the api process only hands their bytes on. It
 * has one connection of its own, in which the pages of all exports follow each other, so that they
 * never keep more than one core of Postgres busy; and a few pieces of each export ready: what
 * nobody takes is not made.
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
      /** Places for pieces, in turn; memory of its own for each would be much to collect. */
      readonly shared: SharedArrayBuffer;
    }
  /** The oldest piece is not needed any more. */
  | { readonly kind: 'taken'; readonly id: number; readonly others_ask: boolean }
  | { readonly kind: 'close'; readonly id: number };

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

const statement_timeout_ms = 60_000;

interface Held extends RunningJob {
  readonly shared: Uint8Array;
  readonly pace: Pace;
  /** Pieces that nobody has taken yet. */
  ready: number;
  /** Called when one of them is taken, and at the end. */
  wake: () => void;
}

const untilWoken = (held: Held): Promise<void> =>
  new Promise((resolve) => {
    held.wake = resolve;
  });

/** Lets what Postgres sent meanwhile come in, so that it goes on while lines are put together. */
const takeTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

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

  const sendPieces = async (id: number, held: Held): Promise<void> => {
    let place = 0;
    for await (const piece of held.pieces) {
      while (held.ready === piece_places && running.has(id)) await untilWoken(held);
      if (!running.has(id)) return;
      const at = place * piece_bytes;
      held.shared.set(piece, at);
      held.ready += 1;
      place = (place + 1) % piece_places;
      send({ kind: 'piece', id, at, bytes: piece.byteLength });
      await takeTurn();
    }
    if (running.delete(id)) send({ kind: 'end', id, result: held.result() });
  };

  const fail = (id: number, error: unknown): void => {
    if (!running.delete(id)) return;
    const { message = String(error), code = '' } = error as { message?: string; code?: string };
    send({ kind: 'failed', id, message, code: String(code) });
  };

  port.on('message', (message: ToWorker) => {
    const { kind, id } = message;
    if (kind === 'open') {
      const shared = new Uint8Array(message.shared);
      const pace: Pace = { others_ask: false };
      const job = runJob({ sql, privacy, pace }, message.job);
      const held: Held = { ...job, shared, pace, ready: 0, wake: () => undefined };
      running.set(id, held);
      sendPieces(id, held).catch((error: unknown) => fail(id, error));
      return;
    }
    const held = running.get(id);
    if (held === undefined) return;
    if (kind === 'taken') {
      held.ready -= 1;
      held.pace.others_ask = message.others_ask;
    } else running.delete(id);
    held.wake();
  });
};

if (parentPort !== null) serve(parentPort, workerData as WorkerSetup);
