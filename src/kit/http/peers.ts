import type { HttpResponse, TemplatedApp } from './uws.js';

/**
 * The addresses of who is connected. The library asks the system for the address of a connection
 * each time and makes an ArrayBuffer for it, 0.9 µs a request; where all open connections come from
 * one address, as behind a proxy, it need not be asked for. Which connection has closed is not
 * told, so once a second address has come, each request is asked until nobody is connected.
 */
export interface Peers {
  /** The remote address: its raw bytes as latin1. */
  addressOf(res: HttpResponse): string;
  /** A connection became a websocket, which the library does not tell. */
  onUpgraded(): void;
}

const read = (res: HttpResponse): string =>
  String.fromCharCode(...new Uint8Array(res.getRemoteAddress()));

const watch = (app: TemplatedApp): Peers => {
  let open = 0;
  /** The address of all open connections; null where there are several. */
  let only: string | null = null;
  const enter = (address: string): void => {
    if (open === 0) only = address;
    else if (only !== address) only = null;
    open += 1;
  };
  const leave = (): void => {
    open -= 1;
  };
  // biome-ignore lint/suspicious/useIterableCallbackReturn: this is no array.
  app.filter((res, step) => {
    if ((step as number) < 0) leave();
    else enter(read(res));
  });
  return { addressOf: (res) => only ?? read(res), onUpgraded: leave };
};

const all = new WeakMap<TemplatedApp, Peers>();

/** The peers of an app, which must not listen yet when they are first asked for. */
export const peersOf = (app: TemplatedApp): Peers => {
  const known = all.get(app) ?? watch(app);
  all.set(app, known);
  return known;
};
