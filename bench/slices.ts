import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Sql } from '../src/db/client.js';
import { waitUntilEmpty } from './env/load-rounds.js';
import { agentId, questionId, seedForecasts } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, figureOf, type Subject } from './frame/bench.js';
import { mcp_meta, mcp_revision, predictBody } from './load/requests.js';

/**
 * How long one request blocks the event loop of an api process: the longest stretch of CPU time
 * while an answer is made. Each question has 50,000 predictions. One has a thread of 5,000
 * comments, one has ten options, one asks for a number and one for a date, with 201 points per
 * forecast. One is resolved, and its forecasts were revised twice. The first answer counts too.
 */

const all_agents = 50_000;
const quick_agents = 5_000;
const longest_ms = 50;
const settle_ms = 100;
const admin_key = 'bench-admin-key-0123456789abcdefghij';

/** One thread, in which each comment replies to an earlier one, up to a depth of 8. */
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
const points = 201;

/** Numbers of the questions. Questions from `others` on have no predictions. */
const asked = { id: 0, multi: 1, number: 2, date: 3, done: 4 } as const;
const others = 5;
const batch = 100;

/** Turns a seeded question into one that asks for a number or a date between 0 and 1,000. */
const makeNumeric = async (sql: Sql, question: number, kind: 'numeric' | 'date'): Promise<void> => {
  await sql`
    update questions
    set question_type = ${kind}, range_min = 0, range_max = 1000
    where id = ${questionId(question)}`;
  // All forecasts differ, because equal ones are counted together.
  await sql`
    with shapes as materialized (
      select
        shape,
        array(
          select v
          from generate_series(0, ${points}::integer - 1) as n,
            lateral (select n / (${points}::integer - 1.0) as x) at,
            unnest(array[1000 * x, power(x, 0.5 + shape / 100.0)]::float8[])
              with ordinality as pair (v, k)
          order by n, k
        ) as cdf
      from generate_series(0, 99) as shape
    )
    update predictions p
    set
      prediction = null, probability = null, confidence = 5000,
      cdf = s.cdf[1:2 * ${points}::integer - 1] || (1 - p.seq * 1e-9)::float8
    from shapes s
    where question_id = ${questionId(question)} and s.shape = p.seq % 100`;
};

/** Turns a seeded question into one with options. Each forecast strongly favours one option. */
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

interface Call {
  readonly path: string;
  /** The JSON body. A call with a body is a POST. */
  readonly body?: (round: number) => object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: 'agent' | 'admin';
}

const lines = (text: string): string[] => text.trim().split(/\s+/);

const paths = [
  ...lines('predictions revisions consensus-history comments questions resolutions').flatMap(
    (name) =>
      lines('csv ndjson json parquet csv&gzip=true').map(
        (format) => `/api/export/${name}?question_id={id}&format=${format}`,
      ),
  ),
  ...lines('multi number done').flatMap((name) =>
    lines('predictions consensus-history').map((of) => `/api/export/${of}?question_id={${name}}`),
  ),
  ...Object.keys(asked).flatMap((name) => [
    ...lines('/chart?points=1000 /chart.svg?points=1000 /chart.png?points=1000 /consensus /drift')
      .concat(lines('/predictions?limit=100 /intel-brief /snapshots'), '')
      .map((end) => `/api/questions/{${name}}${end}`),
    `/questions/{${name}}`,
    `/embed/{${name}}`,
    `/questions/{${name}}/feed.xml`,
  ]),
  ...lines('comments?limit=100 debates?limit=100 disputes changes').map(
    (end) => `/api/questions/{id}/${end}`,
  ),
  ...lines('points accuracy brier calibration debaters').map(
    (by) => `/api/leaderboard?limit=100&by=${by}`,
  ),
  ...lines(`
    /api/export/consensus-history/manifest?question_id={number} /api/questions?limit=100&include=headline
    /api/questions?q=series+median /api/consensus?ids={id},{multi},{number},{date},{done}
    /api/agents?limit=100 /api/events?limit=100 /api/insights/daily
    /api/discussions?tab=debates /api/export/calibration /api/export/calibration?by=agent
    /api/export/calibration.svg /feed.xml /openapi.json /asyncapi.json /llms.txt /docs /sitemap.xml
    / /questions /predictions/{pid} /agents /agents/{agent} /leaderboard /leaderboard.csv
    /families/gpt /insights /calibration /data`),
];

const agent_paths = lines(`
  /api/me /api/me/export /api/me/predictions?limit=100 /api/me/transactions?limit=100
  /api/questions/{id}/preflight /api/questions/{number}/preflight`);
const admin_paths = lines(`
  /api/admin/agents?limit=100 /api/admin/people?limit=100 /api/admin/questions?limit=100
  /api/admin/hidden?limit=100 /api/admin/disputes?limit=100`);

const askMcp = (method: string, name: string, args: object): Call => ({
  path: '/mcp',
  as: 'agent',
  headers: {
    'MCP-Protocol-Version': mcp_revision,
    'Mcp-Method': method,
    ...(name === '' ? {} : { 'Mcp-Name': name }),
    Accept: 'application/json, text/event-stream',
  },
  body: () => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { ...(name === '' ? {} : { name, arguments: args }), _meta: mcp_meta },
  }),
});

/** Four bytes per character, so that 100 items come near the limit of 4 MB. */
const long_text = (n: number): string => `${n} ${'\u{1f4c8} '.repeat(4_900)}`;

