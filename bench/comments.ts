import type { Sql } from '../src/db/client.js';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { best_connections, block, makeClosedLoop, makeLoad } from './env/load-rounds.js';
import { agentId, questionId, seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import { type StoredTarget, startPeerTarget, startServiceTarget } from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import { type Bench, ratioOf, type Subject } from './frame/types.js';
import type { CommentRequests } from './load/comment-requests.js';

/**
 * Durable comments per second through `POST /api/questions/{id}/comments`, and votes per second
 * through `POST /api/comments/{id}/upvote`, every check on, beside the conventional design on one
 * Postgres. No agent writes or votes twice on the same thing, and no text comes twice. After each
 * round the rows are counted, and for votes the counters are added up.
 */

const agents = 10_000;
const peer_pool = 16;
/** Agents who wrote what is voted on; they do not vote. */
const authors = 64;
/** Windows are counted as ever; rounds come faster than any agent may write. */
const limit = '1000000';

type Kind = CommentRequests['kind'];

const commentId = (n: number): string => questionId(n).replace('-8003-', '-8009-');

const countRows = async (sql: Sql, kind: Kind, subjects: readonly string[]): Promise<number> => {
  const [row] =
    kind === 'comment'
      ? await sql<{ count: number }[]>`
          select count(*)::integer as count
          from comments
          where question_id = any (${subjects as string[]}::uuid[])`
      : await sql<{ count: number }[]>`
          select case when v.count = c.sum then v.count else -1 end as count
          from (
            select count(*)::integer as count
            from votes
            where subject_id = any (${subjects as string[]}::uuid[])
          ) v, (
            select sum(upvotes)::integer as sum
            from comments
            where id = any (${subjects as string[]}::uuid[])
          ) c`;
  return row?.count ?? 0;
};

const makeSubject = (
  bed: Bed,
  target: StoredTarget,
  { kind, keys_file }: { readonly kind: Kind; readonly keys_file: string },
): Subject => {
  const { sql, name } = target;
  const run = makeLoad(bed, target, {
    source: new URL('./load/comment-requests.js', import.meta.url),
    source_options: { kind },
    ...{ keys_file, agents: agents - authors },
    connections: bed.context.connections ?? best_connections,
    wanted_status: kind === 'comment' ? 201 : 200,
    idOf: kind === 'comment' ? questionId : commentId,
    countRows: (subjects) => countRows(sql, kind, subjects),
    async settle() {
      const behind = ['outbox', 'debater_changes'];
      if (name === 'service') await waitUntilEmpty(sql, behind);
      return {};
    },
  });
  return makeClosedLoop(`${name}_${kind}s`, bed.context, run);
};

const startTargets = async (bed: Bed): Promise<readonly StoredTarget[]> => {
  const service = await startServiceTarget(bed, {
    ...{ LIMIT_COMMENTS: limit, LIMIT_VOTES: limit, LIMIT_KEY: limit },
  });
  const conventional = await startPeerTarget(bed, {
    name: 'conventional',
    module: new URL('./peers/conventional.js', import.meta.url),
    env: { POOL: String(peer_pool), REDIS_URL: bed.stores.redis_url, LIMIT: limit },
  });
  return [{ ...service, groups: { cpu: service.groups.cpu } }, conventional];
};

/** The last agents wrote what is voted on, under owners who have no other agents here. */
const seedComments = async (sql: Sql, count: number): Promise<void> => {
  const ids = Array.from({ length: count }, (_, n) => commentId(n));
  const writers = ids.map((_, n) => agentId(agents - authors + (n % authors)));
  const question = questionId(count);
  await sql`
    insert into comments
      (question_id, id, agent_id, prediction_id, root_id, depth, content, body_digest, event_id,
        created_at)
    select
      ${question}::uuid, id, agent_id, id, id, 0, 'What everybody in this bench votes on, seeded.',
      sha256(id::text::bytea), gen_random_uuid(), now()
    from unnest(${ids}::uuid[], ${writers}::uuid[]) as d (id, agent_id)`;
  await sql`analyze comments`;
};

const fillDatabases = async ({ context, stores }: Bed): Promise<string> => {
  const keys = makeKeys(agents);
  const subjects = block * (context.rounds + 2);
  await stores.createDatabase('seeded');
  const sql = openPool(stores.urlOf('seeded'), 'bench');
  await seed(sql, { keys, questions: subjects + 1 });
  await seedComments(sql, subjects);
  await sql.end({ timeout: 5 });
  await stores.copyDatabase('seeded', ['service', 'conventional']);
  return writeKeys(context, keys.slice(0, agents - authors));
};

export const comments: Bench = {
  name: 'comments',
  question: 'How many durable comments, and votes, per second pass through the HTTP endpoints?',
  reduce: { rss_mb: 'max' },
  ratios: {
    comments_over_conventional: ratioOf('service_comments', 'conventional_comments'),
    votes_over_conventional: ratioOf('service_votes', 'conventional_votes'),
  },
  prepare: prepareOnBed(async (bed) => {
    const keys_file = await fillDatabases(bed);
    const targets = await startTargets(bed);
    const stageOf = (kind: Kind) => () => ({
      subjects: targets.map((target) => makeSubject(bed, target, { kind, keys_file })),
    });
    return { stages: [stageOf('comment'), stageOf('vote')] };
  }),
};
