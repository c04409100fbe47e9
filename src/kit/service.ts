/**
 * A service is a part of a process that runs until it is stopped: a listener, a follower, a loop.
 * Services start in order and stop in reverse order. Each stop has a time limit.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes the current item and frees everything. Must not throw. */
  stop(): Promise<void>;
}

export interface Running {
  /** The port on which the HTTP server listens, if this process has one. */
  readonly port?: number;
  stop(): Promise<void>;
}

/** The program cannot run here until a person acts. The message says why and how. Exit code 2. */
export class CannotStart extends Error {
  override readonly name = 'CannotStart';
}

/** Rejects with the code `ETIMEOUT` after `ms`. The timer does not keep the process alive. */
export const withDeadline = async <T>(work: Promise<T>, ms: number, what: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // The error is made only when needed, because its stack is costly and most work ends in time.
    timer = setTimeout(() => {
      const error = new Error(`${what} took longer than ${ms} ms`);
      reject(Object.assign(error, { code: 'ETIMEOUT' }));
    }, ms);
    timer.unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * Waits until `floor_ms` after `started_ms` (of `performance.now()`), so that responses that must
 * look the same take the same time. Waiting costs only a timer.
 */
export const waitUntilFloor = (started_ms: number, floor_ms: number): Promise<void> | undefined => {
  const left_ms = started_ms + floor_ms - performance.now();
  if (left_ms <= 0) return undefined;
  return new Promise((resolve) => {
    setTimeout(resolve, Math.ceil(left_ms));
  });
};

/** Starts services in order. If one fails, the services already started are stopped again. */
export const startAll = async (services: readonly Service[]): Promise<Running> => {
  const started: Service[] = [];
  const stop = async (): Promise<void> => {
    for (const service of started.splice(0).reverse()) {
      await withDeadline(service.stop(), 15_000, `Stopping ${service.name}`).catch(() => undefined);
    }
  };
  try {
    for (const service of services) {
      await service.start();
      started.push(service);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
};
