import { parseArgs } from 'node:util';

/**
 * Reads the options `--NAME N` of a long run, or their defaults. Anything else ends the process
 * with a usage message, because a run of zero operations would pass even if everything is broken.
 */
export const readNumbers = <K extends string>(
  command: string,
  usual: Readonly<Record<K, number>>,
): Readonly<Record<K, number>> => {
  const names = Object.keys(usual) as K[];
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  try {
    const { values } = parseArgs({ options });
    const entries = names.map((name) => [name, Number(values[name] ?? usual[name])] as const);
    if (entries.some(([, n]) => !(Number.isFinite(n) && n > 0))) throw new Error('no number');
    return Object.fromEntries(entries) as Readonly<Record<K, number>>;
  } catch {
    const shown = names.map((name) => `[--${name} N (${usual[name]})]`).join(' ');
    process.stderr.write(`Usage: npm run ${command} -- ${shown}, each a number above 0.\n`);
    process.exit(2);
  }
};

/** mulberry32 (Tommy Ettinger). The same seed gives the same run. */
export const makeRandom = (start: number): (() => number) => {
  let state = start | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};
