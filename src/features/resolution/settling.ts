import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { makeLoop } from '../../kit/loop.js';
import { isOutage } from '../../kit/outage.js';
import type { Service } from '../../kit/service.js';
import { dropLease, type Lease, takeLease } from '../events/index.js';
import { markStanding } from '../leaderboards/index.js';
import { noteTiers, notify } from '../notifications/index.js';
import {
  net as netOf,
  relativeScore,
  type Settlement,
  scoreForecast,
  settleAccounts,
} from '../points/index.js';
import { distributionOf, type Stated } from '../predictions/index.js';
import { correctIndices, countOptions } from './rules.js';
import * as store from './settling-store.js';

/**
 * Settles what was decided: for each prediction of the question, in the order of agent ids, what
 * an earlier revision paid is reversed, the net is paid, the score stored. A chunk is one
 * transaction with the cursor that says how far this is, so that a process may be killed at any
 * moment: a chunk has happened or it has not, and nobody is settled twice or left out.
 *
 *   decided ──sums made (resolve only)──▶ running ──chunk by chunk──▶ done
 *
 * One timer works at it, by a lease with a fence that every chunk checks; the others wait for the
 * lease to run out. Chunks are small and not faster than a set rate, because a chunk holds accounts
 * that a prediction of the same agents waits for, and because answers to clients come first.
 * Measured by `bench -- resolve`.
 */
export interface SettlingOptions {
  readonly poll_ms?: number;
  readonly lease_seconds?: number;
  /** Predictions settled per second, at most. */
  readonly per_second?: number;
}

/** Index of the side or option that was taken. */
const selectedOf = ({ prediction, selected_option }: Stated): number =>
  prediction === null ? (selected_option ?? 0) : prediction ? 0 : 1;

/** Log scores are added up in a fixed order: the sum is the same to the last bit. */
const sumForecasts = (
  job: Pick<store.Job, 'options' | 'outcome' | 'correct_options'>,
  stated: readonly store.StatedCount[],
) => {
  const correct = correctIndices(job, job.options);
  const terms = stated.map((one) => {
    const distribution = distributionOf(one, countOptions(job.options));
    return one.count * scoreForecast({ distribution, correct, selected: 0 }).log_score;
  });
  return {
    forecasters: stated.reduce((sum, { count }) => sum + count, 0),
    log_sum: terms.sort((a, b) => a - b).reduce((sum, one) => sum + one, 0),
  };
};

interface Settled {
  readonly settlement: Settlement;
  /** None for a voided question. */
  readonly score: store.ScoreRow | null;
}

/**
 * The net; where an earlier revision paid something else, that is reversed first. What it paid
 * already, to the point, moves nothing: the score alone gets the new revision.
 */
const settlePrediction = (job: store.Job, prediction: store.SettledPrediction): Settled => {
  const { agent_id, id: prediction_id, confidence: stated, paid_net } = prediction;
  const nothing = { agent_id, prediction_id, reversal: 0, net: 0 };
  if (job.kind === 'void') return { settlement: nothing, score: null };
  const correct = correctIndices(job, job.options);
  const distribution = distributionOf(prediction, countOptions(job.options));
  const net = netOf({ weight: job.weight, distribution, correct, rule: job.points_rule });
  const settlement =
    paid_net === net ? nothing : { ...nothing, net, reversal: 0 - (paid_net ?? 0) };
  const score = scoreForecast({ distribution, correct, selected: selectedOf(prediction) });
  const others = { count: job.forecasters - 1, log_sum: job.log_sum - score.log_score };
  const relative = relativeScore(score.log_score, others);
  return { settlement, score: { agent_id, prediction_id, stated, net, relative, ...score } };
};

const chunk_size = 40;

/** How long a decision that failed to settle is left alone. */
const set_aside_ms = 5_000;

/** More lateness than this is not made up for. */
const most_late_ms = 100;

/** Rests so that no more are settled than the rate allows; lateness makes for shorter rests. */
const createPacer = (per_second: number) => {
  let due_ms = 0;
  return async (settled: number): Promise<void> => {
    const now = performance.now();
    due_ms = Math.max(due_ms, now - most_late_ms) + (settled * 1_000) / per_second;
    const rest_ms = due_ms - now;
    if (rest_ms > 0) await new Promise((resolve) => setTimeout(resolve, rest_ms));
  };
};

/** Another timer holds the lease, or has moved the cursor. */
class NotOurs extends Error {}

