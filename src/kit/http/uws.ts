/**
 * The only module that imports uWebSockets.js. The dependency is CommonJS; its types come with it.
 * What bites in it is listed, and held, in `test/kit/native.test.ts`.
 */
import uWS, {
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
  type us_socket_context_t,
  type WebSocket,
} from 'uWebSockets.js';

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
};

/** The remote address of a connection: its raw bytes as latin1. */
export const remoteAddress = (res: HttpResponse): string =>
  Buffer.from(res.getRemoteAddress()).toString('latin1');

export const { App, DISABLED, us_listen_socket_close, us_socket_local_port } = uWS;

/** Listen option: a second process on the same port fails instead of taking half of its traffic. */
export const exclusive_port: number = (
  uWS as unknown as { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number }
).LIBUS_LISTEN_EXCLUSIVE_PORT;
