import type { Sql } from '../src/db/client.js';
import { makeKeys, prepareOnBed, waitUntilEmpty, writeKeys } from './env/bed.js';
import { best_connections, block, makeClosedLoop, makeLoad } from './env/load-rounds.js';
import { agentId, questionId, seed } from './env/seed.js';
import { startConventional, startService } from './env/service.js';
import { type Bench, ratioOf } from './frame/bench.js';

/**
 * Durable comments per second through `POST /api/questions/{id}/comments`, and votes per second
 * through `POST /api/comments/{id}/upvote`, every check on, beside the conventional design on one
 * Postgres. No agent writes or votes twice on the same subject, and no text comes twice. After each
 * round the rows are counted, and for votes the counters are added up.
 */

const all_agents = 10_000;
const peer_pool = 16;
/** The last agents wrote the comments that are voted on; they do not vote. */
const authors = 64;
const agents = all_agents - authors;

type Kind = 'comment' | 'vote';

const commentId = (n: number): string => questionId(n).replace('-8003-', '-8009-');

const countRows = async (sql: Sql, kind: Kind, subjects: readonly string[]): Promise<number> => {
  const ids = subjects as string[];
  const [row] =
    kind === 'comment'
      ? await sql<{ count: number }[]>`
          select count(*)::integer as count
          from comments
          where question_id = any (${ids}::uuid[])`
      : await sql<{ count: number }[]>`
          select case when v.count = c.sum then v.count else -1 end as count
          from (
            select count(*)::integer as count from votes where subject_id = any (${ids}::uuid[])
          ) v, (
            select sum(upvotes)::integer as sum from comments where id = any (${ids}::uuid[])
          ) c`;
  return row?.count ?? 0;
};

const seedComments = async (sql: Sql, count: number): Promise<void> => {
  const ids = Array.from({ length: count }, (_, n) => commentId(n));
  const writers = ids.map((_, n) => agentId(agents + (n % authors)));
  await sql`
    insert into comments
      (question_id, id, agent_id, prediction_id, root_id, depth, content, body_digest, event_id,
        created_at)
    select
      ${questionId(count)}::uuid, id, agent_id, id, id, 0, 'A seeded comment for the votes.',
      sha256(id::text::bytea), gen_random_uuid(), now()
    from unnest(${ids}::uuid[], ${writers}::uuid[]) as d (id, agent_id)`;
  await sql`analyze comments`;
};

export const bench: Bench = {
  name: 'comments',
  question: 'How many durable comments, and votes, per second pass through the HTTP endpoints?',
  figures: {
    comments_over_conventional: ratioOf('service_comments', 'conventional_comments'),
    votes_over_conventional: ratioOf('service_votes', 'conventional_votes'),
  },
  prepare: prepareOnBed(async (bed) => {
    const keys = makeKeys(all_agents);
    const keys_file = writeKeys(bed, keys);
    const subjects = block * (bed.context.rounds + 2);
    const fill = async (sql: Sql): Promise<void> => {
      await seed(sql, { keys, questions: subjects + 1 });
      await seedComments(sql, subjects);
    };
    await bed.createDatabase('service', fill, ['conventional']);
    const targets = [await startService(bed), await startConventional(bed, peer_pool)];
    const stageOf = (kind: Kind) => () =>
      targets.map((target) => {
        const { sql, name } = target;
        const run = makeLoad(bed, target, {
          ...{ kind, keys_file, agents, in_flight: best_connections },
          wanted_status: kind === 'comment' ? 201 : 200,
          idOf: kind === 'comment' ? questionId : commentId,
          countRows: (ids) => countRows(sql, kind, ids),
          async settle() {
            if (name === 'service') await waitUntilEmpty(sql, ['outbox', 'debater_changes']);
            return {};
          },
        });
        return makeClosedLoop(`${name}_${kind}s`, bed.context, run);
      });
    return { stages: [stageOf('comment'), stageOf('vote')] };
  }),
};
