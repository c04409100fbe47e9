import { createPeers, type LogChange } from './peers.js';
import { type ForecastScore, isCorrect, scoreShares } from './score-rules.js';

/**
 * Scores of a question's families, models and crowd, and of the even forecast. A family (a model)
 * is one forecaster: at each moment the mean over its owners, each of whom is the mean over its
 * agents there, of what they state. It is scored like an agent, weighted by time from its first
 * forecast on; its relative score is among the families (the models) of the question. Forecasts
 * are added in the order of their times.
 */

export const group_kinds = ['family', 'model', 'crowd', 'even'] as const;
export type GroupKind = (typeof group_kinds)[number];

export interface GroupScore extends Omit<ForecastScore, 'correct'> {
  readonly kind: GroupKind;
  readonly name: string;
  readonly n_agents: number;
  /** Share of the option that had most at the end. */
  readonly stated: number;
  readonly correct: boolean;
  readonly relative: number | null;
}

type Shares = readonly number[];

/** A forecaster whose forecast changes, and the sums of its scores over the time so far. */
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
    /** Its log scores before and after. */
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
      if (now === null) return null;
      passTo(at);
      const { shares, score } = now;
      const time = at - begun;
      const over = (sum: number, last: number) => (time === 0 ? last : sum / time);
      const forecast = over(sums.forecast, score.forecast);
      const log_score = over(sums.log_score, score.log_score);
      return {
        ...{ forecast, log_score, brier: over(sums.brier, score.brier) },
        baseline: 100 * (1 + log_score / Math.log(shares.length)),
        correct: isCorrect(forecast, shares.length),
        hit: score.hit,
        stated: Math.max(...shares),
      };
    },
  };
};

/** The mean over owners of the means over their agents. */
const createMean = (options: number) => {
  const owners = new Map<string, { count: number; readonly sum: number[] }>();
  const total = new Array<number>(options).fill(0);
  let agents = 0;
  return {
    agents: () => agents,
    /** `before` is null where the agent is new. */
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

interface Member {
  readonly owner: string;
  readonly before: Shares | null;
  readonly after: Shares;
}

const createGroups = (kind: 'family' | 'model', correct: readonly number[]) => {
  const peers = createPeers();
  const make = (options: number) => ({
    mean: createMean(options),
    forecaster: createForecaster(correct),
    changes: [] as LogChange[],
  });
  const groups = new Map<string, ReturnType<typeof make>>();
  return {
    change(at: number, name: string, { owner, before, after }: Member): void {
      const group = groups.get(name) ?? make(after.length);
      groups.set(name, group);
      const scores = group.forecaster.change(at, group.mean.change(owner, before, after));
      const place = peers.add(at, scores.before, scores.after);
      group.changes.push({ place, log_score: scores.after });
    },
    async end(at: number, rest: () => Promise<void>): Promise<readonly GroupScore[]> {
      peers.end(at);
      const scores: GroupScore[] = [];
      for (const [name, { mean, forecaster, changes }] of groups) {
        await rest();
        const relative = peers.relativeOf(changes);
        scores.push({ kind, name, n_agents: mean.agents(), relative, ...forecaster.end(at)! });
      }
      return scores;
    },
  };
};

export const createGroupScores = (correct: readonly number[]) => {
  const families = createGroups('family', correct);
  const models = createGroups('model', correct);
  const crowd = createForecaster(correct);
  let agents = 0;
  let options = 0;
  return {
    /** An agent states something; `before` is what it stated until then. */
    change(at: number, one: Member & { readonly family: string; readonly model: string }): void {
      if (one.before === null) agents += 1;
      options = one.after.length;
      families.change(at, one.family, one);
      models.change(at, one.model, one);
    },

    /** The headline consensus from then on. */
    crowd: (at: number, shares: Shares) => void crowd.change(at, shares),

    /** After the last forecast; nothing where there was none. `rest` lets others have a turn. */
    async end(at: number, rest: () => Promise<void>): Promise<readonly GroupScore[]> {
      if (agents === 0) return [];
      const of_families = await families.end(at, rest);
      const of_models = await models.end(at, rest);
      const of_crowd = crowd.end(at);
      const shares = new Array<number>(options).fill(1 / options);
      const even = scoreShares({ shares, correct, selected: 0 });
      const named = (kind: 'crowd' | 'even', n_agents: number) => ({
        ...{ kind, name: kind, n_agents, relative: null },
      });
      return [
        ...of_families,
        ...of_models,
        ...(of_crowd === null ? [] : [{ ...named('crowd', agents), ...of_crowd }]),
        { ...named('even', 0), ...even, baseline: 0, stated: 1 / options, correct: false },
      ];
    },
  };
};
