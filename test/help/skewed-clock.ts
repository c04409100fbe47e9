import { openAdmin } from './own-stores.js';

/**
 * Sets a database's clock hours ahead of or behind this machine's clock. For every connection
 * opened from now on, functions in a schema that precedes `pg_catalog` replace the built-in ones.
 */
export const withSkewedClock = async (database_url: string, hours: number): Promise<void> => {
  const admin = openAdmin(database_url);
  const offset = `interval '${hours} hours'`;
  await admin.unsafe(`
    create schema skewed;
    create function skewed.now() returns timestamptz language sql stable
      as $$ select pg_catalog.now() + ${offset} $$;
    create function skewed.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() + ${offset} $$;
    do $$ begin
      execute format(
        'alter database %I set search_path = skewed, pg_catalog, public', current_database()
      );
    end $$`);
  await admin.end();
};
