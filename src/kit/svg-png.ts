import { Worker } from 'node:worker_threads';

/**
 * Pictures as PNG, made by a thread of its own: drawing and packing one takes some 40 ms, for which
 * the answers of an api process shall not wait. The thread starts with the first picture, draws one
 * after the other, and is made anew when it dies or takes too long over one.
 */
export interface PngMaker {
  /**
   * The picture as PNG, `width` pixels wide. Rejects when too many wait, after a deadline, and for
   * what is no SVG.
   */
  render(svg: string, width: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface PngJob {
  readonly id: number;
  readonly svg: string;
  readonly width: number;
}

export type PngDone =
  | { readonly id: number; readonly png: Uint8Array }
  | { readonly id: number; readonly problem: string };

/** Nothing is wrong with the picture: it is only not its turn. */
export class PngBusyError extends Error {}

interface Waiting {
  readonly resolve: (png: Uint8Array) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export interface PngOptions {
  readonly most_waiting?: number;
  readonly longest_ms?: number;
}

export const createPngMaker = (options: PngOptions = {}): PngMaker => {
  const { most_waiting = 64, longest_ms = 5_000 } = options;
  const waiting = new Map<number, Waiting>();
  let worker: Worker | null = null;
  let next_id = 0;

  const settle = (id: number): Waiting | undefined => {
    const one = waiting.get(id);
    waiting.delete(id);
    clearTimeout(one?.timer);
    if (waiting.size === 0) worker?.unref();
    return one;
  };

  /** Whoever waits for this thread is told, and the next picture starts another one. */
  const drop = (gone: Worker, error: Error): void => {
    if (worker !== gone) return;
    worker = null;
    for (const id of [...waiting.keys()]) settle(id)?.reject(error);
    void gone.terminate();
  };

  const open = (): Worker => {
    if (worker !== null) return worker;
    const made = new Worker(new URL('./svg-png-thread.js', import.meta.url), { name: 'pictures' });
    made.on('message', (done: PngDone) => {
      const one = settle(done.id);
      if ('png' in done) one?.resolve(done.png);
      else one?.reject(new Error(done.problem));
    });
    made.on('error', (error) => drop(made, error as Error));
    made.on('exit', () => drop(made, new PngBusyError('the thread for pictures ended')));
    worker = made;
    return made;
  };

  return {
    render: (svg, width) =>
      new Promise((resolve, reject) => {
        if (waiting.size >= most_waiting) {
          reject(new PngBusyError('too many pictures are waiting'));
          return;
        }
        const thread = open();
        const late = (): void => drop(thread, new PngBusyError('a picture took too long'));
        const timer = setTimeout(late, longest_ms);
        const id = next_id++;
        waiting.set(id, { resolve, reject, timer });
        thread.ref();
        thread.postMessage({ id, svg, width } satisfies PngJob);
      }),
    async close() {
      const thread = worker;
      if (thread === null) return;
      drop(thread, new PngBusyError('pictures are no longer made'));
      await thread.terminate();
    },
  };
};
