import type { Db } from '../../kit/pg/client.js';

/** The process of Postgres that serves a connection, and what its title says of it. */
export interface Backend {
  readonly pid: number;
  readonly user_name: string;
  readonly database: string;
  /** Of the client, as Postgres sees it; null over a unix socket. */
  readonly host: string | null;
  readonly port: number | null;
}

export const readBackend = async (db: Db): Promise<Backend | undefined> => {
  const [row] = await db<Backend[]>`
    select
      pg_backend_pid() as pid,
      current_user::text as user_name,
      current_database()::text as database,
      host(inet_client_addr()) as host,
      inet_client_port() as port`;
  return row;
};
