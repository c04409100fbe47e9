import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import { until } from './until.js';

/** A websocket client that stores everything it receives, so that tests can inspect it. */

export type Frame = Readonly<Record<string, unknown>> & { readonly op: string };

export interface ClientOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
}

export type Client = Awaited<ReturnType<typeof connect>>;

/** Connects and waits for the handshake. Closes with the test. */
export const connect = async (
  t: Pick<Test, 'teardown'>,
  port: number,
  { headers = {}, path = '/ws' }: ClientOptions = {},
) => {
  const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers, perMessageDeflate: false });
  const frames: Frame[] = [];
  let close_code: number | undefined;
  let broken = '';
  ws.on('message', (text) => frames.push(JSON.parse(String(text)) as Frame));
  ws.on('close', (code) => {
    close_code = code;
  });
  ws.on('error', (error) => {
    broken = ` (${error.message})`;
  });
  t.teardown(() => ws.terminate());
  /** The first frame that matches, already received or still to come. */
  const get = async (
    what: string,
    matches: (frame: Frame) => boolean,
    within_ms = 30_000,
  ): Promise<Frame> => {
    const is_over = () => frames.some(matches) || close_code !== undefined;
    await until(what, is_over, within_ms).catch(() => undefined);
    const found = frames.find(matches);
    if (found !== undefined) return found;
    const seen = JSON.stringify(frames.slice(-5)).slice(0, 2_000);
    throw new Error(`${what}: closed with ${close_code}${broken}; the last frames: ${seen}`);
  };
  /** Event frames so far, or only the frames of this topic. */
  const events = (topic?: string): readonly Frame[] =>
    frames.filter((f) => f.op === 'event' && (topic === undefined || f['topic'] === topic));
  const send = (frame: unknown): void =>
    ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  /** The answer to the frame with this id. */
  const answer = (id: number | string): Promise<Frame> =>
    get(`an answer to ${id}`, (frame) => frame['id'] === id && frame.op !== 'event');
  let asked = 0;
  /** Sends a frame with a new id and returns the answer. */
  const ask = (frame: Readonly<Record<string, unknown>>): Promise<Frame> => {
    asked += 1;
    const id = `ask ${asked}`;
    send({ ...frame, id });
    return answer(id);
  };
  const raw = (): Socket => (ws as unknown as { _socket: Socket })._socket;
  await once(ws, 'open');
  return {
    ws,
    send,
    ask,
    get,
    answer,
    events,
    /** Every frame so far, in order of arrival. */
    frames: frames as readonly Frame[],
    subscribe: (topics: readonly string[], more: Readonly<Record<string, unknown>> = {}) =>
      ask({ op: 'subscribe', topics, ...more }),
    offsets: (topic?: string) => events(topic).map(({ offset }) => offset as number),
    /** The close code, once the socket is closed. */
    async closed(within_ms = 10_000): Promise<number> {
      await until('the socket is closed', () => close_code !== undefined, within_ms);
      return close_code as number;
    },
    /** Stops reading from the connection, so that the server has to buffer. */
    pause: () => raw().pause(),
    resume: () => raw().resume(),
  };
};
