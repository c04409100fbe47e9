import { createHmac } from 'node:crypto';
import type { Test } from 'tap';
import { findDifferences } from '../../src/tools/verify.js';
import { recomputeConsensus } from '../help/consensus-oracle.js';
import type { Acknowledged, Load } from '../help/load.js';
import type { Received, Receiver } from '../help/receiver.js';
import type { TestService } from '../help/service.js';
import { allow, untilNone } from '../help/until.js';
import { findMisheard, type Listener } from './listeners.js';
import { findUntaken, type Members } from './members.js';

/**
 * Conditions that must hold after a load with any faults. Every acknowledged prediction is stored
 * exactly once, and no other. Points, counters, log, stream, consensus, sockets, consumers and
 * webhooks all agree. Each check returns sentences, or nothing if all is right.
 */

export interface Witnesses {
  readonly service: TestService;
  readonly load: Load;
  readonly listeners: readonly Listener[];
  readonly members: Members;
  readonly receiver: Receiver;
  readonly hook: { readonly id: string; readonly secret: string; readonly path: string };
}

const some = <T>(all: readonly T[], say: (one: T) => string): string[] =>
  all
    .slice(0, 3)
    .map(say)
    .concat(all.length > 3 ? [`… and ${all.length - 3} more`] : []);

type Pair = Pick<Acknowledged, 'question_id' | 'agent_id'>;

const pairOf = ({ question_id, agent_id }: Pair): string => `${question_id} ${agent_id}`;

/** Acknowledged and stored predictions match one to one. */
const compareWithStored = async ({ service, load }: Witnesses): Promise<string[]> => {
  const { acknowledged } = load;
  const rows = await service.sql<(Pair & { id: string; event_id: string })[]>`
    select id, question_id, agent_id, event_id from predictions`;
  const stored = new Map(rows.map((row) => [pairOf(row), row]));
  const known = new Set(acknowledged.map(pairOf));
  const lost = acknowledged.filter((one) => {
    const row = stored.get(pairOf(one));
    return row?.id !== one.prediction_id || row.event_id !== one.event_id;
  });
  const invented = rows.filter((row) => !known.has(pairOf(row)));
  return [
    ...some(lost, (one) => `acknowledged and not stored as such: ${JSON.stringify(one)}`),
    ...some(invented, (row) => `stored and never acknowledged: ${row.id}`),
    ...(known.size === acknowledged.length ? [] : ['two acknowledgements of one pair']),
  ];
};

/** The api's consensus of every question equals the one that SQL computes. */
const compareConsensus = async ({ url, sql, questions }: TestService): Promise<string[]> => {
  const wanted = await recomputeConsensus(sql);
  const answers = await Promise.all(
    questions.map(async ({ id }) => {
      const answer = await fetch(`${url}/api/questions/${id}/consensus`);
      const {
        offset: _,
        updated_at: __,
        scale: ___,
        ...rest
      } = (await answer.json()) as Record<string, unknown>;
      return [id, JSON.stringify(rest)] as const;
    }),
  );
  return some(
    answers.filter(([id, text]) => text !== JSON.stringify(wanted.get(id))),
    ([id, text]) => `consensus:\n  ${text}\n  SQL: ${JSON.stringify(wanted.get(id))}`,
  );
};

const isSigned = ({ headers, body }: Received, secret: string): boolean => {
  const key = Buffer.from(secret, 'ascii');
  const stamp = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const standard = createHmac('sha256', key).update(stamp).update(body).digest('base64');
  const plain = createHmac('sha256', key).update(body).digest('hex');
  return (
    headers['webhook-signature'] === `v1,${standard}` &&
    headers['x-svc-signature'] === `sha256=${plain}`
  );
};

export const deliveredIds = ({ receiver, hook }: Witnesses): readonly string[] =>
  receiver.of(hook.path).map(({ headers }) => String(headers['webhook-id']));

/** Number of repeated deliveries: for each event, all calls except the first. */
export const countRepeats = (witnesses: Witnesses): number => {
  const ids = deliveredIds(witnesses);
  return ids.length - new Set(ids).size;
};

/** Cheap checks of the parts that are right last, so that checking does not slow them down. */
const findUnfinished = async ({ service, listeners }: Witnesses): Promise<readonly string[]> => {
  const [log] = await service.sql<{ head: number; waiting: number }[]>`
    select
      (select count(*)::integer from events where audience_id is null) as head,
      (select count(*)::integer from outbox) as waiting`;
  const { head = 0, waiting = 0 } = log ?? {};
  const late = listeners.filter(({ wish, heard }) => {
    return JSON.stringify(wish) === '{"topic":"all"}' && heard.length < head;
  });
  return [
    ...(waiting === 0 ? [] : [`${waiting} events wait in the outbox`]),
    ...late.map(({ name, heard }) => `${name}: ${heard.length} of ${head} events heard`),
  ];
};

/** Everything that is wrong at this moment, except deliveries. */
const findContradictions = async (witnesses: Witnesses): Promise<readonly string[]> => {
  const unfinished = await findUnfinished(witnesses);
  if (unfinished.length > 0) return unfinished;
  const { service, load, listeners, members } = witnesses;
  return [
    ...some(load.odd, (text) => `a client: ${text}`),
    ...(await compareWithStored(witnesses)),
    ...(await findDifferences(service)),
    ...(await compareConsensus(service)),
    ...(await findMisheard(service.sql, listeners)),
    ...(await findUntaken(service.sql, members)),
  ];
};

/** Every event was delivered with its own bytes, signed, and with the same id in every attempt. */
const findUndelivered = async (witnesses: Witnesses): Promise<readonly string[]> => {
  const { service, receiver, hook, load } = witnesses;
  const missing = new Set(load.acknowledged.map(({ event_id }) => event_id));
  for (const id of deliveredIds(witnesses)) missing.delete(id);
  if (missing.size > 0) return [`${missing.size} of ${load.acknowledged.length} not delivered`];
  const events = await service.sql<{ id: string; body: string }[]>`
    select id, body from events where event = 'prediction.placed'`;
  const bodies = new Map(events.map(({ id, body }) => [id, body]));
  const wrong = receiver.of(hook.path).filter((call) => {
    const body = bodies.get(String(call.headers['webhook-id']));
    return body !== call.body.toString('utf8') || !isSigned(call, hook.secret);
  });
  return some(wrong, ({ headers }) => `delivered, but not as logged: ${headers['webhook-id']}`);
};

/** A slow machine may send delayed deliveries late. Only the delivery itself is promised. */
const delivery_ms = 60_000;

interface Times {
  /** On the clock of `performance.now()`. */
  readonly right_ms: number;
  readonly delivered_ms: number;
}

/**
 * Waits until everything is right, and then until everything is delivered. The test fails if that
 * takes too long.
 */
export const awaitTruth = async (t: Test, witnesses: Witnesses, ms: number): Promise<Times> => {
  const within_ms = allow(ms);
  const wrong = await untilNone(() => findContradictions(witnesses), within_ms);
  t.same(wrong, [], `all is right within ${within_ms} ms`);
  const right_ms = performance.now();
  const undelivered = await untilNone(() => findUndelivered(witnesses), allow(delivery_ms));
  t.same(undelivered, [], 'all is delivered');
  return { right_ms, delivered_ms: performance.now() };
};
