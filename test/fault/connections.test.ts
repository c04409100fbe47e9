import { test } from 'tap';
import { surviveKilledPostgres, surviveTerminations } from '../help/connection-faults.js';

test('connections are ended at random under load', (t) => surviveTerminations(t, 5_000));

test('kill -9 of Postgres four times under load', (t) => surviveKilledPostgres(t, 4));
