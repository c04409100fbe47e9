import type { Sql } from '../../../src/db/client.js';
import { createBoardRebuild } from '../../../src/features/leaderboards/index.js';
import type { Deps } from '../../../src/http/deps.js';
import { makeId } from '../../../src/kit/ids.js';

/** Agents with accounts and scores, stored as resolution leaves them. */

export interface SeedScore {
  readonly agent_id: string;
  readonly category: string;
  /** The confidence in the chosen side, in whole percent. */
  readonly stated: number;
  readonly hit: boolean;
  readonly resolved_at: Date;
  readonly relative?: number | null;
  readonly skill?: number | null;
  readonly question_id?: string;
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
      id,
      name: `agent ${id}`,
      name_key: `agent ${id}`,
      model: 'gpt-5',
      model_family: 'gpt',
      persona_archetype: 'data_driven',
      risk_profile: 'moderate',
      roles: ['predictor'],
      referral_code: `R${made}`,
      key_digest: Buffer.from(hex + hex, 'hex'),
      owner_id,
      linked_at: owner_id === null ? null : new Date(),
    };
  });
  await sql`insert into agents ${sql(rows)}`;
  const accounts = rows.map(({ id }, i) => ({ agent_id: id, balance: agents[i]?.balance ?? 0 }));
  await sql`insert into accounts ${sql(accounts)}`;
  return rows.map(({ id }) => id);
};

/** Adds wins of 100 points each. */
export const addWins = (sql: Sql, agent_id: string, count: number, at = new Date()) =>
  addScores(
    sql,
    Array.from({ length: count }, () => ({
      agent_id,
      category: 'technology',
      stated: 100,
      hit: true,
      resolved_at: at,
    })),
  );

export const logOf = (share: number): number => Math.log(Math.max(share, 0.0001));

export const addScores = async (sql: Sql, scores: readonly SeedScore[]): Promise<void> => {
  const rows = scores.map((score) => {
    const { agent_id, category, stated, hit, resolved_at, relative = null, skill = null } = score;
    const forecast = (hit ? stated : 100 - stated) / 100;
    return {
      question_id: score.question_id ?? makeId(),
      agent_id,
      prediction_id: makeId(),
      revision: 1,
      category,
      question_type: 'binary',
      n_options: 2,
      forecast,
      stated: 100 * stated,
      hit,
      correct: forecast > 0.5,
      brier: (1 - forecast) ** 2,
      log_score: logOf(forecast),
      baseline: 0,
      relative,
      skill,
      net: Math.round(100 * (1 - 4 * (1 - forecast) ** 2)),
      resolved_at,
      settled_at: resolved_at,
    };
  });
  for (let from = 0; from < rows.length; from += 1_000) {
    await sql`insert into scores ${sql(rows.slice(from, from + 1_000))}`;
  }
};

/** The score of a family, a model, the crowd or a constant 50 % on one question. */
export interface SeedGroup {
  readonly kind: string;
  readonly name: string;
  /** Probability given to the actual outcome. */
  readonly share: number;
  readonly category: string;
  readonly resolved_at: Date;
  readonly relative?: number | null;
  readonly question_id?: string;
}

export const addGroups = async (sql: Sql, groups: readonly SeedGroup[]): Promise<void> => {
  const rows = groups.map(({ share, relative = null, question_id = makeId(), ...group }) => ({
    ...group,
    question_id,
    relative,
    forecast: share,
    n_agents: 1,
    revision: 1,
    question_type: 'binary',
    n_options: 2,
    settled_at: group.resolved_at,
    stated: Math.round(1e4 * Math.max(share, 1 - share)),
    hit: share >= 0.5,
    correct: share > 0.5,
    brier: (1 - share) ** 2,
    log_score: logOf(share),
    baseline: 100 * (1 + logOf(share) / Math.log(2)),
  }));
  for (let from = 0; from < rows.length; from += 1_000) {
    await sql`insert into group_scores ${sql(rows.slice(from, from + 1_000))}`;
  }
};

/**
 * Builds the boards while `work` runs. Starts a new rebuild, because one that is already running
 * may be pausing.
 */
export const whileRebuilding = async (deps: Deps, work: () => Promise<unknown>): Promise<void> => {
  const rebuild = createBoardRebuild(deps, 20);
  await rebuild.start();
  try {
    await work();
  } finally {
    await rebuild.stop();
  }
};
