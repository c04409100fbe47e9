import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { Resvg } from '@resvg/resvg-js';
import type { PngDone, PngJob } from './svg-png.js';

/**
 * The thread of `createPngMaker`. Its letters come with a package, so that a machine without fonts
 * draws the same picture as every other. It draws here, not on the threads that the whole
 * process shares.
 */

const require = createRequire(import.meta.url);
const fonts = ['400Regular/Inter_400Regular.ttf', '600SemiBold/Inter_600SemiBold.ttf'].map((file) =>
  require.resolve(`@expo-google-fonts/inter/${file}`),
);

const draw = ({ svg, width }: PngJob): PngDone => {
  try {
    const drawn = new Resvg(svg, {
      font: { loadSystemFonts: false, fontFiles: fonts, defaultFontFamily: 'Inter' },
      fitTo: { mode: 'width', value: width },
    }).render();
    return { png: new Uint8Array(drawn.asPng()), pixels: drawn.width * drawn.height };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
};

parentPort?.on('message', (job: PngJob) => {
  const done = draw(job);
  parentPort?.postMessage(done, 'png' in done ? [done.png.buffer as ArrayBuffer] : []);
});
