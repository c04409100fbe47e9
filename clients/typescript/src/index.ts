import { type Client, type ClientOptions, makeClient } from './client.js';
import type { OpenSocket, SocketLike } from './link.js';

/** The client library for browsers. It uses only features that every browser has. */

export type { Retry } from './calls.js';
export type { Client, ClientOptions } from './client.js';
export {
  type Fault,
  type FaultCode,
  type Gap,
  InvalidWebhook,
  NoAnswer,
  Refused,
  SocketRefused,
  StreamGap,
} from './errors.js';
export type { OpenSocket, SocketLike } from './link.js';
export type { Stream } from './stream.js';
export type * from './types.js';
export { verifyWebhook, type WebhookEvent, type WebhookHeaders } from './webhook.js';
export type * from './wire.js';

const openSocket: OpenSocket = (url) => {
  const { WebSocket } = globalThis as unknown as { WebSocket: new (url: string) => SocketLike };
  return new WebSocket(url);
};

export const createClient = (options: ClientOptions): Client => makeClient(openSocket, options);
