import { backoff, boundWait } from './calls.js';
import { type Fault, SocketRefused } from './errors.js';

/**
 * One websocket that reconnects as long as that makes sense.
 *
 *   connecting ──welcome──▶ up ──close, error, no tick in time──▶ waiting ──▶ connecting
 *       └───────── a close code that says "do not retry unchanged" ────────▶ ended
 *
 * The close code says what to do. 400x: end. 410x: wait, longer each time. 420x: reconnect within
 * the spread that `bye` named. Anything else, such as a lost connection: reconnect soon.
 */

/** The features that websockets in browsers and in `ws` share. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  /** Exists in `ws` only. Closes without waiting for the other side. */
  terminate?(): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

/** A page cannot set headers on a websocket, so the credential goes in the first frame. */
export type OpenSocket = (url: string) => SocketLike | Promise<SocketLike>;

export interface Frame {
  readonly op: string;
  readonly id?: number | string;
  readonly [member: string]: unknown;
}

export interface Credential {
  readonly api_key?: string;
  readonly token?: string;
}

export interface LinkOptions {
  readonly url: string;
  readonly open: OpenSocket;
  /** Called before each connection, so that an expired credential can be replaced. */
  readonly credential: () => Promise<Credential>;
  readonly handshake_ms: number;
  /** Maximum wait between two tries. */
  readonly backoff_ms: number;
}

export interface LinkEvents {
  /** A few frames may be sent now. The service handles them in order, after the credential. */
  onUp(): void;
  onFrame(frame: Frame): void;
  /** `code` is the close code, if there was one. */
  onDown(down: { readonly wait_ms: number; readonly why: string; readonly code: number }): void;
  /** Called last. Without an error, the link was closed from this side. */
  onEnd(error?: Error): void;
  onConnecting?(): void;
}

/** Sent by the service before it closes a socket: the reason, and when to connect again. */
interface Bye {
  readonly code: number;
  readonly spread_ms: number;
  readonly retry_after_ms: number;
}

/** After a connection that lasted this long, the next try comes quickly. */
const settled_ms = 10_000;
const ignore = (): void => undefined;

export class Link {
  readonly #options: LinkOptions;
  readonly #events: LinkEvents;
  #socket: SocketLike | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #is_up = false;
  #ended = false;
  #tries = 0;
  /** Counts connections, so that late events of earlier connections are ignored. */
  #turn = 0;
  #opened_ms = 0;
  #due_ms = 0;
  #tick_ms = 15_000;
  #next_id = 0;
  #bye: Bye | null = null;
  #said: Fault<string> | undefined;

  constructor(options: LinkOptions, events: LinkEvents) {
    this.#options = options;
    this.#events = events;
    this.#connect().catch(ignore);
  }