const importOf = (kind: string, itemOf: (n: number) => object): Call => ({
  path: `/api/admin/${kind}/import`,
  as: 'admin',
  body: (round) => ({ items: Array.from({ length: batch }, (_, n) => itemOf(1_000 * round + n)) }),
});

const calls: Readonly<Record<string, Call>> = {
  ...Object.fromEntries(paths.map((path) => [path, { path }])),
  ...Object.fromEntries(agent_paths.map((path) => [path, { path, as: 'agent' }])),
  ...Object.fromEntries(admin_paths.map((path) => [path, { path, as: 'admin' }])),
  'POST predictions/batch': {
    path: '/api/predictions/batch',
    as: 'agent',
    body: (round) => ({
      predictions: Array.from({ length: batch }, (_, n) => ({
        question_id: questionId(others + n),
        ...predictBody(1_000 * round + n),
      })),
    }),
  },
  'MCP tools/list': askMcp('tools/list', '', {}),
  'MCP get_question': askMcp('tools/call', 'get_question', { question_id: questionId(2) }),
  'MCP find_questions': askMcp('tools/call', 'find_questions', { limit: 100 }),
  'MCP my_record': askMcp('tools/call', 'my_record', {}),
  'MCP predict': askMcp('tools/call', 'predict', {
    question_id: questionId(others + batch),
    ...predictBody(90_000),
  }),
  'import questions': importOf('questions', (n) => ({
    question: `Will the imported series ${n} end above its median?`,
    description: long_text(n),
    category: 'technology',
    question_type: 'binary',
    closes_at: '2030-01-01T00:00:00.000Z',
    resolution_date: '2030-01-02T00:00:00.000Z',
    source: 'bench',
    source_id: String(n),
    publish: true,
  })),
  'import agents': importOf('agents', (n) => ({ name: `Imported ${n}`, model: 'gpt-5' })),
  'import predictions': importOf('predictions', (n) => ({
    source: 'bench',
    source_id: String(n),
    agent: `Imported ${n}`,
    prediction: true,
    confidence: 70,
    reasoning: `${predictBody(200_000 + n).reasoning}\n\n${long_text(n).slice(0, 8_000)}`,
  })),
  'import resolutions': importOf('resolutions', (n) => ({
    source: 'bench',
    source_id: String(n),
    outcome: true,
    resolution_note: 'As published. '.repeat(350),
  })),
};

export const bench: Bench = {
  question: 'How long does one request block the event loop?',
  figures: Object.fromEntries(
    Object.keys(calls).map((name) => [name, { of: figureOf(name, 'longest_ms'), max: longest_ms }]),
  ),
  async prepare(context) {
    const count = context.quick ? quick_agents : all_agents;
    const socket = path.join(context.folder, 'slices');
    const probe = pathToFileURL(path.join(import.meta.dirname, 'env/slice-probe.js')).href;
    const { service, keys } = await startForum(context, {
      agents: count,
      questions: others + batch + 1,
      env: { ADMIN_KEY: admin_key, SLICE_SOCKET: socket, NODE_OPTIONS: `--import=${probe}` },
      async fill(sql) {
        for (const question of Object.values(asked)) {
          const revisions = question === asked.done ? 2 : 0;
          const events = question === asked.id;
          await seedForecasts(sql, { question, first_agent: 0, count, events, revisions });
        }
        await addComments(sql, count / 10);
        await makeMulti(sql, asked.multi);
        await makeNumeric(sql, asked.number, 'numeric');
        await makeNumeric(sql, asked.date, 'date');
      },
    });
    const { sql, port } = service;
    const send = async ({ path, body, headers, as }: Call, round: number): Promise<Response> => {
      const key = as === 'admin' ? admin_key : as === 'agent' ? keys[round] : undefined;
      return fetch(`http://127.0.0.1:${port}${path}`, {
        headers: {
          'Content-Type': 'application/json',
          ...(as === 'admin' && { 'X-Admin-Key': admin_key }),
          ...(as === 'agent' && key !== undefined && { 'X-API-Key': key }),
          ...headers,
        },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body(round)) }),
      });
    };
    const path_of_done = `/api/admin/questions/${questionId(asked.done)}`;
    for (const [end, said] of [
      ['close', {}],
      ['resolve', { outcome: true }],
    ] as const) {
      const ended = await send(
        { path: `${path_of_done}/${end}`, as: 'admin', body: () => said },
        0,
      );
      if (!ended.ok) throw new Error(`${end}: ${await ended.text()}`);
    }
    await waitUntilEmpty(sql, ['outbox', 'standing_changes']);
    await delay(5_000);
    const [row] = await sql<{ id: string }[]>`select id from predictions limit 1`;
    const ids = { ...asked, pid: row!.id, agent: agentId(1) };
    const fillIn = (template: string): string =>
      template.replace(/\{(\w+)\}/g, (_, name: keyof typeof ids) => {
        const id = ids[name];
        return typeof id === 'number' ? questionId(id) : id;
      });
    const takeLongest = async (): Promise<number> => Number(await text(net.connect(socket)));
    const subjects = Object.entries(calls).map(([name, call]): Subject => {
      let round = 0;
      return {
        name,
        async round() {
          await delay(settle_ms);
          await takeLongest();
          const answer = await send({ ...call, path: fillIn(call.path) }, round);
          round += 1;
          const answered = Buffer.from(await answer.arrayBuffer());
          if (!answer.ok || (call.body !== undefined && answered.includes('"refused"'))) {
            context.log(`${name}: ${answer.status} ${answered.subarray(0, 300)}`);
          }
          await delay(settle_ms);
          return { longest_ms: await takeLongest() };
        },
      };
    });
    return [() => subjects];
  },
};
