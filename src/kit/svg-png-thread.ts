import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { Resvg } from '@resvg/resvg-js';
import { findFonts, markScripts } from './script-fonts.js';
import type { PngJob } from './svg-png.js';

/**
 * The thread of `createPngMaker`: draws one picture. Its fonts come from packages, so that a
 * machine without fonts draws the same picture as every other.
 */

const require = createRequire(import.meta.url);
const inter = ['400Regular/Inter_400Regular.ttf', '600SemiBold/Inter_600SemiBold.ttf'].map((file) =>
  require.resolve(`@expo-google-fonts/inter/${file}`),
);

parentPort?.once('message', async ({ svg, width }: PngJob) => {
  const { fonts_dir } = workerData as { readonly fonts_dir: string };
  const drawn = new Resvg(markScripts(svg), {
    font: {
      loadSystemFonts: false,
      fontFiles: [...inter, ...(await findFonts(svg, fonts_dir))],
      defaultFontFamily: 'Inter',
    },
    fitTo: { mode: 'width', value: width },
  }).render();
  parentPort?.postMessage(new Uint8Array(drawn.asPng()));
});
