import { figureNames, makeRun, type RunShape, type Stated } from './run.js';

/**
 * All predictions of a question in the order of their times, and the figures of the consensus after
 * each, in typed arrays: about 200 bytes a prediction.
 */
export interface Series {
  readonly shape: RunShape;
  readonly length: number;
  /** Offset of the newest prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  /** Times in milliseconds since 1970, ascending. */
  readonly at: Float64Array;
  readonly side: Uint8Array;
  readonly value: Uint8Array;
  /** `Stated.given` of each after the other: as many numbers as there are options. */
  readonly given: Uint16Array;
  /** Numbers of `families`. */
  readonly family: Uint16Array;
  readonly families: readonly string[];
  /** By the names of `figureNames`; each after the prediction of the same number. */
  readonly figures: readonly Float64Array[];
  /**
   * Numbers of the predictions after which the consensus stood for a while: of those of one
   * millisecond the last, so that the order among them does not matter.
   */
  readonly moments: Int32Array;
}

/** What prediction number `n` gives each option, in percent · (options − 1). */
export const givenAt = ({ shape, given }: Series, n: number): Uint16Array =>
  given.subarray(n * shape.options.length, (n + 1) * shape.options.length);

/** Add predictions in the order of their times, then read. */
export const makeSeries = (shape: RunShape, how: { readonly pooled?: boolean } = {}) => {
  const run = makeRun(shape, how);
  const at: number[] = [];
  const side: number[] = [];
  const value: number[] = [];
  const given: number[] = [];
  const family: number[] = [];
  const families = new Map<string, number>();
  const figures: number[][] = figureNames(shape).map(() => []);
  let offset = 0;
  return {
    add(one: Stated, new_offset: number): void {
      run.add(one);
      at.push(one.at);
      side.push(one.side);
      value.push(one.value);
      for (const part of Array.from(one.given)) given.push(part);
      const number = families.get(one.family) ?? families.size;
      families.set(one.family, number);
      family.push(number);
      for (const [n, figure] of run.figures().entries()) figures[n]?.push(figure);
      offset = Math.max(offset, new_offset);
    },
    read: (): Series => ({
      ...{ shape, length: at.length, offset, families: [...families.keys()] },
      at: Float64Array.from(at),
      side: Uint8Array.from(side),
      value: Uint8Array.from(value),
      given: Uint16Array.from(given),
      family: Uint16Array.from(family),
      figures: figures.map((figure) => Float64Array.from(figure)),
      moments: Int32Array.from(at.flatMap((time, n) => (at[n + 1] === time ? [] : [n]))),
    }),
  };
};
