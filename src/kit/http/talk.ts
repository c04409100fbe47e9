import { randomBytes } from 'node:crypto';
import type { Fault } from '../fault.js';
import { hasCredential } from '../secrets.js';
import type { Address } from './address.js';
import type { BodyStream } from './body-stream.js';
import { anonymous, type Caller } from './caller.js';

export interface Outgoing {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
  /** Null where there is no body. */
  readonly content_type: string | null;
}

/** An answer whose body is sent piece by piece. */
export type OutgoingHead = Omit<Outgoing, 'body'>;

export type BodyRead =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly fault: Fault };

/** What is asked of a route, whichever door it came through: an HTTP request, or a frame. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** By lower-case name; the credentials of who asks are among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly address: Address;
  readonly started_ms: number;
  /** The websocket that it came through. */
  readonly socket?: string;
  /** The client went away. */
  readonly aborted: boolean;
  /** True while the body is still on its way. */
  readonly awaits_body: boolean;
  /** The text of the body; empty without one. */
  readonly raw_body: Uint8Array | string;
  /** Longest that the answer may take, where that is not the usual deadline. */
  longest_ms?: number | undefined;
  /** True while an answer is sent piece by piece: that has no deadline, only a reader who reads. */
  readonly is_streaming?: boolean;
  header(name: string): string;
  /** The body as a value; called once, and only for a route that takes one. */
  readBody(): BodyRead;
  /** Sends the one answer; false when it comes too late. */
  send(outgoing: Outgoing): boolean;
  /** Calls back, once, when whoever asked goes away before the answer is there; one at a time. */
  onGone?(listener: () => void): void;
  /** Sends a body piece by piece; a door without this carries whole answers only. */
  stream?(head: OutgoingHead, body: BodyStream): Promise<void>;
}

/**
 * One call while it is worked on: what was asked, its id, and the headers of the answer so far.
 */
export interface Talk {
  readonly asked: Asked;
  readonly request_id: string;
  readonly headers: [name: string, value: string][];
  caller: Caller;
}

const node_id = randomBytes(4).toString('hex');
let request_count = 0;
const sane_id = /^[A-Za-z0-9._:-]{1,128}$/;

/** The id a client sent when it is sane and holds no credential, else one of this process. */
export const requestId = (given: string): string => {
  if (given !== '' && sane_id.test(given) && !hasCredential(given)) return given;
  request_count += 1;
  return `${node_id}-${request_count.toString(36)}`;
};

export const startTalk = (asked: Asked): Talk => ({
  asked,
  request_id: requestId(asked.header('x-request-id')),
  headers: [],
  caller: anonymous,
});
