import type { Sql } from '../../src/db/client.js';
import type { Answered } from './app.js';
import * as acts from './mixed-acts.js';
import { makeWorld, type World } from './mixed-world.js';

/**
 * A long mixture of everything that moves points, links, questions and webhooks, from many clients
 * at once on one small world, so that they meet. What a client may be refused is known; whatever
 * else comes is odd.
 */

/** How often each comes, of a thousand. */
const mixture: readonly (readonly [weight: number, name: string, act: acts.Act])[] = [
  [60, 'register', acts.register],
  [70, 'link', acts.link],
  [25, 'unlink', acts.unlink],
  [560, 'predict', acts.predict],
  [25, 'create', acts.create],
  [25, 'suggest', acts.suggest],
  [15, 'publish', acts.publish],
  [30, 'close', acts.close],
  [8, 'reopen', acts.reopen],
  [25, 'resolve', acts.resolve],
  [10, 'resolve again', acts.resolveAgain],
  [8, 'void', acts.voidOne],
  [12, 'add webhook', acts.addHook],
  [12, 'change webhook', acts.changeHook],
  [6, 'drop webhook', acts.dropHook],
  [50, 'comment', acts.comment],
  [59, 'vote', acts.vote],
];
const total_weight = mixture.reduce((sum, [weight]) => sum + weight, 0);

/** Refusals that follow from calls that meet, or from rules that the clients do not know. */
const expected = new Set([
  'ACCOUNT_SUSPENDED',
  'AGENT_ALREADY_LINKED',
  'AGENT_NOT_FOUND',
  'AGENT_NOT_LINKED',
  'COMMENT_LIMIT_REACHED',
  'DUPLICATE_PREDICTION',
  'INVALID_TRANSITION',
  'NOT_FOUND',
  'QUESTION_NOT_FOUND',
  'QUESTION_NOT_OPEN',
  'SAME_OWNER_VOTE',
  'SUGGESTION_LIMIT_REACHED',
  'TIER_REQUIRED',
  'WEBHOOK_LIMIT_REACHED',
  'WEBHOOK_NOT_FOUND',
]);

export interface MixedOptions {
  readonly url: string;
  readonly sql: Sql;
  readonly operations: number;
  readonly clients: number;
  readonly seed: number;
  /** Told now and then how many operations are done. */
  readonly onProgress?: (done: number) => void;
}

export interface MixedResult {
  /** How often each operation was answered well, and how often refused. */
  readonly counts: ReadonlyMap<string, { good: number; refused: number }>;
  /** Answers that no client should get, as sentences, some of them. */
  readonly odd: readonly string[];
  readonly placed: number;
  readonly seconds: number;
}

const draw = (world: World): (typeof mixture)[number] => {
  let at = world.random() * total_weight;
  for (const one of mixture) {
    at -= one[0];
    if (at < 0) return one;
  }
  return mixture[0] as (typeof mixture)[number];
};

const whyOdd = ({ status, body }: Answered): string | null => {
  if (status < 300 || (status < 500 && expected.has(body?.code))) return null;
  return `${status} ${JSON.stringify(body).slice(0, 200)}`;
};

const begin = async (world: World): Promise<void> => {
  for (let n = 0; n < 40; n += 1) await acts.register(world);
  for (let n = 0; n < 60; n += 1) await acts.link(world);
  for (let n = 0; n < 20; n += 1) await acts.create(world);
};

export const runMixed = async (options: MixedOptions): Promise<MixedResult> => {
  const { operations, clients, onProgress } = options;
  const world = await makeWorld(options.url, options.sql, options.seed);
  await begin(world);
  const counts = new Map<string, { good: number; refused: number }>();
  const odd: string[] = [];
  const started_ms = performance.now();
  let done = 0;
  const runClient = async (): Promise<void> => {
    while (done < operations) {
      const [, name, act] = draw(world);
      const answer = await act(world);
      if (answer === null) continue;
      done += 1;
      if (done % 1_000 === 0) onProgress?.(done);
      const why = whyOdd(answer);
      if (why !== null && odd.length < 50) odd.push(`${name}: ${why}`);
      const count = counts.get(name) ?? { good: 0, refused: 0 };
      count[answer.status < 300 ? 'good' : 'refused'] += 1;
      counts.set(name, count);
    }
  };
  await Promise.all(Array.from({ length: clients }, runClient));
  const seconds = (performance.now() - started_ms) / 1_000;
  return { counts, odd, placed: world.predictions.length, seconds };
};

export const describeMixed = ({ counts, placed, seconds }: MixedResult): string => {
  const each = [...counts].map(([name, { good, refused }]) => `${name} ${good}+${refused}`);
  return `${placed} predictions; ${each.join(', ')} (answered + refused) in ${seconds.toFixed(0)} s`;
};

/** Everything in its way off: the limits are not what this is about. */
export const mixed_env = {
  LIMIT_IP: '100000000',
  LIMIT_KEY: '100000000',
  LIMIT_REGISTER: '100000000',
  LIMIT_LOGIN: '100000000',
  LIMIT_PREDICTIONS: '100000000',
  LIMIT_COMMENTS: '100000000',
  LIMIT_VOTES: '100000000',
  LIMIT_WEBHOOKS: '100000000',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
};
