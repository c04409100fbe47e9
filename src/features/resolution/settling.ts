import { LRUCache } from 'lru-cache';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { makeLoop } from '../../kit/loop.js';
import { isOutage } from '../../kit/outage.js';
import type { Service } from '../../kit/service.js';
import { readFits } from '../consensus/index.js';
import { dropLease, type Lease, takeLease } from '../events/index.js';
import { markStanding } from '../leaderboards/index.js';
import { noteTiers, notify } from '../notifications/index.js';
import { type Settlement, settleAccounts } from '../points/index.js';
import { net as netOf, points_rule } from '../points/rules.js';
import { scoreOverTime, scoringTime, spansOf } from '../points/time-weighting.js';
import { rangeOf } from '../questions/range.js';
import { scoreNumber } from './numbers.js';
import { type PeerScores, scorePeers } from './peer-scores.js';
import { correctIndices, countOptions } from './rules.js';
import * as store from './settling-store.js';
import { scoringTimeOf, toTimed } from './timed.js';

/**
 * Settles decisions. For each prediction of the question, in the order of agent ids, it reverses
 * the payment of an earlier revision, pays the net and stores the score. A chunk is one transaction
 * with the cursor that records the progress. So a process may be killed at any moment: a chunk
 * happens completely or not at all, and no agent is settled twice or left out.
 *
 *   decided ──a pass over all forecasts (resolve only)──▶ chunk by chunk ──▶ done
 *
 * The pass computes, in memory, the peer data that each agent's scores need. A process that takes
 * over repeats the pass. The last chunk stores the scores of families, models and the crowd.
 *
 * One timer at a time does the work, under a lease with a fence that every chunk checks. The others
 * wait for the lease to expire. Chunks are small and rate-limited, because a chunk locks accounts
 * that new predictions of the same agents need, and because clients come first. `bench -- resolve`
 * measures it.
 */
export interface SettlingOptions {
  readonly poll_ms?: number;
  readonly lease_seconds?: number;
  /** Predictions settled per second, at most. */
  readonly per_second?: number;
}

interface Settled {
  readonly settlement: Settlement;
  /** Null if the question is voided or the agent did not predict in time. */
  readonly score: store.ScoreRow | null;
}

/**
 * Computes the payment and the score. If an earlier revision paid a different net, that payment is
 * reversed first. If it paid this net, no points move; only the score gets the new revision.
 */
const settlePrediction = (
  job: store.Job,
  others: PeerScores | null,
  prediction: store.SettledPrediction,
): Settled => {
  const { agent_id, id: prediction_id, paid_net } = prediction;
  const settlementOf = (net: number): Settlement => {
    const is_paid = net === (paid_net ?? 0);
    const [reversal, paid] = is_paid ? [0, 0] : [0 - (paid_net ?? 0), net];
    return { agent_id, prediction_id, reversal, net: paid };
  };
  if (job.kind === 'resolve' && job.outcome_value !== null) {
    const score = scoreNumberOf(job, prediction, job.outcome_value);
    return { settlement: settlementOf(score?.net ?? 0), score };
  }
  const own = others === null ? null : scoreChancesOf(job, prediction);
  if (others === null || own === null) return { settlement: settlementOf(0), score: null };
  const { score, spans, last, net } = own;
  const { crowd, ...peers } = others.scoresOf(agent_id, spans, score);
  const { parts: _parts, ...figures } = score;
  return {
    settlement: settlementOf(net),
    score: {
      ...figures,
      ...peers,
      agent_id,
      prediction_id,
      net,
      stated: last.stated,
      crowd: `{${crowd.map((one) => one ?? 'null').join()}}`,
    },
  };
};

/** Scores one agent's forecasts under a decision. Returns null if none came in time. */
const scoreChancesOf = (job: store.Decided, prediction: store.SettledPrediction) => {
  const { weight, options, points_rule: rule } = job;
  const correct = correctIndices(job, options);
  const forecasts = prediction.forecasts.map((one) => toTimed(one, countOptions(options)));
  const spans = spansOf(forecasts, scoringTimeOf(job, forecasts));
  const last = spans.at(-1);
  if (last === undefined) return null;
  const score = scoreOverTime(spans, { correct, weight });
  const net = rule === points_rule ? score.net : netOf({ ...last, weight, correct, rule });
  return { score, spans, last, net };
};

