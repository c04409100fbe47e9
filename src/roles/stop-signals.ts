import { setTimeout as wait } from 'node:timers/promises';

/** What tells a service to stop, as promises to wait for. */
export interface StopSignals {
  /** The first signal, or the end of the npm that started this process. */
  readonly stop: Promise<undefined>;
  /** The second signal. */
  readonly force: Promise<undefined>;
  stopped(): boolean;
  /** Rests, less long when it is told to stop. */
  rest(ms: number): Promise<void>;
  /** Fulfilled after the time; does not keep the process alive. */
  after(ms: number): Promise<undefined>;
}

/** A terminal sends Ctrl-C to everybody, and npm passes a signal on: both come at once. */
const same_ms = 300;
const parent_every_ms = 500;

export const watchStopSignals = (env: NodeJS.ProcessEnv): StopSignals => {
  let first_at = 0;
  let onStop = (_: undefined): void => undefined;
  let onForce = (_: undefined): void => undefined;
  const stop = new Promise<undefined>((resolve) => {
    onStop = resolve;
  });
  const force = new Promise<undefined>((resolve) => {
    onForce = resolve;
  });
  const tell = (): void => {
    if (first_at === 0) {
      first_at = Date.now();
      onStop(undefined);
    } else if (Date.now() - first_at > same_ms) onForce(undefined);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, tell);
  // A closed terminal or a killed npm must not end this process before its children.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  if (env['npm_lifecycle_event'] !== undefined) watchParent(tell);
  return {
    stop,
    force,
    stopped: () => first_at !== 0,
    rest: (ms) => Promise.race([wait(ms), stop]),
    after: (ms) => wait(ms, undefined, { ref: false }),
  };
};

/** npm may be killed in a way that it cannot pass on; then nobody could stop this process. */
const watchParent = (tell: () => void): void => {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    tell();
  }, parent_every_ms);
  timer.unref();
};
