import { type ChildProcess, fork } from 'node:child_process';
import type { FromLoad, LoadJob, ToLoad } from './load-process.js';
import type { LoadResult } from './tally.js';

/** The bench's side of the load process. */
export interface Loader {
  readonly pid: number;
  /** Makes all requests of the job; nothing is sent yet. */
  prepare(job: LoadJob): Promise<void>;
  go(): Promise<LoadResult>;
  close(): void;
}

const ask = (child: ChildProcess, message: ToLoad): Promise<FromLoad> =>
  new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => {
      reject(new Error(`The load process ended with ${code}.`));
    };
    child.once('exit', onExit);
    child.once('message', (answer: FromLoad) => {
      child.off('exit', onExit);
      if (answer.op === 'failed') reject(new Error(`The load process failed: ${answer.error}`));
      else resolve(answer);
    });
    child.send(message);
  });

export const startLoader = (): Loader => {
  const child = fork(new URL('./load-process.js', import.meta.url), [], {
    execArgv: ['--max-old-space-size=4096'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return {
    pid: child.pid ?? 0,
    async prepare(job) {
      await ask(child, { op: 'prepare', job });
    },
    async go() {
      const answer = await ask(child, { op: 'go' });
      if (answer.op !== 'result') throw new Error(`The load process said ${answer.op}.`);
      return answer.result;
    },
    close: () => {
      child.disconnect();
    },
  };
};

interface Loaded {
  readonly name: string;
  lastErrors?(): string;
}

/** Throws when anything but the wanted answer came: figures of a failing service mean nothing. */
export const requireClean = (
  result: LoadResult,
  allowed: readonly (number | undefined)[],
  who: Loaded,
): void => {
  const odd = Object.entries(result.statuses).filter(
    ([status]) => !allowed.includes(Number(status)),
  );
  const problems = [
    ...odd.map(([status, count]) => `${count} answers were ${status}`),
    ...(result.broken_connections > 0 ? [`${result.broken_connections} connections broke`] : []),
    ...(result.ran_dry ? ['the prepared requests were used up before the time was'] : []),
    ...result.odd_answers.map((text) => `  ${text}`),
  ];
  if (problems.length === 0) return;
  throw new Error(`${who.name}: ${problems.join('\n')}\n${who.lastErrors?.() ?? ''}`);
};