/** Returns the net that a real or previewed decision pays for a prediction. */
export const netOfPrediction = (
  job: store.Decided,
  prediction: store.SettledPrediction,
): number => {
  const { outcome_value } = job;
  const score =
    outcome_value === null
      ? scoreChancesOf(job, prediction)
      : scoreNumberOf(job, prediction, outcome_value);
  return score?.net ?? 0;
};

const scoreNumberOf = (
  job: store.Decided,
  { agent_id, id: prediction_id, forecasts }: store.SettledPrediction,
  outcome_value: number,
): store.ScoreRow | null => {
  const spans = spansOf(forecasts, scoringTimeOf(job, forecasts));
  const last = spans.at(-1);
  const range = rangeOf(job);
  if (last === undefined || range === null) return null;
  const score = scoreNumber(spans, { ...job, range, outcome_value });
  return {
    ...score,
    agent_id,
    prediction_id,
    stated: last.confidence,
    relative: null,
    crowd: '{}',
    skill: null,
  };
};

const chunk_size = 40;

/** How long the job leaves a question alone after settling it failed. */
const set_aside_ms = 5_000;

/** Maximum delay that the pacer makes up for. */
const max_late_ms = 100;

/** Creates a pacer that waits to stay within the rate, and waits less if it is behind. */
const createPacer = (per_second: number) => {
  let due_ms = 0;
  return async (settled: number): Promise<void> => {
    const now = performance.now();
    due_ms = Math.max(due_ms, now - max_late_ms) + (settled * 1_000) / per_second;
    const rest_ms = due_ms - now;
    if (rest_ms > 0) await new Promise((resolve) => setTimeout(resolve, rest_ms));
  };
};

/** Ends the turn: another timer holds the lease or moved the cursor, or this timer is stopping. */
class NotOurs extends Error {}

interface Chunk {
  readonly job: store.Job;
  /** Null for a voided question, and for a number or a date. */
  readonly others: PeerScores | null;
  readonly lease: Lease;
  readonly predictions: readonly store.SettledPrediction[];
  readonly is_last: boolean;
}

const noticeOf = (
  { question_id, revision, kind }: store.Job,
  { settlement, score }: Settled,
  at: Date,
) => ({
  agent_id: settlement.agent_id,
  question_id,
  subject_id: settlement.prediction_id,
  at,
  kind: kind === 'void' ? ('prediction.voided' as const) : ('prediction.resolved' as const),
  cause: `resolution:${question_id}:${revision}`,
  details: { revision, net: score?.net ?? 0 },
});

