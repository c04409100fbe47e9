import type { Deps } from '../../../kit/deps.js';
import { describeError } from '../../../kit/log.js';
import { createGroupCommit } from '../../../kit/pg/group-commit.js';
import { isTargetRefused, type Letter, type LetterOutcome, type Webhooks } from '../parts.js';
import { judgeAttempt } from '../rules.js';
import type { Body } from './bodies.js';
import { type BreakerRules, createBreakers, type Tried } from './breaker.js';
import { type Claimed, type Settled, type Settlement, setBreaker, settle } from './store.js';

/** Makes attempts and has them settled, many in one statement. */

export type Errand = Claimed & Body;

export interface CourierOptions {
  readonly deps: Deps;
  readonly webhooks: Webhooks;
  readonly lease_ms: number;
  readonly breaker: BreakerRules;
  /** Nothing more is to be sent to this webhook for now. */
  readonly onOpened: (webhook_id: string) => void;
  /** A webhook is to be switched off. */
  readonly onSick: () => void;
}

export interface SendingStats {
  sent: number;
  delivered: number;
  failed: number;
  breakers_opened: number;
}

export interface Courier {
  /**
   * Fulfilled when the call is over, with an endless latency when it failed; it is settled later.
   * Never rejects.
   */
  send(errand: Errand): Promise<{ readonly latency_ms: number }>;
  /** Webhooks whose breaker is being opened. */
  readonly opening: ReadonlySet<string>;
  /** Whether its breaker was opened at this time of the monotonic clock or later. */
  hasOpenedSince(webhook_id: string, since_ms: number): boolean;
  readonly stats: Readonly<SendingStats>;
  /** Settles without an attempt. */
  expire(claimed: Claimed): void;
  /** Settlements that wait for Postgres. */
  waiting(): number;
  drain(): Promise<void>;
}

const makeSettling = ({ deps, onSick }: CourierOptions) => {
  const { sql, log } = deps;
  const batcher = createGroupCommit<Settlement, Settled>({
    commit: ({ drafts }) => settle(sql, drafts),
    key: (one) => `${one.lease_id} ${one.webhook_id} ${one.event_id}`,
    one_a_key: true,
  });
  const settleOne = async (settlement: Settlement): Promise<void> => {
    const { webhook_id, event_id, state } = settlement;
    try {
      const settled = await batcher.add(settlement);
      if (settled === 'sick') onSick();
      if (settled !== 'lost') return;
      log.warn({ webhook_id, event_id, state }, 'signer: the lease was over, nothing changed');
    } catch (error) {
      // The lease runs out and the delivery is made again, with the same webhook-id.
      log.error({ webhook_id, event_id, ...describeError(error) }, 'signer: not settled');
    }
  };
  return { batcher, settleOne };
};

const makeBreaking = (
  { deps, lease_ms, breaker, onOpened }: CourierOptions,
  onOpening: () => void,
) => {
  const { sql, log } = deps;
  const breakers = createBreakers(breaker);
  const opening = new Set<string>();
  const opened = new Map<string, number>();
  const noteOpened = (webhook_id: string, now_ms: number): void => {
    for (const [id, at_ms] of opened) if (at_ms < now_ms - lease_ms) opened.delete(id);
    opened.set(webhook_id, now_ms);
  };

  /** To be awaited before the try is settled, so that it is not claimed again beside this. */
  const note = async (tried: Tried): Promise<void> => {
    const { webhook_id } = tried;
    const now_ms = performance.now();
    const change = breakers.note(tried, now_ms);
    if (change === null) return;
    if (change.trips > 0) {
      opening.add(webhook_id);
      noteOpened(webhook_id, now_ms);
      onOpened(webhook_id);
      onOpening();
      log.warn({ webhook_id, ...change }, 'signer: a webhook fails and is left alone for a while');
    }
    try {
      await setBreaker(sql, webhook_id, change);
    } catch (error) {
      log.warn({ webhook_id, ...describeError(error) }, 'signer: a breaker was not written');
    } finally {
      opening.delete(webhook_id);
    }
  };
  const hasOpenedSince = (webhook_id: string, since_ms: number): boolean =>
    (opened.get(webhook_id) ?? Number.NEGATIVE_INFINITY) >= since_ms;
  return { opening, hasOpenedSince, note };
};

export const createCourier = (options: CourierOptions): Courier => {
  const { log, clock } = options.deps;
  const { webhooks } = options;
  const { batcher, settleOne } = makeSettling(options);
  const under_way = new Set<Promise<void>>();
  const stats: SendingStats = { sent: 0, delivered: 0, failed: 0, breakers_opened: 0 };
  const breaking = makeBreaking(options, () => {
    stats.breakers_opened += 1;
  });

  const conclude = async (errand: Errand, settlement: Settlement): Promise<void> => {
    const is_success = settlement.state === 'delivered';
    stats[is_success ? 'delivered' : 'failed'] += 1;
    await breaking.note({ webhook_id: errand.webhook_id, trips: errand.trips, is_success });
    await settleOne(settlement);
  };
  const keep = (work: Promise<void>): void => {
    under_way.add(work);
    void work.then(() => under_way.delete(work));
  };

  const send = async (errand: Errand): Promise<{ latency_ms: number }> => {
    const { webhook_id } = errand;
    stats.sent += 1;
    try {
      const now_ms = clock().getTime();
      const outcome = await webhooks.send(letterOf(errand), now_ms);
      if (outcome.error === 'secret_unreadable') {
        log.error({ webhook_id }, 'signer: a secret does not open with SECRET_KEY');
      }
      const settlement = judge(errand, outcome, clock().getTime());
      keep(conclude(errand, settlement));
      if (settlement.state === 'delivered') return outcome;
    } catch (error) {
      log.error({ webhook_id, ...describeError(error) }, 'signer: a call failed');
    }
    return { latency_ms: Number.POSITIVE_INFINITY };
  };

  const expire = ({ webhook_id, event_id, lease_id }: Claimed): void => {
    const nothing = { state: 'expired', delay_ms: 0, attempt: null } as const;
    keep(settleOne({ webhook_id, event_id, lease_id, ...nothing }));
  };

  return {
    send,
    expire,
    stats,
    opening: breaking.opening,
    hasOpenedSince: breaking.hasOpenedSince,
    waiting: () => batcher.stats.waiting,
    async drain() {
      await Promise.all(under_way);
      await batcher.drain();
    },
  };
};

const letterOf = (errand: Errand): Letter => ({
  webhook_id: errand.webhook_id,
  url: errand.url,
  secret_sealed: errand.secret_sealed,
  old_secret_sealed: errand.old_secret_sealed,
  event: errand.event,
  event_id: errand.event_id,
  delivery_id: errand.id,
  attempt: errand.attempts + 1,
  offset: errand.event_offset,
  body: errand.body,
});

const judge = (errand: Errand, outcome: LetterOutcome, now_ms: number): Settlement => {
  const { status, error, retry_after, latency_ms, answer } = outcome;
  const number = errand.attempts + 1;
  const { state, delay_ms } = judgeAttempt({
    attempt: number,
    status,
    is_answered: error === null,
    is_refused: isTargetRefused(error),
    retry_after,
    now_ms,
    random: Math.random(),
  });
  const { webhook_id, event_id, lease_id } = errand;
  const attempt = { number, latency_ms, status, error, answer };
  return { webhook_id, event_id, lease_id, state, delay_ms, attempt };
};
