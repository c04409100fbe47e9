import { openSql } from '../../src/db/client.js';
import { makeDay } from '../../src/db/partition-store.js';

/**
 * A database as it is after years: a million predictions on 100,000 questions, and other rows in
 * proportion. Related rows are far apart, as if many agents had written at the same time. Texts are
 * short. Triggers and foreign keys are disabled.
 */

/** Helper functions of the statements below, in a schema that is dropped at the end. */
const functions = `
  create schema fill;
  create function fill.id(family text, n bigint) returns uuid language sql immutable return
    ('01900000-0000-7000-' || family || '-' || lpad(to_hex(n), 12, '0'))::uuid;
  create function fill.agent(n bigint) returns uuid language sql immutable return
    fill.id('8002', n % 100000);
  create function fill.question(n bigint) returns uuid language sql immutable return
    fill.id('8003', n % 100000);
  create function fill.prediction(n bigint) returns uuid language sql immutable return
    fill.id('8004', n);
  create function fill.at(n bigint) returns timestamptz language sql immutable return
    timestamptz '2025-01-01 00:00:00Z' + n * interval '20 seconds'`;

/** These run in a separate session, because they take as long as all other statements together. */
const predictions = [
  `insert into predictions (
    question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
    model_family, body_digest, event_id, created_at, seq, revision, revised_at, revision_event_id,
    upvotes, hidden_at
  )
  select
    fill.question(n), fill.agent(n % 100000 * 7 + n / 100000), fill.prediction(n), n % 2 = 0,
    50 * (n % 200), 50 * (n % 200), n || repeat('. The base rate says so', 9), '{}', 'family' || n % 8,
    '\\x00', '01900000-0000-7000-8005-000000000000', fill.at(n), n / 100000 + 1, (n % 20 = 0)::int,
    case when n % 20 = 0 then fill.at(n + 9) end,
    case when n % 20 = 0 then uuid '01900000-0000-7000-8006-000000000000' end,
    case when n % 10 = 0 then 1 + n % 7 else 0 end, case when n % 10000 = 0 then fill.at(n) end
  from generate_series(0, 999999) as n`,
];

