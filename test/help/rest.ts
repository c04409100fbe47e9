import type { Sql } from '../../src/db/client.js';
import type { VerifyParts } from '../../src/tools/verify/parts.js';
import { findDifferences } from '../../src/tools/verify.js';
import { until } from './until.js';

const findUnfinished = async (sql: Sql): Promise<readonly string[]> => {
  const [row] = await sql<{ decisions: number; waiting: number }[]>`
    select
      (select count(*)::integer from resolutions where state = 'running') as decisions,
      (select count(*)::integer from outbox) as waiting`;
  const { decisions = 0, waiting = 0 } = row ?? {};
  return [
    ...(decisions === 0 ? [] : [`${decisions} decisions are not settled`]),
    ...(waiting === 0 ? [] : [`${waiting} events wait in the outbox`]),
  ];
};

/** Looks until everything is settled and verify finds nothing; what it finds at the end. */
export const awaitAgreement = async (
  parts: VerifyParts,
  within_ms: number,
): Promise<readonly string[]> => {
  let found: readonly string[] = ['nothing was looked at'];
  const look = async (): Promise<boolean> => {
    try {
      const unfinished = await findUnfinished(parts.sql);
      found = unfinished.length > 0 ? unfinished : await findDifferences(parts);
    } catch (error) {
      found = [`it cannot be looked at: ${error}`];
    }
    return found.length === 0;
  };
  await until('all agrees', look, within_ms).catch(() => undefined);
  return found;
};
