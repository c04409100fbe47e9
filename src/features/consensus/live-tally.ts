import { type Cell, cellField, type Said, type Stated, type Tally } from './rules.js';

/**
 * The tally of one question as it grows. Beside the counts it knows what each owner said, because
 * all predictions of one owner share one weight: another one moves those before it into the cells
 * of owners that have one more.
 */
export interface LiveTally {
  /** One more prediction; at the offset and the time of its event. */
  add(
    stated: Stated,
    by: { readonly owner: string; readonly offset: number; readonly at: string },
  ): void;
  /** How it stands. */
  read(): Tally;
  readonly offset: number;
  /** How much it remembers: entries of about 100 bytes. */
  readonly entries: number;
}

/** Everything that is said alike, by how many predictions its owners have. */
interface Kind {
  readonly said: Said;
  readonly by_size: Map<number, number>;
}

/** An owner with one prediction is the kind of it. */
type Owner = Kind | { size: number; readonly kinds: Map<Kind, number> };

const count = ({ by_size }: Kind, size: number, more: number): void => {
  const now = (by_size.get(size) ?? 0) + more;
  if (now === 0) by_size.delete(size);
  else by_size.set(size, now);
};

export interface TallyStart {
  /** What was said, and by which owners; one that said it twice is named twice. */
  readonly said: readonly (Stated & { readonly owners: readonly string[] })[];
  readonly offset: number;
  readonly updated_at: string | null;
}

export const makeLiveTally = (start: TallyStart): LiveTally => {
  const kinds = new Map<string, Kind>();
  const owners = new Map<string, Owner>();
  const given = new Map<string, number[]>();
  let { offset, updated_at } = start;

  const kindOf = (said: Said): Kind => {
    const field = cellField(said);
    let kind = kinds.get(field);
    if (kind === undefined) {
      const { family, yes, option, value } = said;
      kind = { said: { family, yes, option, value }, by_size: new Map() };
      kinds.set(field, kind);
    }
    return kind;
  };

  const enter = (kind: Kind, name: string): void => {
    const known = owners.get(name);
    if (known === undefined) {
      owners.set(name, kind);
      count(kind, 1, 1);
      return;
    }
    const owner = 'kinds' in known ? known : { size: 1, kinds: new Map([[known, 1]]) };
    owners.set(name, owner);
    for (const [other, n] of owner.kinds) {
      count(other, owner.size, -n);
      count(other, owner.size + 1, n);
    }
    owner.size += 1;
    owner.kinds.set(kind, (owner.kinds.get(kind) ?? 0) + 1);
    count(kind, owner.size, 1);
  };

  const give = ({ family, given: more }: Stated, times: number): void => {
    if (more === null) return;
    const sums = given.get(family) ?? more.map(() => 0);
    given.set(family, sums);
    for (const [n, units] of more.entries()) sums[n] = (sums[n] as number) + times * units;
  };

  for (const { owners: names, ...stated } of start.said) {
    const kind = kindOf(stated);
    for (const name of names) enter(kind, name);
    give(stated, names.length);
  }
  return {
    add(stated, by) {
      enter(kindOf(stated), by.owner);
      give(stated, 1);
      offset = by.offset;
      if (updated_at === null || by.at > updated_at) updated_at = by.at;
    },
    read() {
      const cells: Cell[] = [];
      for (const { said, by_size } of kinds.values()) {
        for (const [size, n] of by_size) cells.push({ size, count: n, ...said });
      }
      const sums = new Map([...given].map(([family, units]) => [family, [...units]]));
      return { cells, given: sums, offset, updated_at };
    },
    get offset() {
      return offset;
    },
    get entries() {
      return owners.size + kinds.size;
    },
  };
};
