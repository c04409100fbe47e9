import { Worker } from 'node:worker_threads';

/**
 * Pictures as PNG, drawn by a thread of its own: one takes some 60 ms, for which the answers of an
 * api process shall not wait. The thread starts with the first picture and draws one after the
 * other; a bounded number waits.
 *
 * It is ended and another one started after so many pixels, when it takes too long over one, and
 * when nobody wants a picture for a while. What was drawn (4 bytes a pixel) hangs on objects that
 * are too small for the collector of the thread to hurry, and only its end gives all of it back.
 */
export interface PngMaker {
  /**
   * The picture as PNG, `width` pixels wide. Rejects with a `PngBusyError` when too many wait or
   * it takes too long, and for what is no SVG.
   */
  render(svg: string, width: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface PngJob {
  readonly svg: string;
  readonly width: number;
}

export type PngDone =
  | { readonly png: Uint8Array; readonly pixels: number }
  | { readonly problem: string };

/** Nothing is wrong with the picture: it is only not its turn. */
export class PngBusyError extends Error {}

export interface PngOptions {
  readonly most_waiting?: number;
  /** Longest that one picture is drawn. */
  readonly longest_ms?: number;
  /** After so many pixels another thread is started. */
  readonly renew_pixels?: number;
  readonly idle_ms?: number;
}

export const createPngMaker = (options: PngOptions = {}): PngMaker => {
  const { most_waiting = 32 } = options;
  interface Waiting {
    readonly job: PngJob;
    readonly resolve: (png: Uint8Array) => void;
    readonly reject: (error: Error) => void;
  }
  const waiting: Waiting[] = [];
  const thread = makeThread(options);
  let is_drawing = false;

  const drawAll = async (): Promise<void> => {
    is_drawing = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        next.resolve(await thread.draw(next.job));
      } catch (error) {
        next.reject(error as Error);
      }
    }
    is_drawing = false;
  };

  return {
    render: (svg, width) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= most_waiting) {
          reject(new PngBusyError('too many pictures are waiting'));
          return;
        }
        waiting.push({ job: { svg, width }, resolve, reject });
        if (!is_drawing) void drawAll();
      }),
    close: thread.close,
  };
};

/** The thread, made when it is needed; never are there two. One picture is drawn at a time. */
const makeThread = (options: PngOptions) => {
  const { longest_ms = 5_000, renew_pixels = 3_240_000, idle_ms = 10_000 } = options;
  let worker: Worker | null = null;
  let drawn_pixels = 0;
  let idle: NodeJS.Timeout | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  let is_closed = false;

  const end = async (): Promise<void> => {
    clearTimeout(idle);
    if (worker !== null) ended = worker.terminate();
    worker = null;
    drawn_pixels = 0;
    await ended;
  };

  const start = (): Worker => {
    const made = new Worker(new URL('./svg-png-thread.js', import.meta.url), { name: 'pictures' });
    // Whoever waits for a picture is told; without a listener the process would end.
    made.on('error', () => undefined);
    made.once('exit', () => {
      if (worker === made) worker = null;
    });
    return made;
  };

  const draw = async (job: PngJob): Promise<Uint8Array> => {
    clearTimeout(idle);
    await ended;
    if (is_closed) throw new PngBusyError('pictures are no longer made');
    worker ??= start();
    const thread = worker;
    thread.ref();
    let is_over = true;
    try {
      const done = await ask(thread, job, longest_ms);
      if ('problem' in done) throw new Error(done.problem);
      drawn_pixels += done.pixels;
      is_over = drawn_pixels >= renew_pixels;
      return done.png;
    } finally {
      thread.unref();
      idle = setTimeout(end, idle_ms).unref();
      // After a failure, too: a late picture must not be taken for the next one.
      if (is_over) void end();
    }
  };
  const close = (): Promise<void> => {
    is_closed = true;
    return end();
  };
  return { draw, close };
};

/** What comes of one picture; rejects when the thread ends or takes longer than `longest_ms`. */
const ask = (thread: Worker, job: PngJob, longest_ms: number): Promise<PngDone> =>
  new Promise((resolve, reject) => {
    const onExit = (): void => settle(() => reject(new PngBusyError('the thread ended')));
    const onError = (error: Error): void => settle(() => reject(error));
    const onDone = (done: PngDone): void => settle(() => resolve(done));
    const onLate = (): void => settle(() => reject(new PngBusyError('a picture took too long')));
    const timer = setTimeout(onLate, longest_ms);
    const settle = (how: () => void): void => {
      clearTimeout(timer);
      thread.off('message', onDone).off('error', onError).off('exit', onExit);
      how();
    };
    thread.on('message', onDone).on('error', onError).on('exit', onExit);
    thread.postMessage(job);
  });
