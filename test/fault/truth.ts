import { createHmac } from 'node:crypto';
import type { Test } from 'tap';
import { findDifferences } from '../../src/tools/verify.js';
import { recomputeConsensus } from '../help/consensus-oracle.js';
import type { Acknowledged, Load } from '../help/load.js';
import type { Received, Receiver } from '../help/receiver.js';
import type { TestService } from '../help/service.js';
import { until } from '../help/until.js';
import { compareFollowers, type Follower, type Listener } from './listeners.js';

/**
 * What has to be true once a load is over, whatever was killed during it: every acknowledged
 * prediction is stored once and nothing else is, and points, counters, log, stream, consensus,
 * sockets and webhooks all say the same. Each look returns sentences; none when all is right.
 */

export interface Hook {
  readonly id: string;
  readonly secret: string;
  readonly path: string;
}

export interface Witnesses {
  readonly service: TestService;
  readonly load: Load;
  readonly listeners: readonly Listener[];
  /** Of single topics, on bare websockets. */
  readonly followers: readonly Follower[];
  readonly receiver: Receiver;
  readonly hook: Hook;
}

const some = <T>(all: readonly T[], say: (one: T) => string): string[] =>
  all
    .slice(0, 3)
    .map(say)
    .concat(all.length > 3 ? [`… and ${all.length - 3} more`] : []);

type Pair = Pick<Acknowledged, 'question_id' | 'agent_id'>;

const pairOf = ({ question_id, agent_id }: Pair): string => `${question_id} ${agent_id}`;

