import type { Test } from 'tap';
import type { Answered } from './app.js';
import { connect, type Frame } from './ws-client.js';

/** Calls over a websocket, in the form in which tests make them over HTTP. */

export interface CallParts {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const anything = Symbol('anything');

/** A refused frame has no status; in its place stands that of the fault, which it names. */
export const asAnswered = (frame: Frame): Answered => {
  const headers = new Headers((frame['headers'] ?? {}) as Record<string, string>);
  // Only for browsers, so not in a reply; tests compare replies with answers over HTTP.
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
  /** The close code, once closed. */
  const closed = new Promise<number>((resolve) => ws.on('close', resolve));
  closed.then((code) => {
    for (const { reject } of waiting.values()) reject(new Error(`closed with ${code}`));
  });
  let last_id = 0;
  /** The number for the next frame. */
  const nextId = (): number => {
    last_id += 1;
    return last_id;
  };
  /** The frame that answers what was sent, whatever it is; the text may be no frame at all. */
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
    /** The next reply or error, whatever it answers; for a socket with nothing else under way. */
    askAnything: (text: string | Buffer) => ask(text, anything),
    /** Ids of the replies so far, in order of arrival. */
    replied: () => frames.filter(({ op }) => op === 'reply').map(({ id }) => id),
    /** A call that is sent now; the answer, or a rejection when the socket closes before it. */
    async call(method: string, path: string, parts: CallParts = {}): Promise<Answered> {
      const id = nextId();
      const frame = { op: 'call', id, route: `${method} ${path}`, ...parts };
      return asAnswered(await ask(JSON.stringify(frame), id));
    },
  };
};