/** Settles a chunk in one transaction, unless another timer holds the lease or moved the cursor. */
const settleChunk = ({ sql, clock }: Deps, chunk: Chunk): Promise<void> => {
  const { job, others, lease, predictions, is_last } = chunk;
  const settled = predictions.map((one) => settlePrediction(job, others, one));
  const settlements = settled.map(({ settlement }) => settlement);
  const paid = settlements.filter(({ net, reversal }) => net !== 0 || reversal !== 0);
  const agent_ids = settlements.map(({ agent_id }) => agent_id);
  const scores = settled.flatMap(({ score }) => score ?? []);
  const known = predictions.filter(({ paid_net }) => paid_net !== null);
  const n_options = countOptions(job.options);
  const at = clock();
  return sql.begin(async (tx) => {
    const cursor_agent = agent_ids.at(-1) ?? job.cursor_agent;
    const step = { cursor_agent, count: predictions.length, is_last, at };
    if (!(await store.moveCursor(tx, job, lease, step))) throw new NotOurs();
    await Promise.all([
      store.putScores(tx, job, {
        scores,
        n_options,
        at,
        known: known.map(({ agent_id }) => agent_id),
      }),
      is_last && store.putGroupScores(tx, job, { groups: others?.groups ?? [], n_options, at }),
      job.state === 'running' &&
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

interface Work {
  readonly job: store.Job;
  readonly others: PeerScores | null;
  readonly lease: Lease;
  readonly rest: (settled: number) => Promise<void>;
}

/** Settles the next few chunks. After that, another decision can have its turn. */
const workOn = async (deps: Deps, { job, others, lease, rest }: Work): Promise<'more' | 'done'> => {
  const read = await store.readNext(deps.sql, job);
  let { cursor_agent } = job;
  let taken = 0;
  do {
    const predictions = read.slice(taken, taken + chunk_size);
    taken += predictions.length;
    const is_last = read.length < store.read_at_once && taken === read.length;
    const chunk = { job: { ...job, cursor_agent }, others, lease, predictions, is_last };
    await settleChunk(deps, chunk);
    if (is_last) {
      const { question_id, revision, kind, total } = job;
      deps.log.info({ question_id, revision, kind, total }, 'settling: done');
      return 'done';
    }
    cursor_agent = predictions.at(-1)?.agent_id ?? null;
    await rest(predictions.length);
  } while (taken < read.length);
  return 'more';
};

/** Maximum number of cached passes. Small decisions are settled between chunks of a large one. */
const max_passes = 3;
const renew_every_ms = 500;
/** Allows for a pass over a question with a million forecasts. */
const longest_pass_ms = 120_000;

export const createSettling = (deps: Deps, options: SettlingOptions = {}): Service => {
  const { sql, log } = deps;
  const { poll_ms = 500, lease_seconds = 3, per_second = 4_500 } = options;
  const rest = createPacer(per_second);
  const holder = makeId();
  const set_aside = new Map<string, number>();
  let lease: Lease | undefined;
  let stopping = false;
  const passes = new LRUCache<string, PeerScores>({ max: max_passes });

  const renew = async (): Promise<Lease> => {
    lease = await takeLease(sql, 'settling', holder, lease_seconds);
    if (lease === undefined) throw new NotOurs();
    return lease;
  };

  const findPeerScores = async (job: store.Job): Promise<PeerScores | null> => {
    if (job.kind === 'void' || job.outcome_value !== null) return null;
    const key = `${job.question_id}:${job.revision}`;
    const known = passes.get(key);
    if (known !== undefined) return known;
    let renewed_ms = performance.now();
    const rest = async (): Promise<void> => {
      await new Promise(setImmediate);
      if (stopping) throw new NotOurs();
      if (performance.now() - renewed_ms < renew_every_ms) return;
      renewed_ms = performance.now();
      await renew();
    };
    const others = await sql.begin({ statement_ms: longest_pass_ms }, async (tx) => {
      const of = {
        correct: correctIndices(job, job.options),
        time: scoringTime(job),
        n_options: countOptions(job.options),
        question_type: job.question_type,
        fits: await readFits(tx),
      };
      return scorePeers(store.readForecasts(tx, job.question_id), of, rest);
    });
    passes.set(key, others);
    return others;
  };

  const turn = async (): Promise<'again' | 'rest'> => {
    const now = Date.now();
    for (const [id, until_ms] of set_aside) if (until_ms <= now) set_aside.delete(id);
    const job = await store.readJob(sql, [...set_aside.keys()]);
    if (job === undefined) return 'rest';
    try {
      // Each turn renews the lease, and a turn is much shorter than the lease.
      await renew();
      const others = await findPeerScores(job);
      const work = { job, others, lease: await renew(), rest };
      if ((await workOn(deps, work)) === 'done')
        passes.delete(`${job.question_id}:${job.revision}`);
      return 'again';
    } catch (error) {
      if (error instanceof NotOurs) {
        lease = undefined;
        return 'rest';
      }
      // The cause of the failure may last, so other decisions go first for a while.
      if (!isOutage(error)) set_aside.set(job.question_id, Date.now() + set_aside_ms);
      throw error;
    }
  };

  const loop = makeLoop({ name: 'settling', log, every_ms: poll_ms, turn });
  return {
    ...loop,
    async stop() {
      stopping = true;
      await loop.stop();
      if (lease !== undefined) await dropLease(sql, lease).catch(() => undefined);
    },
  };
};
