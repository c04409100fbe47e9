/**
 * A discrete-event simulation: things happen at times, in order; resources are held and waited for,
 * first come first served. Times are milliseconds. The same seed gives the same run.
 */

interface Happening {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

const isBefore = (a: Happening, b: Happening): boolean =>
  a.at < b.at || (a.at === b.at && a.order < b.order);

export type Simulation = ReturnType<typeof makeSimulation>;

export const makeSimulation = (seed: number) => {
  /** A binary heap: each happening is before those at 2n + 1 and 2n + 2. */
  const heap: Happening[] = [];
  let now = 0;
  let order = 0;
  let state = seed >>> 0;

  /** Mulberry32: uniform in [0, 1). */
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };

  const after = (ms: number, run: () => void): void => {
    const happening = { at: now + ms, order: order++, run };
    let at = heap.length;
    heap.push(happening);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(happening, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = happening;
  };

  const next = (): Happening | undefined => {
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1;
      if (below >= heap.length || !isBefore(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
    return first;
  };

  return {
    now: () => now,
    random,
    exponential: (mean: number): number => -mean * Math.log(1 - random()),
    after,
    /** Runs until a time, or until nothing happens any more. */
    run(until: number): void {
      while (heap[0] !== undefined && heap[0].at <= until) {
        const { at, run } = next()!;
        now = at;
        run();
      }
      now = until;
    },
  };
};

/** So many servers with one queue. */
export type Resource = ReturnType<typeof makeResource>;

export const makeResource = (simulation: Simulation, servers: number) => {
  const waiting: (() => void)[] = [];
  let first = 0;
  let held = 0;
  let busy_ms = 0;
  let since = simulation.now();
  const note = (): void => {
    busy_ms += held * (simulation.now() - since);
    since = simulation.now();
  };
  return {
    acquire(then: () => void): void {
      if (held === servers) {
        waiting.push(then);
        return;
      }
      note();
      held += 1;
      then();
    },
    release(): void {
      if (first < waiting.length) {
        const then = waiting[first++]!;
        if (first > 1_024 && first * 2 > waiting.length) {
          waiting.splice(0, first);
          first = 0;
        }
        // In a turn of its own: a chain of releases must not deepen the stack.
        simulation.after(0, then);
        return;
      }
      note();
      held -= 1;
    },
    /** Share of the servers that was held since the last call. */
    takeUtilisation(span_ms: number): number {
      note();
      const share = busy_ms / (span_ms * servers);
      busy_ms = 0;
      return share;
    },
  };
};

/** Holds all of the resources, taken in this order, for a time. */
export const hold = (
  simulation: Simulation,
  resources: readonly Resource[],
  { ms, next }: { readonly ms: number; readonly next: () => void },
): void => {
  const take = (n: number): void => {
    const resource = resources[n];
    if (resource !== undefined) {
      resource.acquire(() => take(n + 1));
      return;
    }
    simulation.after(ms, () => {
      for (const one of resources.toReversed()) one.release();
      next();
    });
  };
  take(0);
};