const others = [
  `insert into humans (id, email, email_key, password_hash, email_verified_at)
  select fill.id('8001', n), n || '@people.dev', n || '@people.dev', 'no hash', now()
  from generate_series(0, 24999) as n`,
  `insert into human_tokens (digest, human_id, kind, expires_at)
  select sha256(int8send(n)), fill.id('8001', n % 5000), 'session', now() + n * interval '1 minute'
  from generate_series(0, 19999) as n`,
  `insert into known_addresses (human_id, digest, last_used_at)
  select fill.id('8001', n % 5000), sha256(int8send(n)), now() from generate_series(0, 19999) as n`,
  `insert into agents (
    id, name, name_key, model, model_family, persona_archetype, risk_profile, roles, referral_code,
    referred_by, owner_id, linked_at, key_digest, pseudonym, suspended_at, created_at
  )
  select
    fill.agent(n), 'Grown ' || n, 'grown ' || n, 'family' || n % 8 || '-' || n % 3,
    'family' || n % 8, 'data_driven', 'moderate', '{predictor}', 'grown' || n,
    case when n % 10 = 0 then fill.agent(n / 10) end, fill.id('8001', n / 4), now(),
    sha256(int8send(-n)), md5(n::text), case when n % 1000 = 999 then now() end, fill.at(n)
  from generate_series(0, 99999) as n`,
  `insert into follows (id, human_id, kind, subject, created_at)
  select fill.id('8008', n), fill.id('8001', n / 4), 'question', fill.question(n * 7)::text, fill.at(n)
  from generate_series(0, 49999) as n`,
  `insert into follows (id, agent_id, kind, subject, created_at)
  select fill.id('8009', n), fill.agent(n), 'search', 'q=word' || n, fill.at(n)
  from generate_series(0, 4999) as n`,
  `insert into followed_searches (subject, query)
  select 'q=word' || n, to_tsquery('word' || n) from generate_series(0, 4999) as n`,
  `insert into followed_questions (question_id, checked_offset)
  select fill.question(n * 7), 0 from generate_series(0, 4999) as n`,
  `insert into follow_visits (human_id, visited_at)
  select fill.id('8001', n), now() from generate_series(0, 9999) as n`,
  `insert into inbox_items (reader_id, id, kind, cause, question_id, details, created_at, read_at)
  select
    fill.id('8001', n % 10000), fill.id('800a', n), 'question.closing_soon', 'event:' || n,
    fill.question(n), '{}', fill.at(n), case when n % 3 > 0 then fill.at(n + 9) end
  from generate_series(0, 199999) as n`,
  `insert into mail_settings (human_id, digest, move_points, next_digest_at)
  select fill.id('8001', n), 'weekly', 10, now() + n * interval '1 second'
  from generate_series(0, 9999) as n`,
  `insert into agent_operators (agent_id, origin, keyid, verified_at, checked_at)
  select fill.agent(n), 'https://operator' || n % 500 || '.dev', 'key', now(), now()
  from generate_series(0, 9999) as n`,
  `insert into revocations (digest, reason, created_at)
  select sha256(int8send(n)), 'changed', now() - n * interval '1 minute'
  from generate_series(0, 19999) as n`,
  `insert into accounts (agent_id, balance) select fill.agent(n), n from generate_series(0, 99999) as n`,
  `insert into last_predictions (agent_id, prediction_id)
  select fill.agent(n), fill.prediction(n) from generate_series(0, 99999) as n`,
  `insert into told_tiers (agent_id, tier)
  select fill.agent(n), 'bronze' from generate_series(0, 99999) as n`,
  `insert into ledger (agent_id, id, reason, amount, balance_after, question_id, created_at)
  select fill.agent(n), fill.id('8008', n), 'prediction', 1, n, fill.question(n), fill.at(n)
  from generate_series(0, 99999) as n`,
  `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
  select fill.agent(n), 1, fill.agent(n + 1), 200, fill.id('8001', n % 5000), now()
  from generate_series(0, 9999) as n`,
  `insert into standings (agent_id, kind, net, resolved, correct, accuracy_low)
  select fill.agent(n), 'agent', n * 37 % 1009, n % 40, n % 20, n * 7 from generate_series(0, 99999) as n`,
  `insert into adjusted_scores (class, key, id, detail, rank)
  select 'agent', n, fill.agent(n), '{"value": 0.1, "n": 20}', n + 1 from generate_series(0, 19999) as n`,
  `insert into questions (
    id, question, category, subcategory, tags, question_type, status, timeframe, opens_at, closes_at,
    resolution_date, published_at, closing_soon_at, closed_at, resolved_at, voided_at, outcome,
    author_id, source, source_id, created_at
  )
  select
    fill.question(n), 'Will series ' || n || ' end above its median?', s.pillar, s.slug,
    array['#Tag' || n % 300], 'binary', status, 'long', fill.at(n), closes_at, closes_at, fill.at(n),
    case when status <> 'open' then fill.at(n) end, case when status <> 'open' then closes_at end,
    case when status = 'resolved' then closes_at end, case when status = 'voided' then closes_at end,
    case when status = 'resolved' then n % 4 = 0 end, case when n % 5 = 0 then fill.agent(n) end,
    case when n % 2 = 0 then 'survey' end, case when n % 2 = 0 then n::text end, fill.at(n)
  from (
    select
      n,
      (array['open', 'resolved', 'resolved', 'closed', 'resolved', 'resolved', 'voided'])[n % 7 + 1]
        as status,
      (case when n % 7 = 0 then now() + interval '30 days' else fill.at(n) end) + n * interval '1 minute'
        + interval '1 day' as closes_at
    from generate_series(0, 99999) as n
  ) made
  join (select *, row_number() over (order by slug) - 1 as number from subcategories) s
    on s.number = n % (select count(*) from subcategories)`,
  `insert into question_words (question_id, is_public, title, words)
  select id, true, to_tsvector('simple', question), to_tsvector('simple', question) from questions`,
  `insert into agent_words (agent_id, words)
  select id, to_tsvector('simple', name || ' ' || model) from agents where suspended_at is null`,
  `insert into known_words (word)
  select translate(left(md5(n::text), 8), '0123456789', 'ghijklmnop') from generate_series(0, 19999) as n`,
  `insert into question_counts (question_id, prediction_count, yes_count, no_count, comment_count)
  select fill.question(n), 10, n % 11, 10 - n % 11, 2 from generate_series(0, 99999) as n`,
  `insert into question_seqs (question_id, seq) select fill.question(n), 10 from generate_series(0, 99999) as n`,
  `insert into closed_times (question_id, from_at, to_at)
  select fill.question(n * 3), fill.at(n), fill.at(n + 9) from generate_series(0, 19999) as n`,
  `insert into earlier_forecasts (
    question_id, agent_id, revision, prediction, probability, confidence, event_id, created_at
  )
  select
    fill.question(n), fill.agent(n % 100000 * 7 + n / 100000), 0, true, 6000, 6000,
    fill.id('8005', n), fill.at(n)
  from generate_series(0, 999999, 20) as n`,
  `insert into consensus_snapshots (question_id, moment, reason, taken_at, "offset", consensus, format)
  select
    fill.question(n), at, 'hourly', at, n, '{"probability": 50}', 3
  from generate_series(0, 99999) as n, date_trunc('hour', fill.at(n)) as at`,
  `insert into resolutions (
    question_id, revision, kind, outcome, decided_by, state, created_at, finished_at
  )
  select fill.question(n), 1, 'resolve', n % 4 = 0, 'admin', 'done', fill.at(n), fill.at(n)
  from generate_series(0, 99999) as n
  where n % 7 in (1, 2, 4, 5)`,
  `insert into disputes (
    question_id, id, agent_id, revision, reason, evidence_urls, status, decided_by, decided_at, created_at
  )
  select
    fill.question(n * 7 + 1), fill.id('8009', n), fill.agent(n), 1, repeat('No. ', 20), '{}',
    case when n % 100 = 0 then 'open' else 'rejected' end,
    case when n % 100 <> 0 then 'admin' end, case when n % 100 <> 0 then fill.at(n) end, fill.at(n)
  from generate_series(0, 9999) as n`,
  `insert into scores (
    question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
    stated, correct, hit, brier, log_score, baseline, relative, skill, net, resolved_at, settled_at
  )
  select
    fill.question(n), fill.agent(n % 100000 * 7 + n / 100000), fill.prediction(n), 1, 'technology',
    'binary', 2, 0.5, 5000, n % 2 = 0, true, 0.25, 0.1, 0.1, 0, 0, n % 50, fill.at(n), fill.at(n)
  from generate_series(0, 299999) as n
  where n % 100000 % 7 in (1, 2, 4, 5)`,
  `insert into group_scores (
    question_id, kind, name, revision, category, question_type, n_options, n_agents, forecast, stated,
    correct, hit, brier, log_score, baseline, resolved_at, settled_at
  )
  select
    fill.question(n), kind, kind, 1, 'technology', 'binary', 2, 1, 0.5, 5000, true, true, 0.25, 0.1,
    0.1, fill.at(n), fill.at(n)
  from generate_series(0, 99999) as n, unnest(array['crowd', 'even']) as kind
  where n % 7 in (1, 2, 4, 5)`,
  `insert into comments (
    question_id, id, agent_id, prediction_id, parent_id, root_id, depth, slot, content, upvotes,
    replies, body_digest, event_id, hidden_at, created_at
  )
  select
    fill.question(n), fill.id('800a', n), fill.agent(n),
    case when n % 4 = 1 then fill.prediction(n) end,
    case when n >= 100000 then fill.id('800a', n - 100000) end,
    fill.id('800a', n % 100000), n / 100000, case when n < 100000 and n % 4 <> 1 then 1 end,
    'Several sources say so: ' || n, n % 5, (n < 100000)::int, sha256(int8send(n)),
    fill.id('800b', n), case when n % 10000 = 0 then now() end, fill.at(n * 5)
  from generate_series(0, 199999) as n`,
  `insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
  select
    fill.question(n), fill.prediction(n), fill.agent(n + 1), 'prediction', fill.agent(n), 1, fill.at(n)
  from generate_series(0, 99999) as n`,
  `insert into notifications (agent_id, id, kind, cause, details, created_at, read_at)
  select
    fill.agent(n), fill.id('800c', n), 'comment.reply', n::text, '{}', fill.at(n),
    case when n % 3 > 0 then now() - interval '1 day' end
  from generate_series(0, 99999) as n`,
  `insert into events (
    "offset", recorded_on, recorded_at, id, event, question_id, agent_id, category, body
  )
  select
    n + 1, (at at time zone 'UTC')::date, at, fill.id('8005', n),
    case when n % 10 = 0 then 'question.created' else 'prediction.placed' end, fill.question(n),
    fill.agent(n), 'technology', '{"event": "prediction.placed", "data": {}}'
  from (
    select n, now() - (199999 - n) * interval '2.8 seconds' as at from generate_series(0, 199999) as n
  ) made`,
  `update log_head set "offset" = 200000`,
  `update snapshot_cursor set "offset" = 200000`,
  `update delivery_plan set planned_offset = 200000`,
  `insert into event_digests ("offset", digest)
  select 1000 * n, repeat('0', 64) from generate_series(1, 200) as n`,
  `insert into consumers (id, agent_id, name, topics, ack_wait_seconds, "cursor")
  select fill.id('800d', n), fill.agent(n), 'main', '{all}', 60, 190000 from generate_series(0, 4999) as n`,
  `insert into consumer_events (consumer_id, "offset", order_key)
  select fill.id('800d', n % 5000), n + 1, fill.question(n) from generate_series(0, 49999) as n`,
  // These webhooks subscribe to a question without events, so the signers send nothing.
  `insert into webhooks (id, owner_kind, owner_id, slot, url, events, filter_questions, secret_sealed, active)
  select
    fill.id('800e', n), 'agent', fill.agent(n), 1, 'https://127.0.0.1:9/hook', '{question.closed}',
    array[fill.id('8003', 999999)], '\\x00', n % 10 > 0
  from generate_series(0, 4999) as n`,
  `insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset, done_at)
  select fill.id('800e', n), fill.id('800f', n), 1, 2, 2, now() from generate_series(0, 4999) as n`,
  `insert into deliveries (
    webhook_id, event_id, id, event_offset, recorded_on, state, attempts, next_at, delivered_at
  )
  select
    webhook_id, event_id, delivery_id(webhook_id, event_id), n + 1, current_date,
    case when n % 50 = 0 then 'exhausted' else 'delivered' end, 1, now(),
    case when n % 50 > 0 then now() end
  from generate_series(0, 99999) as n,
    fill.id('800e', n % 5000) as webhook_id, fill.id('8005', n) as event_id`,
  `insert into attempts (webhook_id, event_id, attempt, at, latency_ms, status)
  select fill.id('800e', n % 5000), fill.id('8005', n), 1, now() - n * interval '6 seconds', 9, 204
  from generate_series(0, 99999) as n`,
  `insert into idempotency (scope, key, route, digest, state, lease_id, lease_until, answer)
  select
    'agent:' || fill.agent(n), 'key-' || n, 'predict', sha256(int8send(n)), 'done',
    fill.id('8010', n), now(), '\\x00'
  from generate_series(0, 99999) as n`,
  `insert into report_cases (
    id, kind, subject_id, question_id, author_id, status, opened_at, decided_at, reason
  )
  select
    fill.id('8012', n), 'prediction', fill.prediction(n), fill.question(n), fill.agent(n),
    case when n % 100 = 0 then 'open' else 'kept' end, fill.at(n),
    case when n % 100 > 0 then now() end, case when n % 100 > 0 then 'It is fine.' end
  from generate_series(0, 19999) as n`,
  `insert into reports (person_id, subject_id, id, case_id, reason, created_at)
  select
    fill.id('8001', (n + n / 20000) % 5000), fill.prediction(n % 20000), fill.id('8013', n),
    fill.id('8012', n % 20000), 'spam', fill.at(n)
  from generate_series(0, 39999) as n`,
  `insert into audit_log (id, at, admin, act, subject_kind, subject_id, is_public)
  select
    fill.id('8011', n), fill.at(n), 'admin', 'question.resolve', 'question',
    fill.question(n)::text, n % 10 = 0
  from generate_series(0, 19999) as n`,
];

