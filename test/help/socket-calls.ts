import type { Test } from 'tap';
import type { Answered } from './app.js';
import { connect, type Frame } from './ws-client.js';

/** Calls over a websocket, in the same form as the HTTP calls of the tests. */

export interface CallParts {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const anything = Symbol('anything');

/** Turns a frame into an HTTP answer. An error frame has no status, so it gets the status 0. */
export const asAnswered = (frame: Frame): Answered => {
  const headers = new Headers((frame['headers'] ?? {}) as Record<string, string>);
  // Only browsers need this header, so replies omit it. Tests compare replies with HTTP answers.
  headers.set('access-control-allow-origin', '*');
  return frame.op === 'reply'
    ? { status: frame['status'] as number, headers, body: frame['body'] ?? '' }
    : { status: 0, headers, body: frame };
};

export type CallSocket = Awaited<ReturnType<typeof openCalls>>;

export const openCalls = async (
  t: Pick<Test, 'teardown'>,
  port: number,
  headers: Readonly<Record<string, string>> = {},
) => {
  const { ws, frames, pause, resume } = await connect(t, port, { headers });
  const waiting = new Map<unknown, { resolve(frame: Frame): void; reject(why: Error): void }>();
  ws.on('message', () => {
    const frame = frames.at(-1) as Frame;
    const is_answer = frame.op === 'reply' || frame.op === 'error';
    for (const id of [frame['id'], ...(is_answer ? [anything] : [])]) {
      waiting.get(id)?.resolve(frame);
      waiting.delete(id);
    }
  });
  /** The close code, once the socket is closed. */
  const closed = new Promise<number>((resolve) => ws.on('close', resolve));
  closed.then((code) => {
    for (const { reject } of waiting.values()) reject(new Error(`closed with ${code}`));
  });
  let last_id = 0;
  /** The id for the next frame. */
  const nextId = (): number => {
    last_id += 1;
    return last_id;
  };
  /** Sends a text, which need not be a valid frame, and returns the frame that answers it. */
  const ask = (text: string | Buffer, id: unknown): Promise<Frame> =>
    new Promise((resolve, reject) => {
      if (ws.readyState !== ws.OPEN) return reject(new Error('not open'));
      waiting.set(id, { resolve, reject });
      return ws.send(text, { binary: false });
    });
  return {
    ws,
    frames,
    closed,
    nextId,
    ask,
    pause,
    resume,
    /** Returns the next reply or error, with any id. For a socket with no other open calls. */
    askAnything: (text: string | Buffer) => ask(text, anything),
    /** Ids of the replies so far, in order of arrival. */
    replied: () => frames.filter(({ op }) => op === 'reply').map(({ id }) => id),
    /** Sends a call now and returns the answer. Rejects if the socket closes first. */
    async call(method: string, path: string, parts: CallParts = {}): Promise<Answered> {
      const id = nextId();
      const frame = { op: 'call', id, route: `${method} ${path}`, ...parts };
      return asAnswered(await ask(JSON.stringify(frame), id));
    },
  };
};
