/** Waiting: between tries, and for as long as somebody is still interested. */

/** A random time up to `base_ms` doubled with each try, and up to `most_ms`. */
export const backoff = (tries: number, base_ms: number, most_ms: number): number =>
  Math.random() * Math.min(most_ms, base_ms * 2 ** Math.min(tries, 20));

/** Rejects with the signal's reason as soon as it is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });
