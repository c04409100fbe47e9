import type { Sql } from '../../src/kit/pg/client.js';

/** Makes the database of a test read-only, as an operator or a failover does, or takes it back. */
export const setReadOnly = async (sql: Sql, is_read_only: boolean): Promise<void> => {
  await sql.begin('read write', async (tx) => {
    const [row] = await tx<{ name: string }[]>`select quote_ident(current_database()) as name`;
    const what = is_read_only ? 'set default_transaction_read_only = on' : 'reset all';
    await tx.unsafe(`alter database ${row?.name} ${what}`);
  });
  // It holds for sessions that begin after it.
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
};
