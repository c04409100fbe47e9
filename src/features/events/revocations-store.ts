import type { Db, Tx } from '../../db/client.js';

/** Credentials that are no longer valid, in Postgres. */

type RevocationReason = 'revoked' | 'suspended';

/** Reasons by credential, as SHA-256 in hex. Credentials that stay valid are left out. */
export type Revoked = ReadonlyMap<string, RevocationReason>;

export const revokeDigest = async (tx: Tx, digest: Buffer): Promise<void> => {
  await tx`insert into revocations (digest, reason) values (${digest}, 'revoked')`;
};

/** Ends all sessions of a person. Call this before the sessions are deleted. */
export const revokeSessions = async (tx: Tx, human_id: string): Promise<void> => {
  await tx`
    insert into revocations (digest, reason)
    select digest, 'revoked'
    from human_tokens
    where human_id = ${human_id} and kind = 'session'`;
};

/** Makes the key of an agent invalid until it is restored. */
export const suspendKey = async (tx: Tx, agent_id: string): Promise<void> => {
  await tx`
    insert into revocations (digest, reason)
    select key_digest, 'suspended' from agents where id = ${agent_id}`;
};

export const restoreKey = async (tx: Tx, agent_id: string): Promise<void> => {
  await tx`
    delete from revocations
    where digest = (select key_digest from agents where id = ${agent_id}) and reason = 'suspended'`;
};

/**
 * A row is read for this long after it was made. Its transaction may take 18 s to commit, and
 * readings may be 5 s apart. A socket may also be let in by cached key data that is a second old.
 */
const shown_for_s = 30;

export const readRevocations = async (
  db: Db,
): Promise<{ readonly revoked: Revoked; readonly changed: ReadonlySet<string> }> => {
  const rows = await db<{ digest: string; reason: RevocationReason | 'changed' }[]>`
    select encode(digest, 'hex') as digest, reason
    from revocations
    where created_at > statement_timestamp() - make_interval(secs => ${shown_for_s})
    order by created_at`;
  const revoked = rows.flatMap(({ digest, reason }) =>
    reason === 'changed' ? [] : [[digest, reason] as const],
  );
  return { revoked: new Map(revoked), changed: new Set(rows.map(({ digest }) => digest)) };
};

export const deleteOldRevocations = async (db: Db): Promise<void> => {
  await db`delete from revocations where created_at < now() - interval '1 hour'`;
};
