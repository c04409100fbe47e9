import { type Client, type ClientOptions, makeClient } from './client.js';
import { createClient as createForBrowsers } from './index.js';
import type { OpenSocket, SocketLike } from './link.js';

/** The client library for Node. It uses the package `ws` if Node has no built-in websockets. */

export * from './index.js';

const openSocket: OpenSocket = async (url) => {
  const { WebSocket } = await import('ws');
  return new WebSocket(url, { perMessageDeflate: false }) as unknown as SocketLike;
};

export const createClient = (options: ClientOptions): Client =>
  'WebSocket' in globalThis ? createForBrowsers(options) : makeClient(openSocket, options);