  /** Returns false if there is no connection. */
  send(frame: object): boolean {
    if (!this.#is_up) return false;
    try {
      this.#socket?.send(JSON.stringify(frame));
      return true;
    } catch {
      return false;
    }
  }

  nextId(): number {
    this.#next_id += 1;
    return this.#next_id;
  }

  /** Replaces a connection that is alive but misbehaves. */
  reconnect(why: string): void {
    if (this.#socket !== null) this.#lose(0, why);
  }

  close(): void {
    this.#end();
  }

  async #connect(): Promise<void> {
    const options = this.#options;
    this.#turn += 1;
    const turn = this.#turn;
    this.#guard(() => this.#events.onConnecting?.());
    if (this.#ended) return;
    this.#bye = null;
    this.#said = undefined;
    this.#opened_ms = performance.now();
    this.#watch(options.handshake_ms, 'no connection in time');
    try {
      const credential = await options.credential();
      const socket = await options.open(options.url);
      if (this.#ended || this.#turn !== turn) return abandon(socket, true);
      this.#attach(socket, credential);
    } catch (error) {
      if (this.#turn === turn)
        this.#lose(0, error instanceof Error ? error.message : String(error));
    }
  }

  #attach(socket: SocketLike, credential: Credential): void {
    this.#socket = socket;
    const isCurrent = (): boolean => this.#socket === socket;
    socket.onerror = ignore;
    socket.onopen = () => {
      if (!isCurrent()) return;
      this.#is_up = true;
      if (Object.keys(credential).length > 0) this.send({ op: 'auth', ...credential });
      this.#guard(() => this.#events.onUp());
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      if (isCurrent()) this.#guard(() => this.#take(String(data)));
    };
    socket.onclose = ({ code = 1006, reason = '' }: { code?: number; reason?: string }) => {
      if (isCurrent()) this.#lose(code, reason);
    };
  }

  #take(text: string) {
    let frame: Frame;
    try {
      frame = JSON.parse(text) as Frame;
    } catch {
      return this.#lose(0, 'a frame that is not JSON');
    }
    const { op } = frame;
    if (op === 'welcome') this.#tick_ms = Number(frame['tick_ms']) || this.#tick_ms;
    if (op === 'welcome' || op === 'tick') {
      this.#watch(this.#tick_ms * 1.5 + 1_000, 'no tick in time');
    } else if (op === 'bye') {
      this.#bye = {
        code: Number(frame['code']),
        spread_ms: boundWait(Number(frame['spread_ms'])),
        retry_after_ms: boundWait(Number(frame['retry_after_ms'])),
      };
    } else if (op === 'error' && frame.id === undefined) {
      this.#said = frame as unknown as Fault<string>;
    }
    this.#events.onFrame(frame);
  }

  /** Drops the connection unless this is called again within this time. */
  #watch(within_ms: number, why: string): void {
    clearTimeout(this.#timer);
    this.#due_ms = performance.now() + within_ms;
    const look = (): void => {
      // If this process was stalled, data that arrived in the meantime is not processed yet.
      const late_ms = performance.now() - this.#due_ms;
      if (late_ms > 1_000) this.#watch(1_000, why);
      else this.#lose(0, why);
    };
    this.#timer = setTimeout(look, within_ms);
  }

  /** If a listener throws, the link ends. The error does not reach the socket. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #drop(politely = false): void {
    clearTimeout(this.#timer);
    this.#turn += 1;
    const socket = this.#socket;
    this.#socket = null;
    this.#is_up = false;
    if (socket !== null) abandon(socket, !politely);
  }

  #lose(closed: number, why: string) {
    if (this.#ended) return;
    const code = this.#bye?.code ?? closed;
    this.#drop();
    if (code >= 4_000 && code < 4_100) return this.#end(new SocketRefused(code, why, this.#said));
    if (performance.now() - this.#opened_ms > settled_ms) this.#tries = 0;
    const wait_ms = this.#waitAfter(code);
    this.#tries += 1;
    const reason = why === '' ? `close code ${code}` : why;
    this.#guard(() => this.#events.onDown({ wait_ms, why: reason, code }));
    if (!this.#ended) this.#timer = setTimeout(() => this.#connect().catch(ignore), wait_ms);
  }

  #waitAfter(code: number): number {
    const { backoff_ms } = this.#options;
    // After a `bye`, the first try comes within the time that it named. Later tries wait longer.
    if (code >= 4_200 && code < 4_300 && this.#tries === 0) {
      return Math.random() * (this.#bye?.spread_ms ?? 1_000);
    }
    if (code >= 4_100 && code < 4_200) {
      const after_ms = Math.max(500, this.#bye?.retry_after_ms ?? 0);
      return after_ms + backoff(this.#tries, 1_000, backoff_ms);
    }
    return 20 + backoff(this.#tries, 200, backoff_ms);
  }

  #end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#drop(error === undefined);
    this.#events.onEnd(error);
  }
}

const abandon = (socket: SocketLike, at_once: boolean): void => {
  socket.onopen = socket.onmessage = socket.onclose = null;
  // Otherwise a later error event would be unhandled.
  socket.onerror = ignore;
  try {
    if (at_once && socket.terminate !== undefined) socket.terminate();
    else socket.close();
  } catch {
    // It was already closed.
  }
};
