import type { Db } from '../../kit/pg/client.js';

/**
 * The owner of agents that an import made. It is nobody: what stands for its address is none, and
 * its password no hash, so that nobody can sign up as it, log in or be mailed.
 */
export const import_owner_id = '00000000-0000-7000-8000-000000000001';

export const ensureImportOwner = async (db: Db): Promise<string> => {
  await db`
    insert into humans (id, email, email_key, name, password_hash, email_verified_at)
    values (${import_owner_id}, '(imports)', '(imports)', 'Imports', '!', now())
    on conflict do nothing`;
  return import_owner_id;
};
