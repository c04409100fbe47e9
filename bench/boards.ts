import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Sql } from '../src/db/client.js';
import { ensureImportOwner } from '../src/features/accounts/index.js';
import { findBoardDifferences } from '../src/features/leaderboards/index.js';
import { closeRedis, connectRedis, openRedis } from '../src/redis/client.js';
import { agentId, questionId } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, figureOf, type Subject } from './frame/bench.js';
import { latenciesOf } from './load/load.js';

/**
 * Measures how long a leaderboard page takes with a million scores, and a directory page with a
 * million agents. First every board in Redis is compared with a recomputation in SQL. The bench
 * fails if they differ. It reads one page after another, so that no page comes from a cache.
 */

const forecasters = 20_000;
const forecasts_each = 50;
const on_a_question = 100;
const longest_ms = 900_000;

const startOf = (id: string): string => id.slice(0, 24);

/** Adds scores as settling stores them: a hundred random agents per question, about fifty each. */
const addScores = async (sql: Sql, agents: number): Promise<void> => {
  const total = agents * forecasts_each;
  await sql`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, skill, net, resolved_at, settled_at
    )
    select
      (${startOf(questionId(0))} || lpad(to_hex(q), 12, '0'))::uuid,
      (${startOf(agentId(0))} || lpad(to_hex(a), 12, '0'))::uuid,
      gen_random_uuid(), 1, (array['technology', 'industry', 'society'])[1 + q % 3], 'binary', 2,
      share, 10000 * greatest(share, 1 - share), share > 0.5, share >= 0.5, (1 - share) ^ 2,
      ln(share), 100 * (1 + ln(share) / ln(2)), 100 * (ln(share) + 0.7), 0.2 - (1 - share) ^ 2,
      round(100 * (1 - 4 * (1 - share) ^ 2)), at, at
    from (
      select
        q, a, 0.02 + 0.96 * random() ^ (0.4 + a % 10 / 10.0) as share,
        now() - q % 60 * interval '1 day' as at
      from (
        select n / ${on_a_question}::integer as q, floor(random() * ${agents}::integer)::integer as a
        from generate_series(0, ${total - 1}::integer) as n
      ) placed
    ) made
    on conflict do nothing`;
  await sql`
    insert into group_scores (
      question_id, kind, name, revision, category, question_type, n_options, n_agents, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, resolved_at, settled_at
    )
    select
      s.question_id, g.kind, g.name, 1, category, question_type, n_options, count(*), share,
      10000 * greatest(share, 1 - share), share > 0.5, share >= 0.5, (1 - share) ^ 2, ln(share),
      100 * (1 + ln(share) / ln(2)), 100 * (ln(share) + 0.7), resolved_at, settled_at
    from scores s
    join agents a on a.id = s.agent_id
    cross join lateral (
      values ('family', a.model_family), ('model', a.model), ('crowd', 'crowd'), ('even', 'even')
    ) as g (kind, name)
    cross join lateral (select case g.kind when 'even' then 0.5 else 0.1 + 0.8 * random() end as share) r
    group by s.question_id, g.kind, g.name, category, question_type, n_options, resolved_at, settled_at, share
    on conflict do nothing`;
};

/** Adds imported agents. The directory and the boards list them separately. */
const addImported = async (sql: Sql, count: number): Promise<void> => {
  const owner_id = await ensureImportOwner(sql);
  await sql`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
      referral_code, owner_id, linked_at, key_digest
    )
    select
      ('01910000-0000-7000-8004-' || lpad(to_hex(n), 12, '0'))::uuid, name, lower(name), 'gpt-5',
      case when n % 1000 = 0 then 'kimi' when n % 2 = 0 then 'gpt' else 'claude' end,
      'data_driven', 'moderate', '{predictor}', 'imported' || n,
      ${owner_id}::uuid, now(), sha256(int8send(n))
    from generate_series(1, ${count}::bigint) as n,
      lateral (select 'Forecaster ' || left(md5(n::text), 12) || ' ' || n as name) named`;
  await sql`
    insert into accounts (agent_id, balance)
    select id, 5000 from agents on conflict do nothing`;
  await sql`
    insert into standings (agent_id, kind, net, resolved, correct, accuracy_low)
    select id, 'imported', 0, 0, 0, 0
    from agents
    where owner_id = ${owner_id}`;
  await sql`vacuum analyze`;
};

