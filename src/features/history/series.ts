import { figureNames, makeRun, type RunShape, type Stated } from './run.js';

/**
 * All predictions of a question in the order of their times, and the figures of the consensus after
 * each, in typed arrays: about 180 bytes a prediction. A new one is added at the cost of one step;
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
  /** Numbers of `families`. */
  readonly family: Uint16Array;
  readonly families: readonly string[];
  /** By the names of `figureNames`; each after the prediction of the same number. */
  readonly figures: readonly Float64Array[];
  /**
   * Numbers of the predictions after which the consensus stood for a while: of those of one
   * millisecond the last, so that the order among them does not matter.
   */
  moments(): Int32Array;
}

export interface GrowingSeries extends Series {
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
const makeColumns = (figures: number) => {
  let room = 16;
  const columns = {
    at: new Float64Array(room),
    side: new Uint8Array(room),
    value: new Uint8Array(room),
    family: new Uint16Array(room),
    figures: Array.from({ length: figures }, () => new Float64Array(room)),
  };
  return {
    columns,
    makeRoom(length: number): void {
      if (length <= room) return;
      room *= 2;
      columns.at = grown(columns.at);
      columns.side = grown(columns.side);
      columns.value = grown(columns.value);
      columns.family = grown(columns.family);
      columns.figures = columns.figures.map(grown);
    },
  };
};

export const makeSeries = (shape: RunShape): GrowingSeries => {
  const { columns, makeRoom } = makeColumns(figureNames(shape).length);
  const run = makeRun(shape);
  const owners: string[] = [];
  const families: string[] = [];
  const numbers = new Map<string, number>();
  let length = 0;
  let offset = 0;

  const numberOf = (family: string): number => {
    const known = numbers.get(family);
    if (known !== undefined) return known;
    numbers.set(family, families.length);
    return families.push(family) - 1;
  };
  const statedAt = (index: number): Stated => ({
    at: columns.at[index] as number,
    family: families[columns.family[index] as number] as string,
    owner: owners[index] as string,
    side: columns.side[index] as number,
    value: columns.value[index] as number,
  });
  const append = (one: Stated): void => {
    makeRoom(length + 1);
    run.add(one);
    columns.at[length] = one.at;
    columns.side[length] = one.side;
    columns.value[length] = one.value;
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
      const later: Stated[] = [];
      while (length > 0 && (columns.at[length - 1] as number) > one.at) {
        if (later.length === most_taken_back) return false;
        const last = statedAt(length - 1);
        run.takeBack(last);
        later.push(last);
        length -= 1;
      }
      append(one);
      for (const back of later.reverse()) append(back);
      offset = Math.max(offset, new_offset);
      return true;
    },
    moments() {
      const found = new Int32Array(length);
      let count = 0;
      for (let n = 0; n < length; n += 1) {
        if (n + 1 < length && columns.at[n + 1] === columns.at[n]) continue;
        found[count] = n;
        count += 1;
      }
      return found.subarray(0, count);
    },
    get length() {
      return length;
    },
    get offset() {
      return offset;
    },
    get at() {
      return columns.at.subarray(0, length);
    },
    get side() {
      return columns.side.subarray(0, length);
    },
    get value() {
      return columns.value.subarray(0, length);
    },
    get family() {
      return columns.family.subarray(0, length);
    },
    families,
    get figures() {
      return columns.figures.map((column) => column.subarray(0, length));
    },
  };
};
