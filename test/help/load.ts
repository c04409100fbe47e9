import { setTimeout as wait } from 'node:timers/promises';
import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { SeededAgent, SeededQuestion } from './service.js';
import { until } from './until.js';

/**
 * Sends predictions the way careful agents do. A call without an answer (no connection, 503,
 * timeout) is repeated with the same body until it is answered. Every second call has an
 * Idempotency-Key. Each pair of agent and question occurs once, and all answers are remembered.
 */

export interface Acknowledged {
  readonly question_id: string;
  readonly agent_id: string;
  readonly prediction_id: string;
  readonly event_id: string;
  /** True if the response says that it repeats an earlier answer. */
  readonly replayed: boolean;
  readonly tries: number;
  readonly waited_ms: number;
}

export interface LoadOptions {
  /** Read before every try, so a getter can spread the tries over several hosts. */
  readonly url: string;
  readonly agents: readonly SeededAgent[];
  readonly questions: readonly SeededQuestion[];
  /** Set if a proxy resends requests that a dead host left unanswered. */
  readonly balancer?: object | null;
  readonly clients?: number;
  /** Number of the first pair. A later load starts after the pairs of an earlier one. */
  readonly first?: number;
}

const try_ms = 4_000;
const give_up_ms = 45_000;
const after_broken_ms = 50;

interface Pair {
  readonly agent: SeededAgent;
  readonly question: SeededQuestion;
  readonly body: string;
  /** Set for every second pair. */
  readonly key: string | null;
}

/** States one option with a confidence, or all probabilities: the next option gets the rest. */
export const stateOption = (options: readonly string[], n: number, confidence: number) => {
  const at = n % options.length;
  if (n % 2 === 0) return { selected_option: options[at], confidence };
  const percents = options.map((_, other) =>
    other === at ? confidence : other === (at + 1) % options.length ? 100 - confidence : 0,
  );
  return { probabilities: Object.fromEntries(options.map((one, other) => [one, percents[other]])) };
};

const makePair = ({ agents, questions }: LoadOptions, n: number): Pair | undefined => {
  if (n >= agents.length * questions.length) return undefined;
  const turn = Math.floor(n / agents.length);
  const agent = agents[n % agents.length] as SeededAgent;
  const question = questions[((n % agents.length) + turn) % questions.length] as SeededQuestion;
  const { options } = question;
  const confidence = makeConfidence(n);
  const stated =
    options.length > 0
      ? stateOption(options, n + turn, confidence)
      : n % 5 === 0
        ? { probability: 100 - confidence }
        : { prediction: n % 3 !== 0, confidence };
  const body = JSON.stringify({ ...stated, reasoning: makeReasoning(n) });
  return { agent, question, body, key: n % 2 === 0 ? `load ${n}` : null };
};

/** Returns an answer, or the delay in ms before the same request should be sent again. */
const tryOnce = async (url: string, { agent, question, body, key }: Pair) => {
  try {
    const answer = await fetch(`${url}/api/questions/${question.id}/predict`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': agent.key,
        ...(key === null ? {} : { 'idempotency-key': key }),
      },
      body,
      signal: AbortSignal.timeout(try_ms),
    });
    const { status, headers } = answer;
    const text = await answer.text();
    // After a kill the key stays reserved until its lease ends.
    const is_running = status === 409 && text.includes('IDEMPOTENCY_IN_PROGRESS');
    // A proxy answers this if a host died in the middle of a call.
    if (status === 502 || status === 504) return after_broken_ms;
    if (status === 503 || (key !== null && is_running)) {
      return Math.min(1, Number(headers.get('retry-after') ?? '1')) * 1_000;
    }
    return { status, replayed: headers.get('idempotency-replayed') === 'true', text };
  } catch {
    return after_broken_ms;
  }
};

/** Returns the acknowledgement, or a sentence that describes an unexpected answer. */
const place = async (options: LoadOptions, pair: Pair): Promise<Acknowledged | string> => {
  const { agent, question } = pair;
  const started_ms = performance.now();
  for (let tries = 1; ; tries += 1) {
    const answer = await tryOnce(options.url, pair);
    const waited_ms = performance.now() - started_ms;
    if (typeof answer === 'number') {
      if (waited_ms > give_up_ms) return `no answer within ${give_up_ms} ms and ${tries} tries`;
      await wait(answer);
      continue;
    }
    const { status, replayed, text } = answer;
    // A replayed answer needs an earlier try, by this client or by the proxy. Any other answer must
    // be a 201.
    const is_due = replayed ? tries > 1 || options.balancer : status === 201;
    if (!is_due || (status !== 200 && status !== 201)) {
      return `try ${tries} was answered ${status}: ${text.slice(0, 300)}`;
    }
    const { prediction, event_id } = JSON.parse(text);
    const ids = { question_id: question.id, agent_id: agent.id, prediction_id: prediction.id };
    return { ...ids, event_id, replayed, tries, waited_ms };
  }
};

export type Load = ReturnType<typeof makeLoad>;

/** A load that `resume` starts. It does not catch up on predictions missed in an outage. */
export const makeLoad = (options: LoadOptions) => {
  const { clients = 16 } = options;
  const acknowledged: Acknowledged[] = [];
  const odd: string[] = [];
  let next = options.first ?? 0;
  let per_second = 400;
  let stopped = true;
  let due_ms = 0;
  let running: Promise<unknown> = Promise.resolve();

  /** Waits until the next call is due. If calls are late, they are not made up later. */
  const untilDue = async (): Promise<void> => {
    const now_ms = performance.now();
    due_ms = Math.max(due_ms + 1_000 / per_second, now_ms);
    if (due_ms > now_ms) await wait(due_ms - now_ms);
  };

  const runClient = async (): Promise<void> => {
    for (;;) {
      await untilDue();
      const pair = makePair(options, next);
      if (stopped || pair === undefined) return;
      next += 1;
      const result = await place(options, pair);
      if (typeof result === 'string') odd.push(result);
      else acknowledged.push(result);
    }
  };

  /** Waits until there are this many answers. Rejects after `within_ms`. */
  const reach = async (count: number, within_ms = 30_000): Promise<void> => {
    const isReached = () => acknowledged.length >= count;
    await until(`${count} answers`, isReached, within_ms).catch((error: Error) => {
      throw new Error([`${acknowledged.length}: ${error.message}`, ...odd.slice(0, 3)].join('; '));
    });
  };
  return {
    acknowledged,
    /** Descriptions of answers that no client should ever get. */
    odd: odd as readonly string[],
    /** Continues with the next pair after a stop. `rate` is requests per second in total. */
    resume(rate = per_second) {
      per_second = rate;
      if (!stopped) return;
      stopped = false;
      running = Promise.all(Array.from({ length: clients }, runClient));
    },
    reach,
    more: (count: number, within_ms?: number) => reach(acknowledged.length + count, within_ms),
    /** Sends nothing new and waits until every sent request is answered. */
    async stop() {
      stopped = true;
      await running;
    },
  };
};

export const startLoad = (options: LoadOptions): Load => {
  const load = makeLoad(options);
  load.resume();
  return load;
};
