import { setTimeout as wait } from 'node:timers/promises';
import { makeReasoning } from '../../bench/load/predict-texts.js';
import type { Sql } from '../../src/db/client.js';
import type { Acknowledged } from '../help/load.js';
import type { SeededAgent, SeededQuestion } from '../help/service.js';

/**
 * Calls that accompany predictions: comments, votes and reads. Comments and votes are repeated
 * until they are answered, and the answers are remembered. A read may fail only with 503 or without
 * an answer.
 */

export interface CallsOptions {
  /** Read before every try. */
  readonly url: string;
  readonly agents: readonly SeededAgent[];
  readonly questions: readonly SeededQuestion[];
  /** Predictions that can be voted on. */
  readonly acknowledged: readonly Acknowledged[];
  readonly random: () => number;
}

interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly agent: SeededAgent;
  readonly body?: string;
  readonly key?: string;
}

const try_ms = 10_000;
const give_up_ms = 60_000;
const again_ms = 200;
/** Number of agents per owner, who do not vote on each other. See `bench/env/seed.ts`. */
const owned = 4;

const ballots = [
  { method: 'POST', direction: 'upvote', value: 1 },
  { method: 'POST', direction: 'downvote', value: -1 },
  { method: 'DELETE', direction: 'upvote', value: 0 },
] as const;

const sameSet = (what: string, wanted: ReadonlySet<string>, found: ReadonlySet<string>) => {
  const lost = [...wanted].filter((one) => !found.has(one));
  const invented = [...found].filter((one) => !wanted.has(one));
  return [
    ...(lost.length === 0 ? [] : [`${lost.length} ${what} lost, such as ${lost[0]}`]),
    ...(invented.length === 0 ? [] : [`${invented.length} ${what} never made: ${invented[0]}`]),
  ];
};

export const startCalls = (options: CallsOptions) => {
  const { agents, questions, acknowledged, random } = options;
  const counts = new Map<string, number>();
  const comments = new Set<string>();
  const votes = new Map<string, number>();
  const odd: string[] = [];
  let is_over = false;
  let commented = 0;

  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;

  /** The answer, or null if there is none. */
  const tryOnce = async (kind: string, { method, path, agent, body, key }: Call) => {
    const count = (outcome: string): void => {
      const name = `${kind} ${outcome}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    };
    try {
      const answer = await fetch(options.url + path, {
        method,
        signal: AbortSignal.timeout(try_ms),
        headers: {
          'x-api-key': agent.key,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body }),
      });
      const text = await answer.text();
      count(String(answer.status));
      return { status: answer.status, text };
    } catch {
      count('no answer');
      return null;
    }
  };

  /** Repeats the call until it is answered. Records an unexpected answer and returns null. */
  const insist = async (kind: string, call: Call): Promise<string | null> => {
    const end_ms = performance.now() + give_up_ms;
    for (;;) {
      const answer = await tryOnce(kind, call);
      const { status = 503, text = '' } = answer ?? {};
      if (status === 200 || status === 201) return text;
      const is_again = status === 503 || text.includes('IDEMPOTENCY_IN_PROGRESS');
      if (!is_again || performance.now() > end_ms) {
        odd.push(`${call.method} ${call.path} was answered ${status}: ${text.slice(0, 200)}`);
        return null;
      }
      await wait(again_ms);
    }
  };

  const comment = async (): Promise<void> => {
    const n = commented;
    commented += 1;
    const question = questions[(n + Math.floor(n / agents.length)) % questions.length];
    const text = await insist('comment', {
      method: 'POST',
      path: `/api/questions/${question?.id}/comments`,
      key: `soak ${n}`,
      agent: agents[n % agents.length]!,
      body: JSON.stringify({ content: makeReasoning(1e6 + n).slice(0, 400) }),
    });
    if (text !== null) comments.add(JSON.parse(text).comment.id);
  };

  /** Two clients never share a voter. */
  const vote = async (client: number): Promise<void> => {
    const subject = pick(acknowledged);
    const at = 2 * Math.floor((random() * agents.length) / 2) + client;
    const voter = agents[at];
    const author = agents.findIndex(({ id }) => id === subject?.agent_id);
    if (subject === undefined || voter === undefined) return;
    if (Math.floor(at / owned) === Math.floor(author / owned)) return;
    const { method, direction, value } = pick(ballots);
    const path = `/api/predictions/${subject.prediction_id}/${direction}`;
    const pair = `${subject.prediction_id} ${voter.id}`;
    if ((await insist('vote', { method, path, agent: voter })) === null) return;
    // Only the vote in the named direction is removed.
    if (value !== 0) votes.set(pair, value);
    else if (votes.get(pair) === 1) votes.delete(pair);
  };

  const read = async (): Promise<void> => {
    const { id } = pick(questions);
    const path = pick([
      '/',
      `/questions/${id}`,
      '/leaderboard',
      '/api/questions',
      `/api/questions/${id}`,
      `/api/questions/${id}/consensus`,
      `/api/questions/${id}/predictions`,
      '/api/leaderboard',
      `/api/questions/${id}/comments`,
      '/api/me',
      '/api/discussions',
    ]);
    const answer = await tryOnce('read', { method: 'GET', path, agent: pick(agents) });
    if (answer === null || answer.status === 200 || answer.status === 503) return;
    odd.push(`GET ${path} was answered ${answer.status}: ${answer.text.slice(0, 200)}`);
  };

  const repeat = async (work: () => Promise<void>, every_ms: number): Promise<void> => {
    while (!is_over) {
      await work();
      await wait(every_ms * (0.5 + random()));
    }
  };
  let running: Promise<unknown> = Promise.resolve();
  return {
    /** How many times each kind of call ended in each way. */
    counts: counts as ReadonlyMap<string, number>,
    resume() {
      is_over = false;
      running = Promise.all([
        ...[0, 1].map(() => repeat(comment, 400)),
        ...[0, 1].map((client) => repeat(() => vote(client), 200)),
        ...[0, 1, 2].map(() => repeat(read, 150)),
      ]);
    },
    async stop(): Promise<void> {
      is_over = true;
      await running;
    },
    /** Acknowledged writes that are not stored, stored rows without an answer, and odd answers. */
    async findWrong(sql: Sql): Promise<readonly string[]> {
      const stored = await sql<{ id: string }[]>`select id from comments`;
      const cast = await sql<{ vote: string }[]>`
        select concat_ws(' ', subject_id, agent_id, value) as vote
        from votes where kind = 'prediction'`;
      return [
        ...odd.slice(0, 3),
        ...sameSet('comments', comments, new Set(stored.map(({ id }) => id))),
        ...sameSet(
          'votes',
          new Set([...votes].map(([pair, value]) => `${pair} ${value}`)),
          new Set(cast.map((row) => row.vote)),
        ),
      ];
    },
  };
};
