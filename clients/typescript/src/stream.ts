import { backoff, pause } from './calls.js';
import { DigestCheck } from './digest.js';
import { type Fault, type Gap, isPassing, Refused, StreamGap } from './errors.js';
import { type Frame, Link, type LinkOptions } from './link.js';
import { Order, Queue, States } from './memory.js';
import {
  type Call,
  type Item,
  isStateTopic,
  type LogEvent,
  type StateUpdate,
  type StreamOptions,
  type Topic,
} from './types.js';

/**
 * Events of the log in order, each once, over as many connections as it takes.
 *
 *   off ──link up──▶ joining ──subscribed──▶ live
 *    ▲                  ▲                     │  too many unread, a hole, a gap to be filled
 *    └──link down       └──── held ◀──────── leaving
 *                 read on, filled
 *
 * While leaving, every frame is dropped until the service has confirmed. After that no events
 * arrive, and the next subscription continues after the newest event that was not dropped.
 */
type Mode = 'off' | 'joining' | 'live' | 'leaving' | 'held';

const default_buffer = 1_000;
const page_size = 100;
/** Well below the number of events that the service sends in one replay. */
const replay_most = 5_000;
/** The service limits frames, and a reader with a small buffer often leaves and joins again. */
const between_joins_ms = 200;

export class Stream<T extends Topic> implements AsyncIterableIterator<Item<T>> {
  readonly #options: StreamOptions<T>;
  readonly #call: Call;
  readonly #link: Link;
  readonly #order: Order;
  readonly #queue = new Queue();
  readonly #states = new States((topic) => this.#link.send({ op: 'subscribe', topics: [topic] }));
  readonly #most: number;
  readonly #ending = new AbortController();
  readonly #log_topics: readonly string[];
  readonly #is_ours: ReadonlySet<string>;
  #mode: Mode = 'off';
  /** Id of the subscribe or unsubscribe frame that has no answer yet. */
  #pending_id = 0;
  #pending_states_id = 0;
  #was_up = false;
  /** Offset after which the next subscription continues. Null: only new events. */
  #from: number | null;
  #filling = false;
  #repeats = 0;
  #holes = 0;
  #last_hole = '';
  /** An event after this offset is missing and is being requested again. */
  #doubt: number | null = null;
  #tries = 0;
  #joined_ms = Number.NEGATIVE_INFINITY;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #handled: number | null;
  #in_hand: number | null = null;
  #error: Error | undefined;
  #ended = false;
  readonly #waiting: (() => void)[] = [];
  readonly #check: DigestCheck | undefined;

