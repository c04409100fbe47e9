/**
 * Reads by id that are asked for one by one and go to the store together: while `lanes` readings
 * are under way the next one gathers, so readings grow with the load and a lonely one waits for
 * nobody. Who asks for an id that is being read waits for that reading.
 */
export type Gather<V> = (id: string) => Promise<V>;

export interface GatherOptions<V> {
  /** In the order of the ids, which are all different. */
  readonly read: (ids: readonly string[]) => Promise<readonly V[]>;
  /** Most ids of one reading. */
  readonly most: number;
  readonly lanes: number;
}

interface Waiting<V> {
  readonly id: string;
  readonly resolve: (value: V) => void;
  readonly reject: (error: unknown) => void;
}

export const makeGather = <V>({ read, most, lanes }: GatherOptions<V>): Gather<V> => {
  const asked = new Map<string, Promise<V>>();
  let waiting: Waiting<V>[] = [];
  let under_way = 0;
  let scheduled = false;

  const readSome = async (some: readonly Waiting<V>[]): Promise<void> => {
    try {
      const values = await read(some.map(({ id }) => id));
      for (const [i, { resolve }] of some.entries()) resolve(values[i] as V);
    } catch (error) {
      for (const { reject } of some) reject(error);
    } finally {
      for (const { id } of some) asked.delete(id);
      under_way -= 1;
      flush();
    }
  };

  const flush = (): void => {
    scheduled = false;
    while (under_way < lanes && waiting.length > 0) {
      const some = waiting.slice(0, most);
      waiting = waiting.slice(most);
      under_way += 1;
      void readSome(some);
    }
  };

  return (id) => {
    const known = asked.get(id);
    if (known !== undefined) return known;
    const work = new Promise<V>((resolve, reject) => {
      waiting.push({ id, resolve, reject });
    });
    asked.set(id, work);
    if (!scheduled && under_way < lanes) {
      scheduled = true;
      setImmediate(flush);
    }
    return work;
  };
};
