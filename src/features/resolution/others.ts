import { whole_bp } from '../../kit/percent.js';
import { createPool, type Fit, fitAt } from '../consensus/index.js';
import {
  createGroupScores,
  createPeers,
  type GroupScore,
  isScored,
  meanOverTime,
  openTime,
  type Peers,
  type ScoringTime,
  type Span,
  scoreShares,
  type TimedForecast,
  type TimedScore,
} from '../points/index.js';
import { distributionOf } from '../predictions/index.js';
import type { ForecastRow } from './settling-store.js';

/**
 * What the scores of one agent need of everybody else on the question: the peers, and the crowd (the
 * pool of the headline, by the fit in force then) just before each forecast; and the scores of families, models and the crowd itself. All of it
 * comes from one pass over the forecasts in the order of their times, which is the same each time
 * it is made, so it is kept in memory alone.
 */

interface Of {
  readonly question_type: 'binary' | 'multi';
  readonly n_options: number;
  readonly correct: readonly number[];
  readonly time: ScoringTime;
  readonly fits: readonly Fit[];
}

/** The crowd without an agent, just before each of its forecasts. */
interface CrowdBefore {
  /** Probability that it put on what happened. */
  readonly forecasts: (number | null)[];
  readonly briers: (number | null)[];
}

interface Standing extends CrowdBefore {
  shares: readonly number[];
  log_score: number;
}

export interface OthersScores {
  readonly relative: number | null;
  readonly crowd: readonly (number | null)[];
  readonly skill: number | null;
}

export type Others = ReturnType<typeof endPass>;

/** `pages` come in the order of times, then agents, then revisions. */
export const passOver = async (
  pages: AsyncIterable<readonly ForecastRow[]>,
  { question_type, n_options, correct, time, fits }: Of,
  /** Between pages, so that nothing else waits long. */
  rest: () => Promise<void>,
) => {
  const standings = new Map<string, Standing>();
  const peers = createPeers();
  const groups = createGroupScores(correct);
  const is_binary = question_type === 'binary';
  const pool = createPool(is_binary ? 0 : n_options);
  /** What the pool reads, as shares of 1. */
  const sharesOf = (percents: readonly number[] | null): readonly number[] | null => {
    if (percents === null) return null;
    const chances = percents.map((percent) => percent / 100);
    return is_binary ? [chances[0]!, 1 - chances[0]!] : chances;
  };

  const take = (row: ForecastRow): void => {
    const { agent_id, at_ms, owner, model_family: family, model } = row;
    if (!isScored(time, at_ms)) return;
    const { units, whole } = distributionOf(row, n_options);
    const shares = units.map((unit) => unit / whole);
    const known = standings.get(agent_id);
    const { rho } = fitAt(fits, at_ms);
    const before = sharesOf(pool.readWithout(agent_id, rho));
    const { log_score } = scoreShares({ shares, correct, selected: 0 });
    const of_crowd = before === null ? null : scoreShares({ shares: before, correct, selected: 0 });
    const standing = known ?? { shares, log_score, forecasts: [], briers: [] };
    standing.forecasts.push(of_crowd?.forecast ?? null);
    standing.briers.push(of_crowd?.brier ?? null);

    const at = openTime(time, at_ms);
    peers.add(at, known?.log_score ?? null, log_score);
    groups.change(at, { owner, family, model, before: known?.shares ?? null, after: shares });
    // Whole numbers: what is taken away again leaves nothing.
    const given = is_binary ? [] : units.map((unit) => (unit * whole_bp * (n_options - 1)) / whole);
    pool.put({ owner, agent: agent_id, family, value: row.probability ?? 0, given });
    groups.crowd(at, sharesOf(pool.read(rho))!);
    standings.set(agent_id, Object.assign(standing, { shares, log_score }));
  };

  for await (const page of pages) {
    for (const row of page) take(row);
    await rest();
  }
  const end = openTime(time, time.ends_ms);
  peers.end(end);
  await rest();
  return endPass(standings, peers, await groups.end(end, rest));
};

const endPass = (
  standings: ReadonlyMap<string, CrowdBefore>,
  peers: Peers,
  groups: readonly GroupScore[],
) => ({
  groups,
  /** Of an agent, by the forecasts of it that are scored. */
  scoresOf(
    agent_id: string,
    spans: readonly Span<TimedForecast>[],
    { parts }: TimedScore,
  ): OthersScores {
    const { forecasts = [], briers = [] } = standings.get(agent_id) ?? {};
    const gains = parts.map(({ brier }, n) => {
      const crowd = briers[n] ?? null;
      return crowd === null ? null : crowd - brier;
    });
    const changes = spans.map(({ open_ms }, n) => ({
      place: peers.placeOf(open_ms),
      log_score: parts[n]!.log_score,
    }));
    return {
      relative: peers.relativeOf(changes),
      crowd: forecasts,
      skill: meanOverTime(spans, gains),
    };
  },
});
