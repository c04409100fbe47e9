import { t } from 'tap';
import { strikes, surviveFollowed } from './help/sockets-fault.js';

/**
 * `npm run followed -- [CLIENTS] [ROUNDS]`: clients follow topics of three api processes while
 * predictions flow, and an api process, the relay and Redis are killed in turn; 200 clients and two
 * rounds unless said otherwise.
 */

const clients = Number(process.argv[2] ?? 200);
const rounds = Number(process.argv[3] ?? 2);

t.setTimeout(0);
t.test(`${clients} clients, ${rounds} rounds of kills`, { timeout: 0 }, (t) =>
  surviveFollowed(t, {
    clients,
    processes: 3,
    per_second: 150,
    predictions: 300,
    strikes: Array.from({ length: rounds }, () => strikes).flat(),
  }),
);