interface Chunk {
  readonly job: store.Job;
  readonly lease: Lease;
  readonly predictions: readonly store.SettledPrediction[];
  readonly is_last: boolean;
}

const noticeOf = (
  { question_id, revision, kind }: store.Job,
  { settlement, score }: Settled,
  at: Date,
) => ({
  ...{ agent_id: settlement.agent_id, question_id, subject_id: settlement.prediction_id, at },
  kind: kind === 'void' ? ('prediction.voided' as const) : ('prediction.resolved' as const),
  cause: `resolution:${question_id}:${revision}`,
  details: { revision, net: score?.net ?? 0 },
});

/** One transaction; rolled back where another timer holds the lease or has moved the cursor. */
const settleChunk = ({ sql, clock }: Deps, chunk: Chunk): Promise<void> => {
  const { job, lease, predictions, is_last } = chunk;
  const settled = predictions.map((one) => settlePrediction(job, one));
  const settlements = settled.map(({ settlement }) => settlement);
  const paid = settlements.filter(({ net, reversal }) => net !== 0 || reversal !== 0);
  const agent_ids = settlements.map(({ agent_id }) => agent_id);
  const scores = settled.flatMap(({ score }) => score ?? []);
  const at = clock();
  return sql.begin(async (tx) => {
    const cursor_agent = agent_ids.at(-1) ?? job.cursor_agent;
    const step = { cursor_agent, count: predictions.length, is_last, at };
    if (!(await store.moveCursor(tx, job, lease, step))) throw new NotOurs();
    await Promise.all([
      store.putScores(tx, job, { scores, n_options: countOptions(job.options), at }),
      notify(
        tx,
        settled.map((one) => noticeOf(job, one, at)),
      ),
      markStanding(tx, agent_ids, job.category),
    ]);
    if (paid.length === 0) return;
    await settleAccounts(tx, paid, { question_id: job.question_id, at });
    await noteTiers(
      tx,
      paid.map(({ agent_id }) => agent_id),
      at,
    );
  });
};

/** The sums, or the next few chunks: then another decision may have its turn. */
const workOn = async (
  deps: Deps,
  { job, lease, rest }: { job: store.Job; lease: Lease; rest: (settled: number) => Promise<void> },
): Promise<void> => {
  if (job.kind === 'resolve' && job.total > 0 && job.forecasters === 0) {
    const stated = await store.countStated(deps.sql, job.question_id);
    return store.keepSums(deps.sql, job, sumForecasts(job, stated));
  }
  const read = await store.readNext(deps.sql, job);
  let { cursor_agent } = job;
  let taken = 0;
  do {
    const predictions = read.slice(taken, taken + chunk_size);
    taken += predictions.length;
    const is_last = read.length < store.read_at_once && taken === read.length;
    await settleChunk(deps, { job: { ...job, cursor_agent }, lease, predictions, is_last });
    if (is_last) {
      const { question_id, revision, kind, total } = job;
      return deps.log.info({ question_id, revision, kind, total }, 'settling: done');
    }
    cursor_agent = predictions.at(-1)?.agent_id ?? null;
    await rest(predictions.length);
  } while (taken < read.length);
};

export const createSettling = (deps: Deps, options: SettlingOptions = {}): Service => {
  const { sql, log } = deps;
  const { poll_ms = 500, lease_seconds = 3, per_second = 3_600 } = options;
  const rest = createPacer(per_second);
  const holder = makeId();
  const set_aside = new Map<string, number>();
  let lease: Lease | undefined;

  const turn = async (): Promise<'again' | 'rest'> => {
    const now = Date.now();
    for (const [id, until_ms] of set_aside) if (until_ms <= now) set_aside.delete(id);
    const job = await store.readJob(sql, [...set_aside.keys()]);
    if (job === undefined) return 'rest';
    // A turn is much shorter than the lease, which each turn renews.
    lease = await takeLease(sql, 'settling', holder, lease_seconds);
    if (lease === undefined) return 'rest';
    try {
      await workOn(deps, { job, lease, rest });
      return 'again';
    } catch (error) {
      if (error instanceof NotOurs) {
        lease = undefined;
        return 'rest';
      }
      // The other decisions go on: the cause may last.
      if (!isOutage(error)) set_aside.set(job.question_id, Date.now() + set_aside_ms);
      throw error;
    }
  };

  const loop = makeLoop({ name: 'settling', log, every_ms: poll_ms, turn });
  return {
    ...loop,
    async stop() {
      await loop.stop();
      if (lease !== undefined) await dropLease(sql, lease).catch(() => undefined);
    },
  };
};
