import { whole_bp } from '../../kit/percent.js';
import { type Fit, fitAt } from '../consensus/correlation.js';
import { createPool, type Pooled } from '../consensus/pool.js';
import { createGroupScores, type GroupScore } from '../points/group-scores.js';
import { createPeers, type Peers } from '../points/peers.js';
import { scoreShares } from '../points/score-rules.js';
import {
  isScored,
  meanOverTime,
  openTime,
  type ScoringTime,
  type Span,
  type TimedForecast,
  type TimedScore,
} from '../points/time-weighting.js';
import { distributionOf } from '../predictions/distribution.js';
import type { ForecastRow } from './settling-store.js';

/**
 * The data about other agents that one agent's scores need: its peers, and the crowd just before
 * each forecast (the headline, with the fit in force then). The result also has the
 * scores of families, models and the crowd itself. It comes from one pass over the forecasts in
 * time order. Each pass gives the same result, so the result is held only in memory.
 */

interface Of {
  readonly question_type: string;
  readonly n_options: number;
  readonly correct: readonly number[];
  readonly time: ScoringTime;
  readonly fits: readonly Fit[];
}

interface Latest {
  shares: readonly number[];
  log_score: number;
  /** Index of its latest forecast in `Crowd`. */
  index: number;
}

/**
 * The crowd without the agent, just before each forecast: its share on the actual outcome, and its
 * Brier score (NaN without a crowd). `previous`: index of the agent's previous forecast, or −1.
 * Numbers are in columns, because a million objects would slow down garbage collection.
 */
interface Crowd {
  readonly forecasts: number[];
  readonly briers: number[];
  readonly previous: number[];
}

export type PeerScores = ReturnType<typeof endPass>;

/** `pages` must be ordered by time, then agent, then revision. */
export const scorePeers = async (
  pages: AsyncIterable<readonly ForecastRow[]>,
  { question_type, n_options, correct, time, fits }: Of,
  /** Called between pages, so that other work does not wait long. */
  rest: () => Promise<void>,
) => {
  const latest = new Map<string, Latest>();
  const crowd: Crowd = { forecasts: [], briers: [], previous: [] };
  const peers = createPeers();
  const groups = createGroupScores(correct);
  const is_binary = question_type === 'binary';
  const pool = createPool(is_binary ? 0 : n_options);
  /** Returns the headline as shares of 1. */
  const sharesOf = (pooled: Pooled | null): readonly number[] | null => {
    if (pooled === null) return null;
    const chances = pooled.headline.map((percent) => percent / 100);
    return is_binary ? [chances[0]!, 1 - chances[0]!] : chances;
  };

  const take = (row: ForecastRow): void => {
    const { agent_id, at_ms, owner, model_family: family, model } = row;
    if (!isScored(time, at_ms)) return;
    const { units, whole } = distributionOf(row, n_options);
    const shares = units.map((unit) => unit / whole);
    const known = latest.get(agent_id);
    const fit = fitAt(fits, at_ms);
    const before = sharesOf(pool.readWithout(agent_id, fit));
    const { log_score } = scoreShares({ shares, correct, selected: 0 });
    const of_crowd = before === null ? null : scoreShares({ shares: before, correct, selected: 0 });
    const index = crowd.forecasts.push(of_crowd?.forecast ?? Number.NaN) - 1;
    crowd.briers.push(of_crowd?.brier ?? Number.NaN);
    crowd.previous.push(known?.index ?? -1);

    const at = openTime(time, at_ms);
    peers.add(at, known?.log_score ?? null, log_score);
    // Whole numbers, so that removing a value leaves no rounding error.
    const given = is_binary ? [] : units.map((unit) => (unit * whole_bp * (n_options - 1)) / whole);
    pool.put({ owner, agent: agent_id, family, value: row.probability ?? 0, given });
    const headline = sharesOf(pool.read(fit))!;
    const change = { owner, before: known?.shares ?? null, after: shares };
    groups.change(at, { ...change, family, model, headline });
    latest.set(agent_id, { shares, log_score, index });
  };

  for await (const page of pages) {
    for (const row of page) take(row);
    await rest();
  }
  const end = openTime(time, time.ends_ms);
  peers.end(end);
  await rest();
  return endPass({ latest, crowd, peers, groups: await groups.end(end, rest) });
};

interface Pass {
  readonly latest: ReadonlyMap<string, Latest>;
  readonly crowd: Crowd;
  readonly peers: Peers;
  readonly groups: readonly GroupScore[];
}

const endPass = ({ latest, crowd, peers, groups }: Pass) => ({
  groups,
  /** Returns an agent's scores against the others. `spans` are its scored forecasts. */
  scoresOf(agent_id: string, spans: readonly Span<TimedForecast>[], { parts }: TimedScore) {
    const indexes: number[] = [];
    let index = latest.get(agent_id)?.index ?? -1;
    if (index < 0) return { relative: null, crowd: [], skill: null };
    for (; index >= 0; index = crowd.previous[index]!) indexes.unshift(index);
    const read = (column: readonly number[]) =>
      indexes.map((one) => (Number.isNaN(column[one]) ? null : column[one]!));
    const briers = read(crowd.briers);
    const gains = parts.map(({ brier }, n) => {
      const other = briers[n] ?? null;
      return other === null ? null : other - brier;
    });
    const changes = spans.map(({ open_ms }, n) => ({
      index: peers.findIndex(open_ms),
      log_score: parts[n]!.log_score,
    }));
    return {
      relative: peers.relativeOf(changes),
      crowd: read(crowd.forecasts),
      skill: meanOverTime(spans, gains),
    };
  },
});
