import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Sql } from '../src/db/client.js';
import { agentId, questionId, seedForecasts } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, figureOf, type Subject } from './frame/bench.js';

/**
 * How long one request may keep the event loop of an api process from turning: the longest stretch of
 * CPU time while each export, chart, page and list is made from one question with 50,000
 * predictions, of another with as many and ten options, and with 5,000 comments in one thread. The first answer counts, and no cached one.
 */

const all_agents = 50_000;
const quick_agents = 5_000;
const longest_ms = 50;
const settle_ms = 100;
const admin_key = 'bench-admin-key-0123456789abcdefghij';

/** One thread, in which each comment replies to an earlier one; depths go up to 8. */
const addComments = (sql: Sql, count: number) => sql`
  with made as (
    select
      n,
      ('01900000-0000-7000-8004-' || lpad(to_hex(n), 12, '0'))::uuid as id,
      ('01900000-0000-7000-8004-' || lpad(to_hex(n / 4), 12, '0'))::uuid as parent_id,
      ('01900000-0000-7000-8002-' || lpad(to_hex(n % 100), 12, '0'))::uuid as agent_id,
      least(8, ceil(ln(n + 1) / ln(4)))::integer as depth
    from generate_series(0, ${count} - 1) as n
  )
  insert into comments (
    id, question_id, parent_id, root_id, depth, slot, replies, agent_id, content, body_digest,
    event_id, created_at
  )
  select
    id, ${questionId(0)}, case when n > 0 then parent_id end,
    '01900000-0000-7000-8004-000000000000', depth,
    case when n = 0 then 1 end, 3, agent_id,
    'The survey of number ' || n || ' shows less than its margin of error, as before.',
    sha256(int8send(n)), gen_random_uuid(), now() - interval '1 hour' + n * interval '1 millisecond'
  from made`;

const options = 10;

/** Makes a seeded question one with options: each forecast puts nearly all on one of them. */
const makeMulti = async (sql: Sql, question: number): Promise<void> => {
  await sql`
    update questions
    set
      question_type = 'multi',
      options = array(select 'Option ' || n from generate_series(1, ${options}::integer) as n)
    where id = ${questionId(question)}`;
  await sql`
    update predictions
    set
      prediction = null, probability = null, selected_option = seq % ${options}::integer,
      confidence = 9100,
      probabilities = array(
        select case when n = seq % ${options}::integer then 9100 else 100 end
        from generate_series(0, ${options} - 1) as n
      )
    where question_id = ${questionId(question)}`;
};

const pathsOf = (prediction: string): Readonly<Record<string, string>> => {
  const question = questionId(0);
  const about = `/api/questions/${question}`;
  const formats = ['csv', 'ndjson', 'json', 'parquet', 'csv&gzip=true'];
  const exports = ['predictions', 'revisions', 'comments', 'consensus-history', 'questions'];
  const charts = ['', '.svg', '.png'].map((end) => `${about}/chart${end}?points=1000`);
  const lists = ['', '/consensus', '/snapshots', '/drift', '/predictions?limit=100', '/intel-brief']
    .concat(['/comments?limit=100', '/debates?limit=100', '/disputes', '/changes'])
    .map((end) => about + end);
  const boards = ['points', 'accuracy', 'brier', 'calibration', 'debaters'].map(
    (by) => `/api/leaderboard?limit=100&by=${by}`,
  );
  const rest = `/api/questions?limit=100 /api/questions?q=series+median /api/agents?limit=100
    /api/events?limit=1000 /api/insights/daily /api/discussions?tab=debates /api/export/calibration
    /api/export/calibration?by=agent /api/export/calibration.svg /feed.xml /questions/${question}/feed.xml
    /openapi.json /asyncapi.json /llms.txt /docs /embed/${question} /sitemap.xml
    / /questions /questions/${question} /predictions/${prediction} /agents /agents/${agentId(1)}
    /leaderboard /leaderboard.csv /families/gpt /insights /calibration /data`.split(/\s+/);
  const other = questionId(1);
  const multi = ['', '/consensus', '/chart', '/chart.svg?points=1000', '/drift', '/intel-brief']
    .map((end) => `/api/questions/${other}${end}`)
    .concat(`/questions/${other}`, `/embed/${other}`);
  const all = [...charts, ...lists, ...multi, ...boards, ...rest];
  const files = exports.flatMap((name) =>
    formats.map((format) => `/api/export/${name}?format=${format}`),
  );
  const named = [...files, ...all, '/api/export/consensus-history/manifest'].map((one) => [
    one
      .replaceAll(question, '{id}')
      .replace(other, '{multi}')
      .replace(prediction, '{pid}')
      .replace(agentId(1), '{agent}'),
    one,
  ]);
  return Object.fromEntries(named);
};

export const bench: Bench = {
  question: 'How long does one request keep the event loop from turning?',
  figures: Object.fromEntries(
    Object.keys(pathsOf('pid')).map((name) => [
      name,
      { of: figureOf(name, 'longest_ms'), max: longest_ms },
    ]),
  ),
  async prepare(context) {
    const agents = context.quick ? quick_agents : all_agents;
    const socket = path.join(context.folder, 'slices');
    const probe = pathToFileURL(path.join(import.meta.dirname, 'env/slice-probe.js')).href;
    const { service } = await startForum(context, {
      agents,
      questions: 2,
      env: { ADMIN_KEY: admin_key, SLICE_SOCKET: socket, NODE_OPTIONS: `--import=${probe}` },
      async fill(sql) {
        await seedForecasts(sql, { question: 0, first_agent: 0, count: agents, events: true });
        await addComments(sql, agents / 10);
        await seedForecasts(sql, { question: 1, first_agent: 0, count: agents, events: false });
        await makeMulti(sql, 1);
      },
    });
    const settled = async (): Promise<boolean> => {
      const [row] = await service.sql`select exists (select from outbox) as is_behind`;
      return row?.['is_behind'] === false;
    };
    while (!(await settled())) await delay(500);
    await delay(5_000);
    const [row] = await service.sql<{ id: string }[]>`select id from predictions limit 1`;
    const takeLongest = async (): Promise<number> => Number(await text(net.connect(socket)));
    const subjects = Object.entries(pathsOf(row!.id)).map(
      ([name, address]): Subject => ({
        name,
        async round() {
          await delay(settle_ms);
          await takeLongest();
          const answer = await fetch(`http://127.0.0.1:${service.port}${address}`);
          await answer.arrayBuffer();
          if (!answer.ok) context.log(`${name}: ${answer.status}`);
          await delay(settle_ms);
          return { longest_ms: await takeLongest() };
        },
      }),
    );
    return [() => subjects];
  },
};
