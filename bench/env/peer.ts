import { fork } from 'node:child_process';

/** A peer server in a process of its own; it tells its port over IPC and ends with its channel. */
export interface RunningPeer {
  readonly port: number;
  readonly pid: number;
  send(message: object): void;
  stop(): void;
}

export const startPeer = (
  module: URL,
  env: Readonly<Record<string, string>>,
): Promise<RunningPeer> =>
  new Promise((resolve, reject) => {
    const child = fork(module, [], {
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    child.once('exit', (code) => reject(new Error(`${module.pathname} ended with ${code}.`)));
    child.once('message', (message: { readonly port: number }) =>
      resolve({
        port: message.port,
        pid: child.pid ?? 0,
        send: (heard) => void child.send(heard),
        // A peer that was ended already has no channel to end it by.
        stop: () => {
          if (child.connected) child.disconnect();
        },
      }),
    );
  });
