import { test } from 'tap';
import { strikes, surviveFollowed } from '../help/sockets-fault.js';

test('kill -9 of an api process, and of Redis, which comes back empty, while clients follow', async (t) => {
  await surviveFollowed(t, {
    clients: 40,
    processes: 2,
    per_second: 100,
    predictions: 50,
    // All of them in turn, and more clients: `npm run followed`.
    strikes: strikes.filter(({ name }) => name === 'api' || name === 'Redis, empty'),
  });
});
