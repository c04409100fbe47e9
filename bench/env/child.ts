import { fork } from 'node:child_process';
import type { BenchContext } from '../frame/bench.js';

/** Starts child processes for a bench and calls them: one request and one response over IPC. */

type Call = Readonly<{ id: number; name: string; argument: unknown }>;
type Response = Readonly<{ id: number; result?: unknown; error?: string }>;

export type Handlers = Readonly<Record<string, (argument: never) => unknown>>;

/** Runs in the child. Answers calls until the bench closes the channel. */
export const serve = (handlers: Handlers): void => {
  process.on('message', async ({ id, name, argument }: Call) => {
    try {
      process.send?.({ id, result: await handlers[name]!(argument as never) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.stack : String(error) });
    }
  });
  process.on('disconnect', () => process.exit(0));
};

export interface Child<T extends Handlers> {
  readonly pid: number;
  call<Name extends keyof T & string>(
    name: Name,
    ...argument: Parameters<T[Name]>
  ): Promise<Awaited<ReturnType<T[Name]>>>;
}

/** Starts a module of `bench` in a process that ends with the bench. */
export const startChild = <T extends Handlers>(
  { onClose }: BenchContext,
  module: string,
  env: Readonly<Record<string, string>> = {},
): Child<T> => {
  const child = fork(new URL(`../${module}.js`, import.meta.url), [], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    execArgv: ['--max-old-space-size=4096'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const waiting = new Map<number, (response: Response) => void>();
  let calls = 0;
  child.on('message', (response: Response) => waiting.get(response.id)?.(response));
  child.on('exit', (code) => {
    for (const [id, respond] of waiting) respond({ id, error: `It ended with ${code}.` });
  });
  onClose(() => child.connected && child.disconnect());
  return {
    pid: child.pid ?? 0,
    call: (name, ...[argument]) =>
      new Promise((resolve, reject) => {
        const id = calls++;
        waiting.set(id, ({ result, error }) => {
          waiting.delete(id);
          if (error === undefined) resolve(result as never);
          else reject(new Error(`${module}: ${error}`));
        });
        child.send({ id, name, argument });
      }),
  };
};
