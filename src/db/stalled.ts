import type { Logger } from 'pino';
import { makeLoop } from '../kit/loop.js';
import type { Sql } from './client.js';

/**
 * Ends transactions whose process hung, or was cut off, between the text of a statement and its
 * values. Postgres does not consider them idle and applies no timeout: their locks would stay.
 */
export const createStalledSweep = (sql: Sql, log: Logger, every_ms = 1_000, allowed_ms = 5_000) => {
  const turn = async (): Promise<'rest'> => {
    const ended = await sql<{ application_name: string }[]>`
      select application_name, pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = current_user
        and application_name like 'prediction-forum %'
        and state = 'active' and wait_event = 'ClientRead' and query !~* '^\\s*copy'
        and state_change < now() - ${allowed_ms} * interval '1 millisecond'`;
    if (ended.length > 0) log.warn({ ended }, 'db: stalled sessions were ended');
    return 'rest';
  };
  return makeLoop({ name: 'stalled sessions', log, every_ms, turn });
};
