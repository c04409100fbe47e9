import { figureNames, makeRun, type RunShape, type Stated } from './run.js';

/**
 * All predictions of a question in the order of their times, and the figures of the consensus after
 * each, in typed arrays: about 200 bytes a prediction. A new one is added at the cost of one step;
 * one that comes a little late is put in its place by taking back those after it.
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

/** A series that grows; what was read before is not to be looked at after the next `add`. */
export interface GrowingSeries {
  readonly shape: RunShape;
  readonly length: number;
  readonly offset: number;
  read(): Series;
  /** False when it belongs too far back: the series has to be made anew then. */
  add(one: Stated, offset: number): boolean;
}

/** So many predictions are taken back for one that comes late. */
const most_taken_back = 2_000;

const grown = <A extends Float64Array | Uint8Array | Uint16Array>(array: A): A => {
  const larger = new (array.constructor as new (length: number) => A)(array.length * 2);
  larger.set(array);
  return larger;
};

/** Columns that grow together. */
const makeColumns = (options: number, figures: number) => {
  let room = 16;
  const columns = {
    at: new Float64Array(room),
    side: new Uint8Array(room),
    value: new Uint8Array(room),
    given: new Uint16Array(room * options),
    family: new Uint16Array(room),
    figures: Array.from({ length: figures }, () => new Float64Array(room)),
  };
  return {
    columns,
    /** The first so many rows, without a copy. */
    cut: (length: number) => ({
      at: columns.at.subarray(0, length),
      side: columns.side.subarray(0, length),
      value: columns.value.subarray(0, length),
      given: columns.given.subarray(0, length * options),
      family: columns.family.subarray(0, length),
      figures: columns.figures.map((figure) => figure.subarray(0, length)),
    }),
    makeRoom(length: number): void {
      if (length <= room) return;
      room *= 2;
      columns.at = grown(columns.at);
      columns.side = grown(columns.side);
      columns.value = grown(columns.value);
      columns.given = grown(columns.given);
      columns.family = grown(columns.family);
      columns.figures = columns.figures.map(grown);
    },
  };
};

/** Names and their numbers, from 0 in the order in which they come. */
const makeNames = () => {
  const names: string[] = [];
  const numbers = new Map<string, number>();
  return {
    names,
    numberOf(name: string): number {
      const known = numbers.get(name);
      if (known !== undefined) return known;
      numbers.set(name, names.length);
      return names.push(name) - 1;
    },
  };
};

/** Numbers of the predictions that are the last of their millisecond. */
const lastOfEach = (at: Float64Array): Int32Array => {
  const found = new Int32Array(at.length);
  let count = 0;
  for (let n = 0; n < at.length; n += 1) {
    if (n + 1 < at.length && at[n + 1] === at[n]) continue;
    found[count] = n;
    count += 1;
  }
  return found.subarray(0, count);
};

export const makeSeries = (
  shape: RunShape,
  how: { readonly pooled?: boolean } = {},
): GrowingSeries => {
  const options = shape.options.length;
  const { columns, cut, makeRoom } = makeColumns(options, figureNames(shape).length);
  const run = makeRun(shape, how);
  const owners: string[] = [];
  const { names: families, numberOf } = makeNames();
  let length = 0;
  let offset = 0;

  const takeLast = (): Stated => {
    length -= 1;
    const last: Stated = {
      at: columns.at[length] as number,
      family: families[columns.family[length] as number] as string,
      owner: owners[length] as string,
      side: columns.side[length] as number,
      value: columns.value[length] as number,
      given: columns.given.slice(length * options, (length + 1) * options),
    };
    run.takeBack(last);
    return last;
  };
  const append = (one: Stated): void => {
    makeRoom(length + 1);
    run.add(one);
    columns.at[length] = one.at;
    columns.side[length] = one.side;
    columns.value[length] = one.value;
    columns.given.set(one.given, length * options);
    columns.family[length] = numberOf(one.family);
    owners[length] = one.owner;
    for (const [n, figure] of run.figures().entries()) {
      (columns.figures[n] as Float64Array)[length] = figure;
    }
    length += 1;
  };

  return {
    shape,
    add(one, new_offset) {
      // Whoever refuses has changed nothing.
      if (length > most_taken_back) {
        const farthest = columns.at[length - 1 - most_taken_back] as number;
        if (farthest > one.at) return false;
      }
      const later: Stated[] = [];
      while (length > 0 && (columns.at[length - 1] as number) > one.at) later.push(takeLast());
      append(one);
      for (const back of later.reverse()) append(back);
      offset = Math.max(offset, new_offset);
      return true;
    },
    read() {
      const cuts = cut(length);
      return { shape, length, offset, families, ...cuts, moments: lastOfEach(cuts.at) };
    },
    get length() {
      return length;
    },
    get offset() {
      return offset;
    },
  };
};