/** Tables partitioned by day, with the number of past days that their rows cover. */
const daily = { events: 7, attempts: 7 };

/** Fills a migrated, empty database. `url` must be the URL of a superuser. */
export const grow = async (url: string): Promise<void> => {
  const name = 'fill';
  const sql = openSql({ url, pool: 2, prepare: false, name, statement_timeout_ms: 120_000 });
  await sql.unsafe(functions);
  for (const [table, days] of Object.entries(daily)) {
    const past = await sql<{ day: string }[]>`
      select to_char(current_date - n, 'YYYYMMDD') as day
      from generate_series(0, ${days}::integer) as n`;
    for (const { day } of past) await sql.begin((tx) => makeDay(tx, table, day));
  }
  // An index is built faster from the whole table than row by row.
  await sql.unsafe(`
    update pg_index
    set indisready = false
    where indrelid in (
      select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    )`);
  const fill = (statements: readonly string[]): Promise<void> =>
    sql.begin(async (tx) => {
      await tx.unsafe('set local session_replication_role = replica');
      for (const statement of statements) await tx.unsafe(statement);
    });
  await Promise.all([fill(predictions), fill(others)]);
  await sql.unsafe('drop schema fill cascade');
  const tables = await sql<{ name: string; size: number }[]>`
    select oid::regclass::text as name, pg_relation_size(oid) as size
    from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace
    order by size desc`;
  const finish = async (): Promise<void> => {
    for (let next = tables.shift(); next !== undefined; next = tables.shift()) {
      await sql.unsafe(`reindex table ${next.name}`);
      await sql.unsafe(`vacuum analyze ${next.name}`);
    }
  };
  await Promise.all([finish(), finish()]);
  await sql.end();
};
