import type { CommonFault, Operations } from './wire.js';

/** The errors that can occur. Each says what to do about it. */

/** Every code with which an operation may be refused. */
export type FaultCode = Operations[keyof Operations]['faults'];

export interface FaultField {
  readonly path: string;
  readonly message: string;
  readonly code?: string;
}

/** Codes that any operation can return. `REDIRECTED` comes from the client: use another address. */
export type ClientFault = CommonFault | 'REDIRECTED';

/** The body of a refusal. `retry_after_s` comes from the header. */
export interface Fault<Code extends string = FaultCode> {
  readonly code: Code | ClientFault;
  /** One sentence that a person can act on. */
  readonly error: string;
  readonly status: number;
  readonly category: string;
  readonly retryable: boolean;
  readonly fields?: readonly FaultField[];
  readonly request_id?: string;
  /** Seconds to wait before the next try, if the answer has `Retry-After`. */
  readonly retry_after_s?: number;
  /** Extra members of some codes, such as `link_url` or `similarity`. */
  readonly [particular: string]: unknown;
}

/** The service refused the call. */
export class Refused<Code extends string = FaultCode> extends Error {
  override readonly name = 'Refused';
  constructor(readonly fault: Fault<Code>) {
    super(fault.error);
  }
  get code(): Code | ClientFault {
    return this.fault.code;
  }
  get status(): number {
    return this.fault.status;
  }
}

/** No answer arrived in time, or the answer cannot be the service's (a proxy's, for example). */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  constructor(
    message: string,
    /** False for a GET. Any other call may have taken effect. */
    readonly maybe_done: boolean,
    cause?: unknown,
    /** Status of the unusable answer. */
    readonly status?: number,
  ) {
    super(message, { cause });
  }
}

/** True if the same call may succeed later. */
export const isPassing = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refused && error.fault.retryable);

/** Says why events are missing, and how to read them. */
export interface Gap {
  readonly topic: string;
  /** The newest offset before the gap. */
  readonly after: number;
  /** The stream continues after this offset. Absent if it is unknown. */
  readonly until?: number;
  /**
   * `expired`: too old for a replay, or for the log itself. `slow`: this client read too slowly.
   * `epoch`: the log has never reached that offset. `hole`: the service named an event but does not
   * send it.
   */
  readonly reason: 'expired' | 'slow' | 'epoch' | 'hole' | (string & {});
  readonly backfill?: string;
}

/** Ends a stream without `onGap` and `backfill`, so that no missing event goes unnoticed. */
export class StreamGap extends Error {
  override readonly name = 'StreamGap';
  constructor(readonly gap: Gap) {
    super(`Events of ${gap.topic} after offset ${gap.after} are missing (${gap.reason}).`);
  }
}

/** A delivery that does not come from the service, or an old one that was sent again. */
export class InvalidWebhook extends Error {
  override readonly name = 'InvalidWebhook';
}

/** The service closed a socket, and connecting again in the same way would not help. */
export class SocketRefused extends Error {
  override readonly name = 'SocketRefused';
  constructor(
    readonly close_code: number,
    reason: string,
    /** The fault, if the service sent one before it closed the socket. */
    readonly fault?: Fault<string>,
  ) {
    super(fault?.error ?? `The service closed the socket with ${close_code} (${reason}).`);
  }
}
