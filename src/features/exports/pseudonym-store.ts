import { createHmac } from 'node:crypto';
import type { Config } from '../../config.js';
import type { Deps } from '../../http/deps.js';
import { deriveKey } from '../../kit/sealing.js';

/** Pseudonyms of agents in exports. They are made once and stored with the agent. */

const key_purpose = 'export-pseudonym/1';

const digestWith = (key: Buffer, agent_id: string): string =>
  createHmac('sha256', key).update(agent_id).digest('hex').slice(0, 32);

const keyOf = ({ SECRET_KEY }: Pick<Config, 'SECRET_KEY'>): Buffer =>
  deriveKey(SECRET_KEY ?? '', key_purpose);

/** Returns the first 128 bits of the HMAC-SHA-256 of the agent's id, in hex. */
export const pseudonymOf = (config: Pick<Config, 'SECRET_KEY'>, agent_id: string): string =>
  digestWith(keyOf(config), agent_id);

const agents_at_once = 1_000;

/** Makes the missing pseudonyms of agents. Called before every export. */
export const fillPseudonyms = async ({
  sql,
  config,
}: Pick<Deps, 'sql' | 'config'>): Promise<void> => {
  const key = keyOf(config);
  for (;;) {
    const agents = await sql<{ id: string }[]>`
      select id from agents where pseudonym is null limit ${agents_at_once}`;
    if (agents.length === 0) return;
    const made = Object.fromEntries(agents.map(({ id }) => [id, digestWith(key, id)]));
    await sql`
      update agents a
      set pseudonym = m.value
      from json_each_text(${JSON.stringify(made)}::text::json) m
      where a.id = m.key::uuid and a.pseudonym is null`;
  }
};

export const readAgents = async (deps: Pick<Deps, 'sql' | 'config'>, ids: readonly string[]) => {
  await fillPseudonyms(deps);
  const rows = await deps.sql<{ id: string; name: string; pseudonym: string }[]>`
    select id, name, pseudonym
    from agents
    where id = any (${ids as string[]}::uuid[])`;
  return new Map(rows.map((agent) => [agent.id, agent]));
};
