import { pino } from 'pino';
import type { Sql } from '../../src/db/client.js';
import { wakeUpChannel } from '../../src/features/events/index.js';
import { makeId } from '../../src/kit/ids.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { agentOf, makeBody, type Numbered, questionOf } from '../load/fanout-events.js';

/** Commits events to the outbox and wakes the relay, as whatever causes one in the service. */
export const startLogWriter = async ({
  sql,
  redis_url,
}: {
  readonly sql: Sql;
  readonly redis_url: string;
}) => {
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'bench', log, command_timeout_ms: 1_000 });
  await connectRedis(redis);
  return {
    async write(events: readonly Numbered[]): Promise<void> {
      await sql`
        insert into outbox (id, event, question_id, agent_id, body)
        select id, 'prediction.placed', question_id, agent_id, body
        from unnest(
          ${events.map(() => makeId())}::uuid[],
          ${events.map(({ n }) => questionOf(n))}::uuid[],
          ${events.map(({ n }) => agentOf(n))}::uuid[],
          ${events.map(makeBody)}::text[]
        ) as given (id, question_id, agent_id, body)`;
      await redis.publish(wakeUpChannel('pf'), '');
    },
    close: () => closeRedis(redis),
  };
};
