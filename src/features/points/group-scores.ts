import { createPeers, type LogChange } from './peers.js';
import { type ForecastScore, isCorrect, scoreShares } from './score-rules.js';

/**
 * Scores of a question's families, models and crowd, and of the even forecast. A family (or a
 * model) is one forecaster. Its forecast at each moment is the mean over its owners, and an owner's
 * forecast is the mean over their agents in the family. A family is scored like an agent, weighted
 * by time from its first forecast on. Its relative score compares it with the question's other
 * families (or models). Forecasts must be added in the order of their times.
 */

type GroupKind = 'family' | 'model' | 'crowd' | 'even';

export interface GroupScore extends ForecastScore {
  readonly kind: GroupKind;
  readonly name: string;
  readonly n_agents: number;
  /** The largest share in the last forecast. */
  readonly stated: number;
  readonly relative: number | null;
}

type Shares = readonly number[];

/** Creates a forecaster that can revise its forecast. It adds up its scores over time. */
const createForecaster = (correct: readonly number[]) => {
  const sums = { forecast: 0, brier: 0, log_score: 0 };
  let begun = 0;
  let now: { readonly at: number; readonly shares: Shares; readonly score: ForecastScore } | null =
    null;
  const passTo = (at: number): void => {
    if (now === null) return;
    const time = at - now.at;
    sums.forecast += now.score.forecast * time;
    sums.brier += now.score.brier * time;
    sums.log_score += now.score.log_score * time;
  };
  return {
    /** Sets a new forecast. Returns the log score before it (null at first) and after it. */
    change(at: number, shares: Shares): { before: number | null; after: number } {
      passTo(at);
      if (now === null) begun = at;
      const before = now?.score.log_score ?? null;
      const selected = shares.indexOf(Math.max(...shares));
      const score = scoreShares({ shares, correct, selected });
      now = { at, shares, score };
      return { before, after: score.log_score };
    },
    end(at: number) {
      passTo(at);
      const { shares, score } = now!;
      const time = at - begun;
      const over = (sum: number, last: number) => (time === 0 ? last : sum / time);
      const forecast = over(sums.forecast, score.forecast);
      const log_score = over(sums.log_score, score.log_score);
      return {
        forecast,
        log_score,
        brier: over(sums.brier, score.brier),
        baseline: 100 * (1 + log_score / Math.log(shares.length)),
        correct: isCorrect(forecast, shares.length),
        hit: score.hit,
        stated: Math.max(...shares),
      };
    },
  };
};

/** Creates a running mean over owners, where each owner counts as the mean of their agents. */
const createMean = (options: number) => {
  const owners = new Map<string, { count: number; readonly sum: number[] }>();
  const total = new Array<number>(options).fill(0);
  let agents = 0;
  return {
    agents: () => agents,
    /** `before` is null if the agent is new. */
    change(owner_id: string, before: Shares | null, after: Shares): Shares {
      const owner = owners.get(owner_id) ?? { count: 0, sum: total.map(() => 0) };
      owners.set(owner_id, owner);
      const known = owner.count;
      if (before === null) {
        owner.count += 1;
        agents += 1;
      }
      for (const [n, share] of after.entries()) {
        const old = known === 0 ? 0 : owner.sum[n]! / known;
        owner.sum[n]! += share - (before?.[n] ?? 0);
        total[n]! += owner.sum[n]! / owner.count - old;
      }
      return total.map((sum) => sum / owners.size);
    },
  };
};

type Forecaster = ReturnType<typeof createForecaster>;

/** Creates the forecasters of one kind, keyed by name. They are each other's peers. */
const createGroups = (kind: GroupKind, correct: readonly number[]) => {
  const peers = createPeers();
  const groups = new Map<string, { readonly forecaster: Forecaster; changes: LogChange[] }>();
  return {
    change(at: number, name: string, shares: Shares): void {
      const group = groups.get(name) ?? { forecaster: createForecaster(correct), changes: [] };
      groups.set(name, group);
      const { before, after } = group.forecaster.change(at, shares);
      group.changes.push({ index: peers.add(at, before, after), log_score: after });
    },
    /** `rest` lets other work run in between. */
    async end(at: number, agentsOf: (name: string) => number, rest: () => Promise<void>) {
      peers.end(at);
      const scores: GroupScore[] = [];
      for (const [name, { forecaster, changes }] of groups) {
        await rest();
        const relative = peers.relativeOf(changes);
        scores.push({ kind, name, n_agents: agentsOf(name), relative, ...forecaster.end(at) });
      }
      return scores;
    },
  };
};

const createTeams = (kind: 'family' | 'model', correct: readonly number[]) => {
  const groups = createGroups(kind, correct);
  const means = new Map<string, ReturnType<typeof createMean>>();
  return {
    change(at: number, name: string, { owner, before, after }: Member): void {
      const mean = means.get(name) ?? createMean(after.length);
      means.set(name, mean);
      groups.change(at, name, mean.change(owner, before, after));
    },
    end: (at: number, rest: () => Promise<void>) =>
      groups.end(at, (name) => means.get(name)!.agents(), rest),
  };
};

interface Member {
  readonly owner: string;
  /** The agent's forecast until then. Null if the agent is new. */
  readonly before: Shares | null;
  readonly after: Shares;
}

export const createGroupScores = (correct: readonly number[]) => {
  const families = createTeams('family', correct);
  const models = createTeams('model', correct);
  const crowd = createGroups('crowd', correct);
  const even = createGroups('even', correct);
  let agents = 0;
  return {
    /** Adds an agent's forecast. `headline` is the consensus from then on. */
    change(
      at: number,
      one: Member & { readonly family: string; readonly model: string; readonly headline: Shares },
    ): void {
      const n = one.after.length;
      if (agents === 0) even.change(at, 'even', new Array<number>(n).fill(1 / n));
      if (one.before === null) agents += 1;
      families.change(at, one.family, one);
      models.change(at, one.model, one);
      crowd.change(at, 'crowd', one.headline);
    },
    /** Call it after the last forecast. Returns no scores if there were no forecasts. */
    end: async (at: number, rest: () => Promise<void>): Promise<readonly GroupScore[]> => [
      ...(await families.end(at, rest)),
      ...(await models.end(at, rest)),
      ...(await crowd.end(at, () => agents, rest)),
      ...(await even.end(at, () => 0, rest)),
    ],
  };
};