const walks = {
  agents_points: '/api/leaderboard?by=points',
  agents_relative: '/api/leaderboard?by=relative&period=30d&category=society',
  families: '/api/leaderboard?by=brier&of=families',
  adjusted: '/api/leaderboard?by=adjusted',
  directory: '/api/agents?kind=imported&sort=points',
  directory_family: '/api/agents?kind=imported&sort=points&family=kimi',
  directory_name: '/api/agents?kind=imported&sort=points&q=forecaster+77777',
  directory_names: '/api/agents?kind=imported&sort=points&q=forecaster',
} as const;

/** Boards in Redis end after this many pages. Further pages are read from Postgres. */
const max_pages = 100;

const walk = (port: number, path: string): Subject['round'] => {
  let asked = 0;
  return async () => {
    const taken_ms: number[] = [];
    let cursor = '';
    for (let page = 0; page < max_pages; page += 1) {
      asked += 1;

      const url = `http://127.0.0.1:${port}${path}&limit=100${cursor}&ask=${asked}`;
      const started_ms = performance.now();
      const response = await fetch(url);
      const text = await response.text();
      taken_ms.push(performance.now() - started_ms);
      if (response.status !== 200)
        throw new Error(`${url} was answered ${response.status}: ${text}`);
      const { next_cursor, total } = JSON.parse(text);
      if (total === 0) throw new Error(`${url} lists nothing.`);
      cursor = next_cursor === null ? '' : `&cursor=${next_cursor}`;
    }
    return latenciesOf(taken_ms);
  };
};

export const bench: Bench = {
  question: 'How long does a page of a board take, with a million scores or a million agents?',
  figures: Object.fromEntries(
    Object.keys(walks).map((name) => [`${name}_p50_ms`, { of: figureOf(name, 'p50_ms'), max: 20 }]),
  ),
  async prepare(context) {
    const agents = context.quick ? forecasters / 10 : forecasters;
    const { setup, service } = await startForum(context, {
      agents,
      questions: 1,
      fill: (sql) => addScores(sql, agents),
    });
    const { sql, port } = service;
    const redis = openRedis({
      url: setup.redis_url,
      name: 'bench',
      log: pino({ level: 'silent' }),
      command_timeout_ms: 10_000,
    });
    await connectRedis(redis);
    context.onClose(() => closeRedis(redis));
    /** Waits until the condition holds. Returns the seconds that it took. */
    const wait = async (holds: () => Promise<boolean>): Promise<number> => {
      const started_ms = performance.now();
      while (!(await holds())) {
        if (performance.now() - started_ms > longest_ms)
          throw new Error('The boards take too long.');
        await delay(500);
      }
      return (performance.now() - started_ms) / 1_000;
    };
    const made_s = await wait(async () => {
      const found = await findBoardDifferences({ sql, redis, prefix: 'pf', now: new Date() });
      context.log(found[0] ?? 'all boards match their recomputation');
      return found.length === 0;
    });
    const adjusted_s = await wait(async () => {
      return (await sql`select from adjusted_boards`).length === 4;
    });
    const [row] = await sql`select coverage from adjusted_boards where class = 'agent'`;
    context.log(`boards after ${made_s} s, adjusted ${adjusted_s} s later: ${JSON.stringify(row)}`);
    const stageOf = (name: string, path: string) => () => [{ name, round: walk(port, path) }];
    const stages = Object.entries(walks).map(([name, path]) => stageOf(name, path));
    await addImported(sql, context.quick ? 100_000 : 1_000_000);
    return stages;
  },
};
