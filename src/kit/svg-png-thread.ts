import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { Resvg } from '@resvg/resvg-js';
import type { PngJob } from './svg-png.js';

/**
 * The thread of `createPngMaker`: draws one picture. Its fonts come from a package, so that a
 * machine without fonts draws the same picture as every other.
 */

const require = createRequire(import.meta.url);
const fonts = ['400Regular/Inter_400Regular.ttf', '600SemiBold/Inter_600SemiBold.ttf'].map((file) =>
  require.resolve(`@expo-google-fonts/inter/${file}`),
);

parentPort?.once('message', ({ svg, width }: PngJob) => {
  const drawn = new Resvg(svg, {
    font: { loadSystemFonts: false, fontFiles: fonts, defaultFontFamily: 'Inter' },
    fitTo: { mode: 'width', value: width },
  }).render();
  parentPort?.postMessage(new Uint8Array(drawn.asPng()));
});