  constructor(options: StreamOptions<T>, link: LinkOptions, call: Call) {
    this.#options = options;
    this.#call = call;
    this.#most = options.buffer ?? default_buffer;
    this.#log_topics = options.topics.filter((topic) => !isStateTopic(topic));
    this.#is_ours = new Set(this.#log_topics);
    this.#order = new Order(this.#log_topics, options.after);
    this.#from = options.after ?? null;
    this.#handled = this.#from;
    const { onMismatch } = options;
    if (onMismatch !== undefined) {
      if (options.filter !== undefined || this.#log_topics.join() !== 'all') {
        throw new TypeError('Digests need the whole log: the topic "all" without a filter.');
      }
      const onError = (error: Error) => this.#end(error);
      const parts = { call, signal: this.#ending.signal, onMismatch, onError };
      this.#check = new DigestCheck(parts, options.after);
    }
    this.#link = new Link(link, {
      onConnecting: () => options.onStatus?.({ status: 'connecting' }),
      onUp: () => this.#start(),
      onFrame: (frame) => this.#take(frame),
      onDown: (down) => {
        this.#mode = 'off';
        this.#checkAddress().catch((error: Error) => this.#end(error));
        options.onStatus?.({ status: 'waiting', ...down });
      },
      onEnd: (error) => this.#end(error),
    });
    const { signal, onItem } = options;
    if (signal?.aborted) this.close();
    signal?.addEventListener('abort', () => this.close(), { signal: this.#ending.signal });
    if (onItem !== undefined) this.#pump(onItem).catch(() => undefined);
  }

  /**
   * Everything up to this offset was delivered, and the reader then asked for the next item. Store
   * the offset together with the effects of the events, and give it to the next process as `after`.
   */
  get cursor(): number | null {
    const is_idle = this.#in_hand === null && this.#queue.events === 0;
    const cursor = is_idle ? this.#order.cursor : this.#handled;
    if (cursor === null || this.#doubt === null) return cursor;
    return Math.min(cursor, this.#doubt);
  }

  /**
   * Errors of the service that the stream corrected: events that arrived repeatedly, or only after
   * a second request.
   */
  get faults(): { readonly repeats: number; readonly holes: number } {
    return { repeats: this.#repeats, holes: this.#holes };
  }

  /** With `onMismatch`: the digests prove that everything up to here has arrived. Null at first. */
  get agreed(): number | null {
    return this.#check?.agreed ?? null;
  }

  /** Resolves when `close` ends the stream. Rejects if an error ends it. */
  readonly done: Promise<void> = new Promise((resolve, reject) => {
    this.#ending.signal.addEventListener('abort', () => {
      if (this.#error === undefined) resolve();
      else reject(this.#error);
    });
  });

  close(): void {
    this.#end();
  }

  async next(): Promise<IteratorResult<Item<T>, undefined>> {
    if (this.#in_hand !== null) this.#handled = this.#in_hand;
    this.#in_hand = null;
    for (;;) {
      const item = this.#queue.shift();
      if (item !== undefined) return { value: this.#handOut(item) as Item<T>, done: false };
      if (this.#ended) break;
      await this.#change();
    }
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) throw error;
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<Item<T>, undefined>> {
    this.close();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #handOut(item: LogEvent | StateUpdate): LogEvent | StateUpdate {
    if (item.op === 'event') this.#in_hand = item.offset;
    if (this.#queue.events <= this.#most / 2) this.#join();
    this.#wakeAll();
    return item;
  }

  async #pump(onItem: (item: Item<T>) => unknown): Promise<void> {
    try {
      for (;;) {
        const { value, done } = await this.next();
        if (done === true) return;
        await onItem(value);
      }
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#mode = 'off';
    clearTimeout(this.#rest);
    // Items that arrived before an error are still delivered.
    if (error === undefined) this.#queue.clear();
    this.#link.close();
    this.done.catch(() => undefined);
    this.#ending.abort();
    this.#wakeAll();
  }

  /** A websocket does not report that its address is redirected. A call does. */
  async #checkAddress(): Promise<void> {
    if (this.#was_up) return;
    const { signal } = this.#ending;
    const said = await this.#call('health', { patience_ms: 0, signal }).catch((error) => error);
    if (said instanceof Refused && said.code === 'REDIRECTED') throw said;
  }

  /** Starts on a new connection. */
  #start(): void {
    this.#was_up = true;
    this.#states.reset();
    const states = this.#options.topics.filter(isStateTopic);
    this.#mode = 'held';
    if (states.length > 0) {
      this.#pending_states_id = this.#link.nextId();
      this.#link.send({ op: 'subscribe', id: this.#pending_states_id, topics: states });
      if (this.#log_topics.length === 0) return;
    }
    this.#from = this.#order.cursor;
    // The service closes a silent socket, so this pings even if there is nothing to subscribe to.
    if (!this.#join()) this.#link.send({ op: 'ping' });
  }

  /** Subscribes if it is time to. Returns true if a frame was sent. */
  #join(): boolean {
    if (this.#mode !== 'held' || this.#filling || this.#log_topics.length === 0) return false;
    if (this.#queue.events > this.#most / 2) return false;
    const rest_ms = this.#joined_ms + between_joins_ms - performance.now();
    if (rest_ms > 0) {
      clearTimeout(this.#rest);
      this.#rest = setTimeout(() => this.#join(), rest_ms);
      return false;
    }
    this.#joined_ms = performance.now();
    const { filter, last } = this.#options;
    const since = this.#from !== null ? { after: this.#from } : last === undefined ? {} : { last };
    this.#pending_id = this.#link.nextId();
    this.#mode = 'joining';
    return this.#link.send({
      op: 'subscribe',
      id: this.#pending_id,
      topics: this.#log_topics,
      ...since,
      ...(filter === undefined ? {} : { filter }),
    });
  }

  /** Leaves the log topics. The next subscription continues after `from`. */
  #leave(from: number | null): void {
    this.#from = from;
    this.#mode = 'leaving';
    this.#pending_id = this.#link.nextId();
    this.#link.send({ op: 'unsubscribe', id: this.#pending_id, topics: this.#log_topics });
  }

  #take(frame: Frame): void {
    const { op, id } = frame;
    if (op === 'event') this.#takeEvent(frame as unknown as LogEvent);
    else if (op === 'snapshot' || op === 'delta') this.#takeState(frame);
    else if (op === 'tick') this.#takeTick(frame);
    else if (op === 'gap') this.#takeGap(frame as unknown as Gap);
    else if (id !== undefined && id === this.#pending_states_id) this.#takeStatesAnswer(frame);
    else if (id === this.#pending_id && op === 'subscribed') this.#arrive(frame);
    else if (id === this.#pending_id && op === 'unsubscribed') {
      this.#mode = 'held';
      this.#join();
    } else if (id === this.#pending_id && op === 'error') {
      this.#takeError(frame as unknown as Fault<string>);
    }
  }

  #takeEvent(event: LogEvent) {
    if (this.#mode !== 'joining' && this.#mode !== 'live') return;
    const { topic, offset, prev } = event;
    if (topic === undefined || !this.#is_ours.has(topic)) return;
    const verdict = this.#order.judge(topic, offset, prev);
    if (verdict === 'hole') return this.#takeHole(topic, prev as number);
    if (verdict === 'repeat' && this.#doubt === null) this.#repeats += 1;
    if (verdict !== 'new') return;
    this.#order.take(topic, offset);
    this.#put(event);
    if (this.#queue.events >= this.#most) this.#leave(this.#order.cursor);
  }

  #takeState(frame: Frame): void {
    const state = this.#states.take(frame);
    if (state !== null) this.#put(state);
  }

  #takeStatesAnswer(frame: Frame): void {
    const fault = frame as unknown as Fault;
    if (frame.op !== 'error') {
      if (this.#log_topics.length === 0) this.#arrive(frame);
    } else if (fault.retryable) this.#link.reconnect(fault.error);
    else this.#end(new Refused(fault));
  }

  #put(item: LogEvent | StateUpdate): void {
    if (item.op === 'event') this.#check?.add(item);
    this.#queue.put(item);
    this.#wakeAll();
  }

  /** Resolves when an item was added or delivered, or the stream has ended. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wakeAll(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #takeTick({ head, heads = {}, digest }: Frame) {
    if (this.#mode !== 'live') return;
    for (const [topic, newest] of Object.entries(heads as Record<string, number>)) {
      if (this.#order.isBehind(topic, newest)) return this.#takeHole(topic, newest);
    }
    if (typeof head !== 'number') return;
    this.#order.proveAll(head);
    if (typeof digest === 'string') this.#check?.compare(head, digest);
  }

  /** Requests an event that the service named but did not send. The second time, reports it. */
  #takeHole(topic: string, missing: number) {
    const hole = `${topic} ${missing}`;
    const after = this.#order.floor();
    if (hole !== this.#last_hole) {
      this.#last_hole = hole;
      this.#doubt = after;
      this.#holes += 1;
      return this.#leave(after);
    }
    this.#takeGap({ topic, after: after ?? 0, reason: 'hole' });
    if (this.#mode === 'live' || this.#mode === 'joining') this.#leave(this.#order.cursor);
  }

  #takeGap(gap: Gap) {
    if (this.#mode !== 'joining' && this.#mode !== 'live') return;
    const { backfill, onGap } = this.#options;
    const { topic, until, reason } = gap;
    if (backfill === true && reason !== 'hole' && reason !== 'epoch') {
      this.#leave(this.#order.cursor);
      this.#fill(gap).catch((error: Error) => this.#end(error));
      return;
    }
    if (onGap === undefined) return this.#end(new StreamGap(gap));
    if (reason === 'epoch') this.#order.rewind(until ?? 0);
    else this.#order.forgive(topic, until);
    if (until !== undefined) this.#check?.restart(until);
    onGap(gap);
  }

  #arrive({ head, result }: Frame): void {
    this.#mode = 'live';
    this.#tries = 0;
    this.#doubt = null;
    if (typeof head === 'number') {
      this.#order.proveAll(head);
      this.#check?.begin(head);
    }
    this.#options.onStatus?.({ status: 'live', head: Number(head), result: String(result) });
  }

  /** Handles a refused subscription. Subscribes again if the refusal is temporary. */
  #takeError(fault: Fault<string>) {
    if (!fault.retryable) return this.#end(new Refused(fault as Fault));
    this.#mode = 'held';
    this.#tries += 1;
    pause(100 + backoff(this.#tries, 200, 5_000), this.#ending.signal).then(
      () => this.#join(),
      () => undefined,
    );
  }

  /** Reads events over HTTP, page by page, until a replay can continue. */
  async #fill({ topic, after }: Gap): Promise<void> {
    if (this.#filling) return;
    this.#filling = true;
    let from = this.#order.cursor ?? after;
    for (;;) {
      const { events, next, head, gap } = await this.#readPage(from);
      if (gap !== null) {
        const { onGap } = this.#options;
        const lost = { ...gap, topic, after: from };
        if (onGap === undefined) return this.#end(new StreamGap(lost));
        if (lost.until !== undefined) this.#check?.restart(lost.until);
        onGap(lost);
      }
      for (const event of events) {
        while (this.#queue.events >= this.#most && !this.#ended) {
          await this.#change();
        }
        if (this.#ended) return;
        this.#order.proveAll(event.offset);
        const [only] = this.#log_topics;
        const known = this.#log_topics.length === 1 ? { topic: only } : {};
        this.#put({ op: 'event', ...known, ...event } as LogEvent);
      }
      from = Math.max(from, next);
      this.#order.proveAll(from);
      if (head - next <= replay_most) break;
    }
    this.#filling = false;
    this.#from = from;
    this.#join();
  }

  /** Retries while the service is unavailable. */
  async #readPage(after: number) {
    const topic = this.#log_topics;
    const query = { ...this.#options.filter, topic, after, limit: page_size };
    const { signal } = this.#ending;
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.#call('listEvents', { query, signal });
      } catch (error) {
        if (!isPassing(error)) throw error;
        await pause(backoff(tries, 500, 10_000), signal);
      }
    }
  }
}
