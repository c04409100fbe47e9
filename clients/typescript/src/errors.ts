import type { CommonFault, Operations } from './wire.js';

/** What can go wrong, as errors that tell what to do about it. */

/** Every code that an operation may be refused with. */
export type FaultCode = Operations[keyof Operations]['faults'];

export interface FaultField {
  readonly path: string;
  readonly message: string;
  readonly code?: string;
}

/** Codes of any operation. `REDIRECTED` is of the client: another address is to be used. */
export type ClientFault = CommonFault | 'REDIRECTED';

/** The body of a refusal, as the service sent it. */
export interface Fault<Code extends string = FaultCode> {
  readonly code: Code | ClientFault;
  /** One sentence that a person can act on. */
  readonly error: string;
  readonly status: number;
  readonly category: string;
  readonly retryable: boolean;
  readonly fields?: readonly FaultField[];
  readonly request_id?: string;
  /** Particulars of some codes, such as `link_url` or `similarity`. */
  readonly [particular: string]: unknown;
}

/** The service said no. */
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

/** No answer came, or none that the service could have sent: time was up, or a proxy answered. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  constructor(
    message: string,
    /** False where the call cannot have had an effect, or can have had none but the same again. */
    readonly maybe_done: boolean,
    cause?: unknown,
    /** The status of an answer that cannot be used. */
    readonly status?: number,
  ) {
    super(message, { cause });
  }
}

/** The same call may succeed later. */
export const isPassing = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refused && error.fault.retryable);

/** Why events are missing, and where they can be read. */
export interface Gap {
  readonly topic: string;
  /** The newest offset before the gap. */
  readonly after: number;
  /** The stream goes on after this offset, where it is known. */
  readonly until?: number;
  /**
   * `expired`: too far back for a replay, or for the log itself. `slow`: this client read too
   * slowly. `epoch`: the log has never come that far. `hole`: the service named an event and does
   * not send it.
   */
  readonly reason: 'expired' | 'slow' | 'epoch' | 'hole' | (string & {});
  readonly backfill?: string;
}

/** A stream without `onGap` and without `backfill` ends with this: nothing is missed unnoticed. */
export class StreamGap extends Error {
  override readonly name = 'StreamGap';
  constructor(readonly gap: Gap) {
    super(`Events of ${gap.topic} after offset ${gap.after} are missing (${gap.reason}).`);
  }
}

/** A delivery that is not from the service, or is an old one that was sent again. */
export class InvalidWebhook extends Error {
  override readonly name = 'InvalidWebhook';
}

/** The service ended a socket, and connecting again in the same way would not help. */
export class SocketRefused extends Error {
  override readonly name = 'SocketRefused';
  constructor(
    readonly close_code: number,
    reason: string,
    /** What the service said before it closed, if it did. */
    readonly fault?: Fault<string>,
  ) {
    super(fault?.error ?? `The service closed the socket with ${close_code} (${reason}).`);
  }
}
