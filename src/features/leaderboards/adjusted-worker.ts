import { parentPort, workerData } from 'node:worker_threads';
import { openSql } from '../../db/client.js';
import { makeAdjustedBoards } from './adjusted.js';

/** The worker thread that `createAdjustedTimer` starts. */

const serve = async ({ url, at }: { readonly url: string; readonly at: Date }): Promise<void> => {
  const sql = openSql({ url, pool: 1, prepare: false, name: 'adjusted boards' });
  await makeAdjustedBoards(sql, at).finally(() => sql.end({ timeout: 5 }));
};

if (parentPort !== null) await serve(workerData);
