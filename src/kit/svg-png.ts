import { Worker } from 'node:worker_threads';
import { BusyError, makeQueue } from './cache.js';

/**
 * Pictures as PNG, each drawn by a thread of its own, one after the other: the event loop does not
 * wait for it. A thread is ended after its picture, because what it drew (4 bytes a pixel) hangs on
 * objects that are too small for its collector to hurry, and only its end gives all of it back.
 */
export interface PngMaker {
  /**
   * The picture as PNG, `width` pixels wide. Rejects with a `BusyError` when too many wait or it
   * takes too long, and for what is no SVG.
   */
  render(svg: string, width: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface PngJob {
  readonly svg: string;
  readonly width: number;
}

export interface PngOptions {
  readonly most_waiting?: number;
  /** Longest that one picture is drawn. */
  readonly longest_ms?: number;
}

export const createPngMaker = (options: PngOptions = {}): PngMaker => {
  const { most_waiting = 32, longest_ms = 5_000 } = options;
  const queue = makeQueue(1, most_waiting);
  let thread: Worker | null = null;
  let is_closed = false;

  const draw = async (job: PngJob): Promise<Uint8Array> => {
    if (is_closed) throw new BusyError('pictures are no longer made');
    const started = new Worker(new URL('./svg-png-thread.js', import.meta.url));
    thread = started;
    started.postMessage(job);
    let late: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        started.once('message', resolve).once('error', reject);
        started.once('exit', () => reject(new BusyError('the thread ended')));
        const giveUp = () => reject(new BusyError('a picture took too long'));
        late = setTimeout(giveUp, longest_ms);
      });
    } finally {
      clearTimeout(late);
      await started.terminate();
      thread = null;
    }
  };

  return {
    render: (svg, width) => queue(() => draw({ svg, width })),
    async close() {
      is_closed = true;
      await thread?.terminate();
    },
  };
};
