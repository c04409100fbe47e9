import type { Sql } from '../src/db/client.js';
import { prepareOnBed } from './env/bed.js';
import { agentId, questionId } from './env/seed.js';
import { openPool } from './env/stores.js';
import { startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, type Sample, type Subject } from './frame/types.js';

/**
 * What the history of a question costs an api process: its chart when nobody has asked for it yet
 * (everything is read from Postgres), and then the same again, another one, pictures, drift and an
 * answer 304. Meanwhile somebody else asks for `/livez` as fast as it is answered; how long that
 * takes at most is how long the event loop was held. Every round takes a question of its own.
 */

const sizes = [100, 100_000] as const;
const families = ['claude', 'deepseek', 'gemini', 'gpt', 'grok', 'llama', 'mistral', 'qwen'];

const addQuestions = async (sql: Sql, count: number): Promise<void> => {
  await sql`
    insert into questions (
      id, question, category, question_type, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    select
      id, 'Will measured series ' || n || ' end above its median?', 'technology', 'binary', 'open',
      'long', now() - interval '90 days', now() + interval '9 days', now() + interval '9 days',
      now()
    from unnest(${Array.from({ length: count }, (_, n) => questionId(n))}::uuid[])
      with ordinality as given (id, n)`;
};

/** A history over 80 days, three predictions to an owner. */
const addPredictions = async (sql: Sql, question: number, count: number): Promise<void> => {
  const agents = agentId(0).slice(0, 24);
  await sql`
    insert into predictions (
      question_id, agent_id, owner_id, id, prediction, probability, confidence, reasoning,
      citations, model_family, body_digest, event_id, created_at
    )
    select
      ${questionId(question)}, (${agents} || lpad(to_hex(n), 12, '0'))::uuid,
      (${agents} || lpad(to_hex(n / 3), 12, '0'))::uuid, gen_random_uuid(), chance >= 50, chance,
      greatest(chance, 100 - chance), repeat('A measured reason. ', 20), '{}',
      (${families}::text[])[1 + n % 8], ''::bytea, gen_random_uuid(),
      now() - interval '81 days' + n * (interval '80 days' / ${count})
    from (
      select n, ((n * 37 + n / 1000) % 101)::smallint as chance
      from generate_series(0, ${count - 1}::integer) as n
    ) numbered`;
  await sql`
    insert into question_counts (question_id, prediction_count, prediction_offset)
    values (${questionId(question)}, ${count}, ${question + 1})`;
};

/** Asks until it is told to stop; the longest wait in ms. */
const startProbe = (port: number) => {
  let is_over = false;
  let longest_ms = 0;
  const run = async (): Promise<void> => {
    while (!is_over) {
      const since_ms = performance.now();
      await (await fetch(`http://127.0.0.1:${port}/livez`)).arrayBuffer();
      longest_ms = Math.max(longest_ms, performance.now() - since_ms);
    }
  };
  const done = run();
  return async (): Promise<number> => {
    is_over = true;
    await done;
    return longest_ms;
  };
};

const askAll = async (port: number, question: number, size: number): Promise<Sample> => {
  const base = `http://127.0.0.1:${port}/api/questions/${questionId(question)}/`;
  const figures: Record<string, number> = {};
  const ask = async (name: string, rest: string, status = 200, headers = {}) => {
    const stopProbe = startProbe(port);
    const since_ms = performance.now();
    const answer = await fetch(base + rest, { headers });
    const body = await answer.arrayBuffer();
    figures[`${name}_ms`] = performance.now() - since_ms;
    const waited_ms = await stopProbe();
    figures['longest_wait_ms'] = Math.max(figures['longest_wait_ms'] ?? 0, waited_ms);
    if (answer.status !== status) throw new Error(`${rest}: ${answer.status}`);
    return { body, etag: answer.headers.get('etag') ?? '' };
  };
  const { body, etag } = await ask('first', 'chart');
  const chart = JSON.parse(Buffer.from(body).toString()) as { total_predictions: number };
  if (chart.total_predictions !== size) throw new Error(`${chart.total_predictions} of ${size}`);
  await ask('again', 'chart');
  await ask('not_modified', 'chart', 304, { 'if-none-match': etag });
  await ask('other', 'chart?points=1000');
  await ask('drift', 'drift');
  await ask('svg', 'chart.svg');
  await ask('png', 'chart.png');
  return figures;
};

export const history: Bench = {
  name: 'history',
  question: 'What do chart, pictures and drift of a question with 100,000 predictions cost?',
  reduce: { longest_wait_ms: 'max' },
  ratios: {},
  figures: {
    first_ms_at_100000: figureOf('history_100000', 'first_ms'),
    other_ms_at_100000: figureOf('history_100000', 'other_ms'),
    longest_wait_ms_at_100000: figureOf('history_100000', 'longest_wait_ms'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { stores, context } = bed;
    // One round is to warm up.
    const of_each = context.rounds + 1;
    await stores.createDatabase('service');
    const sql = openPool(stores.urlOf('service'), 'bench');
    await addQuestions(sql, of_each * sizes.length);
    for (const [n, size] of sizes.entries()) {
      for (let k = 0; k < of_each; k += 1) await addPredictions(sql, n * of_each + k, size);
    }
    await sql`update log_head set "offset" = ${of_each * sizes.length}`;
    await sql`vacuum analyze predictions`;
    await sql.end({ timeout: 5 });
    const { port } = await startServiceTarget(bed, { LIMIT_IP: '1000000' });
    const subjects = sizes.map((size, n): Subject => {
      const first = n * of_each;
      return {
        name: `history_${size}`,
        warmUp: async () => void (await askAll(port, first, size)),
        round: (index) => askAll(port, first + 1 + index, size),
      };
    });
    return { stages: [() => ({ subjects })] };
  }),
};
