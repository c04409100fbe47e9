import uWS from 'uWebSockets.js';

/** Listens on a free loopback port and returns it. */
export const listenOn = (app: uWS.TemplatedApp): Promise<number> =>
  new Promise((resolve, reject) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket) resolve(uWS.us_socket_local_port(socket));
      else reject(new Error('No port is free.'));
    });
  });
