import { t } from 'tap';
import { strikes, surviveFollowed } from './help/sockets-fault.js';
import { readNumbers } from './help/words.js';

/**
 * `npm run followed -- [CLIENTS] [ROUNDS]`: clients follow topics of three api processes while
 * predictions flow, and an api process, the relay and Redis are killed in turn; 200 clients and two
 * rounds unless said otherwise.
 */

const { clients, rounds } = readNumbers('followed', { clients: 200, rounds: 2 });

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