/** Acknowledged = stored, one for one. */
const compareWithStored = async (
  { sql }: Pick<TestService, 'sql'>,
  acknowledged: readonly Acknowledged[],
): Promise<string[]> => {
  const rows = await sql<(Pair & { id: string; event_id: string })[]>`
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

/** What the api says of every question equals what SQL makes of its predictions. */
const compareConsensus = async ({ url, sql, questions }: TestService): Promise<string[]> => {
  const wanted = await recomputeConsensus(sql);
  const answers = await Promise.all(
    questions.map(async ({ id }) => {
      const answer = await fetch(`${url}/api/questions/${id}/consensus`);
      const {
        offset: _,
        updated_at: __,
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

interface LoggedEvent {
  readonly offset: number;
  readonly id: string;
  readonly event: string;
  readonly body: string;
}

/** A listener that resumed after each end has heard the log itself. */
const compareHeard = (
  log: readonly LoggedEvent[],
  { name, heard, odd }: Listener,
): readonly string[] => {
  const differs = heard.findIndex(({ offset, id }, n) => {
    const event = log[n];
    return event?.offset !== offset || event.id !== id;
  });
  return [
    ...some(odd, (text) => `${name}: ${text}`),
    ...(heard.length === log.length
      ? []
      : [`${name}: ${heard.length} of ${log.length} events heard`]),
    ...(differs < 0 ? [] : [`${name}: event ${differs + 1} is not that of the log`]),
  ];
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

/** Every event was delivered with its own bytes, signed, and under its own id however often. */
const compareDelivered = (log: readonly LoggedEvent[], witnesses: Witnesses): string[] => {
  const { receiver, hook } = witnesses;
  const calls = receiver.of(hook.path);
  const by_id = new Map(calls.map((call) => [String(call.headers['webhook-id']), call]));
  const wanted = log.filter(({ event }) => event === 'prediction.placed');
  const bodies = new Map(wanted.map(({ id, body }) => [id, body]));
  const missing = wanted.filter(({ id }) => !by_id.has(id));
  const wrong = calls.filter(
    (call) =>
      bodies.get(String(call.headers['webhook-id'])) !== call.body.toString('utf8') ||
      !isSigned(call, hook.secret),
  );
  return [
    ...(missing.length === 0 ? [] : [`${missing.length} of ${wanted.length} not delivered`]),
    ...some(wrong, ({ headers }) => `delivered, but not as logged: ${headers['webhook-id']}`),
  ];
};

/** Calls beyond the first of each event. */
export const countRepeats = ({ receiver, hook }: Witnesses): number => {
  const calls = receiver.of(hook.path);
  return calls.length - new Set(calls.map(({ headers }) => headers['webhook-id'])).size;
};

const lookAt = async (what: string, look: () => Promise<readonly string[]>) => {
  try {
    return await look();
  } catch (error) {
    return [`${what} cannot be looked at: ${error}`];
  }
};

/** What comes right last, looked at cheaply: looking must not hold up what is looked at. */
const findUnfinished = async ({ service, listeners }: Witnesses): Promise<readonly string[]> => {
  const [log] = await service.sql<{ head: number; waiting: number }[]>`
    select "offset" as head, (select count(*)::integer from outbox) as waiting
    from log_head`;
  const { head = 0, waiting = 0 } = log ?? {};
  return [
    ...(waiting === 0 ? [] : [`${waiting} events wait in the outbox`]),
    ...listeners
      .filter(({ heard }) => heard.length < head)
      .map(({ name, heard }) => `${name}: ${heard.length} of ${head} events heard`),
  ];
};

const readLog = ({ sql }: TestService): PromiseLike<readonly LoggedEvent[]> =>
  sql<LoggedEvent[]>`select "offset", id, event, body from events order by "offset"`;

/** Everything that is wrong at this moment, the deliveries left out. */
const findContradictions = async (witnesses: Witnesses): Promise<readonly string[]> => {
  const { service, load, listeners, followers } = witnesses;
  const unfinished = await lookAt('what is under way', () => findUnfinished(witnesses));
  if (unfinished.length > 0) return unfinished;
  return [
    ...some(load.odd, (text) => `a client: ${text}`),
    ...(await lookAt('predictions', () => compareWithStored(service, load.acknowledged))),
    ...(await lookAt('stores', () => findDifferences(service))),
    ...(await lookAt('consensus', () => compareConsensus(service))),
    ...(await lookAt('log', async () => {
      const log = await readLog(service);
      return listeners.flatMap((listener) => compareHeard(log, listener));
    })),
    ...(await lookAt('topics', () => compareFollowers(service.sql, followers))),
  ];
};

/** What webhooks have not got, or got wrong. */
const findUndelivered = async (witnesses: Witnesses): Promise<readonly string[]> => {
  const { service, receiver, hook } = witnesses;
  return lookAt('deliveries', async () => {
    const [row] = await service.sql<{ placed: number }[]>`
      select count(*)::integer as placed from predictions`;
    const { length } = receiver.of(hook.path);
    if (length < (row?.placed ?? 0)) return [`${length} of ${row?.placed} deliveries`];
    return compareDelivered(await readLog(service), witnesses);
  });
};

/** Looks until there is nothing to find; what is found at the end. */
const untilNone = async (
  find: () => Promise<readonly string[]>,
  within_ms: number,
): Promise<readonly string[]> => {
  let found: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    found = await find();
    return found.length === 0;
  };
  await until('nothing is found', look, within_ms, 100).catch(() => undefined);
  return found;
};

/**
 * A slow machine sends what was held up at its own pace, and a delivery whose signer was lost is
 * claimed again when its lease of 30 s ends: only that it is sent is promised.
 */
const delivery_ms = 60_000;

interface Times {
  /** On the clock of `performance.now()`. */
  readonly right_ms: number;
  readonly delivered_ms: number;
}

/**
 * Waits until all is right, and then until all is delivered; what is not by then fails the test.
 */
export const awaitTruth = async (t: Test, witnesses: Witnesses, ms: number): Promise<Times> => {
  const wrong = await untilNone(() => findContradictions(witnesses), ms);
  t.same(wrong, [], `all is right within ${ms} ms`);
  const right_ms = performance.now();
  const undelivered = await untilNone(() => findUndelivered(witnesses), delivery_ms);
  t.same(undelivered, [], 'all is delivered');
  return { right_ms, delivered_ms: performance.now() };
};
