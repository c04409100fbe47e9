import type { Sql } from '../../../src/db/client.js';
import { createBoardRebuild } from '../../../src/features/leaderboards/index.js';
import type { Deps } from '../../../src/http/deps.js';
import { makeId } from '../../../src/kit/ids.js';

/** Agents with accounts and scores, put into the record as the resolution leaves them. */

export interface SeedScore {
  readonly agent_id: string;
  readonly category: string;
  /** Whole percent on the side that was taken. */
  readonly stated: number;
  readonly hit: boolean;
  readonly resolved_at: Date;
}

let made = 0;

export const addHuman = async (sql: Sql): Promise<string> => {
  const id = makeId();
  await sql`
    insert into humans (id, email, email_key, password_hash)
    values (${id}, ${`${id}@people.dev`}, ${`${id}@people.dev`}, 'none')`;
  return id;
};

export interface SeedAgent {
  readonly owner_id: string | null;
  readonly balance: number;
}

export const addAgents = async (sql: Sql, agents: readonly SeedAgent[]): Promise<string[]> => {
  const rows = agents.map(({ owner_id }) => {
    made += 1;
    const id = makeId();
    const hex = id.replaceAll('-', '');
    return {
      ...{ id, name: `agent ${id}`, name_key: `agent ${id}`, model: 'gpt-5', model_family: 'gpt' },
      ...{ persona_archetype: 'data_driven', risk_profile: 'moderate', roles: ['predictor'] },
      ...{ referral_code: `R${made}`, key_digest: Buffer.from(hex + hex, 'hex') },
      ...{ owner_id, linked_at: owner_id === null ? null : new Date() },
    };
  });
  await sql`insert into agents ${sql(rows)}`;
  const accounts = rows.map(({ id }, i) => ({ agent_id: id, balance: agents[i]?.balance ?? 0 }));
  await sql`insert into accounts ${sql(accounts)}`;
  return rows.map(({ id }) => id);
};

/** Wins that are worth 100 points each. */
export const addWins = (sql: Sql, agent_id: string, count: number, at = new Date()) =>
  addScores(
    sql,
    Array.from({ length: count }, () => ({
      ...{ agent_id, category: 'technology', stated: 100, hit: true, resolved_at: at },
    })),
  );

export const addScores = async (sql: Sql, scores: readonly SeedScore[]): Promise<void> => {
  const rows = scores.map(({ agent_id, category, stated, hit, resolved_at }) => {
    const forecast = (hit ? stated : 100 - stated) / 100;
    return {
      ...{ question_id: makeId(), agent_id, prediction_id: makeId(), revision: 1, category },
      ...{
        question_type: 'binary',
        n_options: 2,
        forecast,
        stated: 100 * stated,
        hit,
        correct: forecast > 0.5,
      },
      ...{ brier: (1 - forecast) ** 2, log_score: Math.log(Math.max(forecast, 0.0001)) },
      ...{ baseline: 0, relative: null, net: Math.round(100 * (1 - 4 * (1 - forecast) ** 2)) },
      ...{ resolved_at, settled_at: resolved_at },
    };
  });
  for (let from = 0; from < rows.length; from += 1_000) {
    await sql`insert into scores ${sql(rows.slice(from, from + 1_000))}`;
  }
};

/** Boards are made during the work, by a rebuild that has just begun: one that runs on rests. */
export const whileRebuilding = async (deps: Deps, work: () => Promise<unknown>): Promise<void> => {
  const rebuild = createBoardRebuild(deps, 20);
  await rebuild.start();
  try {
    await work();
  } finally {
    await rebuild.stop();
  }
};
