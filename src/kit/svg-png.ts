import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { BusyError, makeCache, makeFairPool } from './cache.js';
import { sha256 } from './ids.js';

export interface PngJob {
  readonly svg: string;
  readonly width: number;
}

const max_kept_bytes = 20_000_000;

/**
 * Draws pictures as PNG, one at a time and each in its own thread, so that the event loop does not
 * wait. Clients take turns, so a client that asks for many pictures does not keep others waiting. A
 * thread ends after its picture, because only its end frees all of the pixels (4 bytes each). They
 * belong to objects that are too small to hurry the garbage collector. The newest pictures are kept.
 */
export const createPngMaker = ({ waiting = 32, waiting_of_each = 8, longest_ms = 5_000 } = {}) => {
  const pool = makeFairPool({ at_once: 1, of_each: 1, waiting, waiting_of_each });
  const kept = makeCache<Uint8Array>({ most: max_kept_bytes, sizeOf: (png) => png.length });
  let thread: Worker | null = null;
  let is_closed = false;
  /** Fonts are unpacked here. Null until the first picture. */
  let fonts_dir: string | null = null;

  const draw = async (job: PngJob): Promise<Uint8Array> => {
    if (is_closed) throw new BusyError('pictures are no longer made');
    fonts_dir ??= mkdtempSync(path.join(tmpdir(), 'prediction-forum-fonts-'));
    const started = new Worker(new URL('./svg-png-thread.js', import.meta.url), {
      workerData: { fonts_dir },
    });
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
    /**
     * Returns the picture as PNG, `width` pixels wide. Rejects if the text is not SVG. Rejects with
     * a `BusyError` if too many pictures are waiting, for this client or in total, or if drawing
     * takes longer than `longest_ms`.
     */
    render: async (client: string, job: PngJob): Promise<Uint8Array> =>
      kept.get(`${job.width} ${sha256(job.svg, 'hex')}`, async () => {
        const png = await pool.run(client, () => draw(job));
        if (png === undefined) throw new BusyError('too many wait');
        return png;
      }),
    async close(): Promise<void> {
      is_closed = true;
      await thread?.terminate();
      if (fonts_dir !== null) rmSync(fonts_dir, { recursive: true, force: true });
    },
  };
};
export type PngMaker = ReturnType<typeof createPngMaker>;

export interface PngParts {
  readonly pngs: PngMaker;
}
