import type { Sql } from '../src/db/client.js';
import { best_connections, block, makeClosedLoop, makeLoad } from './env/load-rounds.js';
import { agentId, questionId } from './env/seed.js';
import { startForum, startPeer } from './env/setup.js';
import { type Bench, ratioOf } from './frame/bench.js';

/**
 * Durable comments per second through `POST /api/questions/{id}/comments`, and votes per second
 * through `POST /api/comments/{id}/upvote`. Every check is on. The peer is the conventional design
 * on the same Postgres. No agent writes or votes twice on the same subject, and no text occurs
 * twice. After each round the rows are counted. For votes, the counters must agree.
 */

const all_agents = 10_000;
const peer_pool = 16;
/** The last agents wrote the comments. The other agents vote on them. */
const authors = 64;
const agents = all_agents - authors;

const commentId = (n: number): string => questionId(n).replace('-8003-', '-8009-');

export const countComments = async (sql: Sql, ids: readonly string[]): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::integer as count
    from comments
    where question_id = any (${ids as string[]}::uuid[])`;
  return row!.count;
};

/** Returns the number of votes, or -1 if the sum of the comments' counters differs from it. */
const countVotes = async (sql: Sql, ids: readonly string[]): Promise<number> => {
  const [row] = await sql<{ votes: number; counters: number }[]>`
    select
      (select count(*)::integer from votes where subject_id = any (d.ids)) as votes,
      (select sum(upvotes)::integer from comments where id = any (d.ids)) as counters
    from (select ${ids as string[]}::uuid[] as ids) d`;
  return row!.votes === row!.counters ? row!.votes : -1;
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
};

export const bench: Bench = {
  question: 'How many durable comments, and votes, per second do the HTTP endpoints accept?',
  figures: {
    comments_over_conventional: {
      of: ratioOf('service_comments', 'conventional_comments'),
      min: 4,
    },
    votes_over_conventional: { of: ratioOf('service_votes', 'conventional_votes'), min: 4 },
  },
  async prepare(context) {
    const subjects = 4 * block * (context.rounds + 2);
    const { setup, keys_file, service } = await startForum(context, {
      agents: all_agents,
      questions: subjects + 1,
      copies: ['conventional'],
      fill: (sql) => seedComments(sql, subjects),
    });
    const env = { POOL: String(peer_pool) };
    const targets = [service, await startPeer(setup, { name: 'conventional', env })];
    const stageOf = (kind: 'comment' | 'vote') => () =>
      targets.map((target) => {
        const run = makeLoad(setup, target, {
          kind,
          keys_file,
          agents,
          in_flight: best_connections,
          idOf: kind === 'comment' ? questionId : commentId,
          countRows: kind === 'comment' ? countComments : countVotes,
        });
        return makeClosedLoop(`${target.name}_${kind}s`, context, run);
      });
    return [stageOf('comment'), stageOf('vote')];
  },
};
