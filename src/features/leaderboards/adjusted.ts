import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Sql } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { z } from '../points/calibration.js';
import { claimRun, putAdjusted, readScores, type ScoreRow } from './adjusted-store.js';
import { type BoardClass, board_classes, percent } from './rules.js';
import type { BoardRow } from './store.js';
import { fitTwoWay, type Scores } from './two-way.js';

/**
 * Boards that are adjusted for difficulty (`two-way.ts`). A timer rebuilds them each hour. A
 * worker thread with a separate connection reads the scores, makes the boards and stores them, so
 * that the arithmetic does not block the process.
 */

export const least = { least_questions: 20, least_agents: 3 } as const;
const resamples = 1_000;

/** Returns the number of an id. Ids are numbered in the order in which they first appear. */
const numberOf = (numbers: Map<string, number>, id: string): number => {
  if (!numbers.has(id)) numbers.set(id, numbers.size);
  return numbers.get(id)!;
};

const gather = async (sql: Sql, of: BoardClass) => {
  const forecasters = new Map<string, number>();
  const questions = new Map<string, number>();
  const labels: Pick<ScoreRow, 'name' | 'reference'>[] = [];
  const makeScores = (): Scores => ({ forecasters: [], questions: [], briers: [] });
  const [ranked, compared] = [makeScores(), makeScores()];
  await readScores(sql, of, ({ id, question_id, brier, ...label }) => {
    const forecaster = numberOf(forecasters, id);
    labels[forecaster] = label;
    const scores = label.reference === null ? ranked : compared;
    scores.forecasters.push(forecaster);
    scores.questions.push(numberOf(questions, question_id));
    scores.briers.push(brier);
  });
  return { ranked, compared, ids: [...forecasters.keys()], labels };
};

const fraction = (value: number): number => Math.round(value * 1e6) / 1e6;

/** Returns the references' values: the mean of their Brier scores minus the questions' effects. */
const placeCompared = (compared: Scores, difficulty: ReadonlyMap<number, number>) => {
  const sums = new Map<number, { n: number; sum: number }>();
  for (const [i, forecaster] of compared.forecasters.entries()) {
    const effect = difficulty.get(compared.questions[i]!);
    if (effect === undefined) continue;
    const { n, sum } = sums.get(forecaster) ?? { n: 0, sum: 0 };
    sums.set(forecaster, { n: n + 1, sum: sum + compared.briers[i]! - effect });
  }
  return [...sums].flatMap(([forecaster, { n, sum }]) => {
    const value = fraction(sum / n);
    return n < least.least_questions ? [] : { forecaster, rank: null, n, value, interval: null };
  });
};

const makeBoard = async (sql: Sql, of: BoardClass, until_ms: number) => {
  const { ranked, compared, ids, labels } = await gather(sql, of);
  const isOver = (): boolean => performance.now() > until_ms;
  const fit = fitTwoWay(ranked, { ...least, resamples, isOver });
  const made = fit.forecasters.map(({ deviation, ...row }) => {
    const [low, high] = [row.value - z * deviation, row.value + z * deviation].map(fraction);
    return { ...row, interval: { low: low!, high: high! } };
  });
  const rows = [...made, ...placeCompared(compared, fit.difficulty)].map(
    ({ forecaster, rank, ...figures }): BoardRow => {
      const detail = { ...figures, ...labels[forecaster] };
      return { agent_id: ids[forecaster]!, key: figures.value, rank, detail };
    },
  );
  const { covered_scores } = fit;
  const scores = ranked.briers.length;
  const coverage = {
    ...least,
    scores,
    covered_scores,
    covered_share: percent(covered_scores / (scores || 1)),
    forecasters: made.length,
    questions: fit.difficulty.size,
    resamples: fit.resamples,
  };
  return { rows, coverage };
};

const longest_ms = 10 * 60_000;

/** Makes the boards of all classes, models last. Resampling stops after ten minutes in total. */
export const makeAdjustedBoards = async (sql: Sql, at: Date): Promise<void> => {
  const until_ms = performance.now() + longest_ms;
  for (const of of board_classes) {
    const { rows, coverage } = await makeBoard(sql, of, until_ms);
    await putAdjusted(sql, of, { rows, coverage: { made_at: at.toISOString(), ...coverage } });
  }
};

const heap_mb = 1_024;
const looks_every_ms = 60_000;

/** Creates the timer that makes the boards each hour, in a worker thread. */
export const createAdjustedTimer = ({ sql, log, clock, config }: Deps): Loop => {
  let worker: Worker | null = null;
  let is_stopped = false;
  const loop = makeLoop({
    name: 'adjusted boards',
    log,
    every_ms: looks_every_ms,
    async turn() {
      const at = clock();
      if (!(await claimRun(sql, at)) || is_stopped) return 'rest';
      worker = new Worker(new URL('./adjusted-worker.js', import.meta.url), {
        workerData: { url: config.DATABASE_URL, at },
        execArgv: [],
        resourceLimits: { maxOldGenerationSizeMb: heap_mb },
      });
      await once(worker, 'exit');
      return 'rest';
    },
  });
  return {
    ...loop,
    async stop() {
      is_stopped = true;
      await worker?.terminate();
      await loop.stop();
    },
  };
};
