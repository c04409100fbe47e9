import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { renderAsync } from '@resvg/resvg-js';
import type { PngDone, PngJob } from './svg-png.js';

/**
 * The thread of `createPngMaker`. Its letters come with a package, so that a machine without fonts
 * draws the same picture as every other.
 */

const require = createRequire(import.meta.url);
const fonts = ['400Regular/Inter_400Regular.ttf', '600SemiBold/Inter_600SemiBold.ttf'].map((file) =>
  require.resolve(`@expo-google-fonts/inter/${file}`),
);

const draw = async ({ id, svg, width }: PngJob): Promise<PngDone> => {
  try {
    const drawn = await renderAsync(svg, {
      font: { loadSystemFonts: false, fontFiles: fonts, defaultFontFamily: 'Inter' },
      fitTo: { mode: 'width', value: width },
    });
    return { id, png: new Uint8Array(drawn.asPng()) };
  } catch (error) {
    return { id, problem: error instanceof Error ? error.message : String(error) };
  }
};

let turn: Promise<void> = Promise.resolve();
parentPort?.on('message', (job: PngJob) => {
  turn = turn.then(async () => {
    const done = await draw(job);
    parentPort?.postMessage(done, 'png' in done ? [done.png.buffer as ArrayBuffer] : []);
  });
});
