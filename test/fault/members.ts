import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Sql } from '../../src/db/client.js';
import type { TestService } from '../help/service.js';
import type { Teardown } from '../help/stores.js';

/**
 * Members of one durable consumer of the whole log, over HTTP and websockets, while parts are
 * killed. Occasionally a member forgets its events, as if it had been killed too. Anything that no
 * member should see is recorded as a sentence.
 */

interface Delivery {
  readonly offset: number;
  readonly data: { readonly question_id?: string };
}

export interface Members {
  readonly odd: string[];
  /** The received offsets, each with the last member that received it. */
  readonly holders: ReadonlyMap<number, string>;
  /** True if the service reports that no events are left. */
  areDone(): Promise<boolean>;
}

const path = '/api/me/consumers/faults';
const lease_seconds = 3;
const rest_ms = 100;
const forgets_one_in = 20;

/** Statuses that are expected during an outage. */
const isOutage = (status: number): boolean => status >= 502 && status <= 504;

export const startMembers = async (
  t: Teardown,
  { url, agents }: Pick<TestService, 'url' | 'agents'>,
): Promise<Members> => {
  const key = agents[0]?.key ?? '';
  const odd: string[] = [];
  const holders = new Map<number, string>();
  const asked = new Set<number>();
  /** Times when the service confirmed the acknowledgements, by offset. */
  const done_ms = new Map<number, number>();
  const of_question = new Map<string, number[]>();
  const ended = new AbortController();

  /** Returns the body of the answer. Null if the call fails or the body is empty. */
  const call = async <T>(method: string, at: string, body?: object): Promise<T | null> => {
    const answer = await fetch(url + path + at, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.any([ended.signal, AbortSignal.timeout(20_000)]),
    }).catch(() => null);
    if (answer === null) return null;
    const text = await answer.text().catch(() => '');
    if (answer.ok && text !== '') return JSON.parse(text) as T;
    if (!answer.ok && !isOutage(answer.status)) odd.push(`${at}: ${answer.status} ${text}`);
    return null;
  };

  /** Checks that a question's earlier events are done, or held by the same member. */
  const take = (member: string, { offset, data }: Delivery, sent_ms: number): void => {
    if ((done_ms.get(offset) ?? sent_ms) < sent_ms) odd.push(`${offset} came though it was done`);
    const { question_id } = data;
    if (question_id !== undefined && !holders.has(offset)) {
      const before = of_question.get(question_id) ?? [];
      if ((before.at(-1) ?? 0) > offset) odd.push(`${offset} came after ${before.at(-1)}`);
      const waiting = before.find((one) => !asked.has(one) && holders.get(one) !== member);
      if (waiting !== undefined) odd.push(`${offset} came before ${waiting} was done`);
      of_question.set(question_id, [...before, offset]);
    }
    holders.set(offset, member);
  };

  const acknowledge = async (member: string, offsets: readonly number[]): Promise<void> => {
    if (offsets.length === 0 || Math.random() < 1 / forgets_one_in) return;
    for (const offset of offsets) asked.add(offset);
    const answer = await call<{ acknowledged: number[] }>('POST', '/ack', { member, offsets });
    for (const offset of answer?.acknowledged ?? []) done_ms.set(offset, performance.now());
  };

  const byHttp = async (member: string): Promise<void> => {
    while (!ended.signal.aborted) {
      const sent_ms = performance.now();
      const wish = { member, limit: 100, wait: 5 };
      const { events = [] } = (await call<{ events: Delivery[] }>('POST', '/take', wish)) ?? {};
      for (const event of events) take(member, event, sent_ms);
      await acknowledge(
        member,
        events.map(({ offset }) => offset),
      );
      await wait(rest_ms);
    }
  };

  /** The send time of a websocket delivery is unknown. */
  const bySocket = async (member: string): Promise<void> => {
    while (!ended.signal.aborted) {
      const got: number[] = [];
      const ws = new WebSocket(`${url.replace('http', 'ws')}/ws`, {
        headers: { 'x-api-key': key },
        perMessageDeflate: false,
        handshakeTimeout: 10_000,
      });
      ws.on('message', (text) => {
        const frame = JSON.parse(String(text));
        if (frame.op === 'welcome') {
          ws.send(JSON.stringify({ op: 'consume', id: 1, consumer: 'faults', member }));
        } else if (frame.op === 'delivery') {
          take(member, frame, Number.NEGATIVE_INFINITY);
          got.push(frame.offset);
        } else if (frame.op === 'error' && !frame.retryable) odd.push(String(text));
      });
      ws.on('error', () => undefined);
      while (!ended.signal.aborted && ws.readyState <= WebSocket.OPEN) {
        await wait(rest_ms);
        await acknowledge(member, got.splice(0));
      }
      ws.terminate();
    }
  };

  const wish = { topics: ['all'], ack_wait_seconds: lease_seconds, start: 'beginning' };
  await call('PUT', '', wish);
  const running = [byHttp('first'), byHttp('second'), bySocket('third')];
  t.teardown(async () => {
    ended.abort();
    await Promise.all(running);
  });
  return {
    odd,
    holders,
    async areDone() {
      const state = await call<{ lag: number; members: unknown[] }>('GET', '');
      return state !== null && state.lag === 0 && state.members.length === 0;
    },
  };
};

/** Describes events that the members did not receive, or received incorrectly. */
export const findUntaken = async (
  sql: Sql,
  { odd, holders, areDone }: Members,
): Promise<readonly string[]> => {
  const events = await sql<{ offset: number }[]>`
    select "offset" from events where audience_id is null`;
  const missing = events.filter(({ offset }) => !holders.has(offset));
  return [
    ...odd.slice(0, 3).map((text) => `a consumer: ${text}`),
    ...(missing.length === 0 ? [] : [`a consumer: ${missing.length} events came to no member`]),
    ...((await areDone()) ? [] : ['a consumer: it is not done']),
  ];
};
