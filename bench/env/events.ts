import { pino } from 'pino';
import type { Sql } from '../../src/db/client.js';
import { wakeUpChannel } from '../../src/features/events/log-entry.js';
import { makeId } from '../../src/kit/ids.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { agentId, questionId } from './seed.js';
import type { Setup } from './setup.js';

/** Numbered events with a timestamp, each as large as the event of a real prediction. */

export interface Numbered {
  readonly n: number;
  /** Creation time in milliseconds since 1970, with a fraction. */
  readonly at: number;
}

export const nowMs = (): number => performance.timeOrigin + performance.now();

const questionOf = (n: number): string => questionId(n % 64);
/** A different agent for each event, because an agent has one forecast per question. */
const agentOf = (n: number): string => agentId(n);

/** The body of the event, as in the log. */
export const makeBody = ({ n, at }: Numbered, event = 'prediction.placed'): string =>
  JSON.stringify({
    event,
    data: {
      question_id: questionOf(n),
      prediction_id: makeId(),
      user_id: agentOf(n),
      user_name: `Bench agent ${n}`,
      model_family: 'claude',
      confidence: 50 + (n % 50),
      prediction: true,
      probability: 50 + (n % 50),
      n,
      at,
    },
    timestamp: new Date(at).toISOString(),
  });

/** The frame that a subscriber of the service gets for the event. Peers send the same frame. */
export const makeEventFrame = (event: Numbered): string =>
  `{"op":"event","topic":"all","offset":${event.n},"prev":${event.n - 1},"id":"${makeId()}",` +
  makeBody(event).slice(1);

export interface Emitted extends Numbered {
  readonly event: string;
  /** Absent if the event is public. */
  readonly audience_id?: string;
}

/** Commits events to the outbox and wakes the relay, as the service does. */
export const startEmitter = async ({ context, redis_url }: Setup, sql: Sql, prefix = 'pf') => {
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'bench', log, command_timeout_ms: 1_000 });
  await connectRedis(redis);
  context.onClose(() => closeRedis(redis));
  return async (events: readonly Emitted[]): Promise<void> => {
    const rows = events.map((one) => ({
      id: makeId(),
      event: one.event,
      body: makeBody(one, one.event),
      ...(one.audience_id === undefined
        ? { question_id: questionOf(one.n), agent_id: agentOf(one.n) }
        : { audience_id: one.audience_id }),
    }));
    await sql`
      insert into outbox (id, event, question_id, agent_id, audience_id, body)
      select id, event, question_id, agent_id, audience_id, body
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        id uuid, event text, question_id uuid, agent_id uuid, audience_id uuid, body text
      )`;
    await redis.spublish(wakeUpChannel(prefix), '');
  };
};
