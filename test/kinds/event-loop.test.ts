import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { Test } from 'tap';
import { agentId, seed } from '../../bench/env/seed.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { fetchBytes, predict, readLines } from '../features/exports/world.js';
import { addScores } from '../features/leaderboards/world.js';
import { no_limits, startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { launch, processesOf } from '../help/service.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * No request blocks the event loop. The tests do not measure latencies. They count the other
 * requests that were answered in between, and compute the largest part of the CPU work that was
 * done in one turn.
 */

const count = 5_000;
t.setTimeout(900_000);
const app = await startApp(t, { env: no_limits, check_answers: false });
await seed(app.sql, { keys: range(1, count).map(() => makeApiKey()), questions: 1 });
const human = await makeHuman(app);

/** Adds `count` predictions to a question, each a copy of a placed one, with its own event. */
const copyPrediction = async (question_id: string, prediction_id: string): Promise<void> => {
  const body = await until('its event is in the log', async () => {
    const [row] = await app.sql<{ body: string }[]>`
      select e.body
      from events e
      join predictions p on p.event_id = e.id
      where p.id = ${prediction_id}`;
    return row?.body;
  });
  const first = agentId(0);
  await app.sql`
    insert into predictions
    select made.*
    from predictions p
    cross join (
      select id, owner_id, model_family, row_number() over (order by id) as n
      from agents
      where id >= ${first}
      order by id
      limit ${count}
    ) a
    cross join lateral jsonb_populate_record(p, jsonb_build_object(
      'id', uuidv7(), 'agent_id', a.id, 'owner_id', a.owner_id,
      'event_id', uuidv7(), 'model_family', a.model_family, 'seq', a.n + 1,
      'created_at', now() - (${count} - a.n) * interval '1 millisecond'
    ) || case when p.probability is null then '{}'::jsonb else jsonb_build_object(
      'probability', a.n * 37 % 10001, 'prediction', a.n * 37 % 10001 >= 5000,
      'confidence', greatest(a.n * 37 % 10001, 10000 - a.n * 37 % 10001)
    ) end) made
    where p.id = ${prediction_id}`;
  await app.sql`
    insert into outbox (id, event, question_id, agent_id, body)
    select
      p.event_id, 'prediction.placed', p.question_id, p.agent_id,
      replace(
        replace(${body}, ${prediction_id}, p.id::text), o.agent_id::text, p.agent_id::text
      )
    from predictions p
    join predictions o on o.id = ${prediction_id}
    where p.question_id = ${question_id} and p.id <> ${prediction_id}`;
};

const questions = {
  yes_no: await makeOpenQuestion(app),
  options: await makeOpenQuestion(app, {
    question_type: 'multi',
    options: range(1, 10).map((n) => `Größe ${n}`),
  }),
  numeric: await makeOpenQuestion(app, {
    question_type: 'numeric',
    range: { min: 0, max: 1_000, unit: 'km' },
  }),
};
const forecasts = {
  yes_no: { probability: 62 },
  options: { probabilities: Object.fromEntries(range(1, 10).map((n) => [`Größe ${n}`, 10])) },
  numeric: { quantiles: [200, 400, 700].map((value, n) => ({ value, p: [10, 50, 90][n] })) },
};
const placer = await makeAgent(app, { human });
for (const [type, body] of Object.entries(forecasts)) {
  const question_id = questions[type as keyof typeof questions];
  const prediction_id = await predict(app, { question_id, agent: placer, body });
  await copyPrediction(question_id, prediction_id);
}
await until(
  'the log has everything',
  async () => (await app.sql`select from outbox limit 1`).length === 0,
  300_000,
  250,
);
await app.sql`
  update question_counts set prediction_count = ${count + 1}
  where question_id = any(${Object.values(questions)}::uuid[])`;

await until(
  'exports have everything',
  async () => {
    for (const id of Object.values(questions)) {
      const path = `/api/export/predictions/manifest?question_id=${id}`;
      if ((await app.call('GET', path)).body.rows !== count + 1) return false;
    }
    return true;
  },
  60_000,
  500,
);

const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/**
 * Does some work while repeatedly requesting /livez. `share` is the largest part of this process's
 * work that was done in one turn of its event loop.
 */
const watch = async <T>(work: () => Promise<T>) => {
  let is_over = false;
  let answered = 0;
  let longest = 0;
  const begun = cpu();
  let last = begun;
  const turn = (): void => {
    const now = cpu();
    longest = Math.max(longest, now - last);
    last = now;
    if (!is_over) setImmediate(turn);
  };
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  setImmediate(turn);
  const asking = (async () => {
    while (!is_over) {
      const answer = await fetch(`${app.url}/livez`);
      await answer.arrayBuffer();
      if (!is_over && answer.status === 200) answered += 1;
    }
  })();
  try {
    const result = await work();
    const work_us = cpu() - begun;
    return { result, answered, work_us, share: longest / work_us, delay_ms: delay.max / 1e6 };
  } finally {
    is_over = true;
    delay.disable();
    await asking;
  }
};

interface Watched<T> {
  readonly work: () => Promise<T>;
  /** Minimum number of other requests answered in between. */
  readonly least?: number;
  /** The largest allowed part of the work in one turn. */
  readonly most?: number;
  readonly runs?: number;
}

/**
 * Checks that other requests are answered in between, and that no turn does most of the work. Takes
 * the best of several runs.
 */
const letsOthersIn = async <T>(
  t: Test,
  what: string,
  { work, least = 5, most = 0.5, runs = 3 }: Watched<T>,
): Promise<T> => {
  const seen: Awaited<ReturnType<typeof watch<T>>>[] = [];
  for (const _ of range(1, runs)) seen.push(await watch(work));
  const { result, delay_ms } = seen.at(-1)!;
  // If the result is cached after the first run, only the first run counts.
  const heaviest = Math.max(...seen.map(({ work_us }) => work_us));
  const made = seen.filter(({ work_us }) => work_us >= heaviest / 2);
  const answered = Math.max(...made.map((one) => one.answered));
  const share = Math.min(...made.map((one) => one.share));
  // A turn may take 50 ms of CPU. Work that takes less than two such turns need not be split.
  if (heaviest < 100_000) {
    t.pass(`${what}: hardly any work`);
    return result;
  }
  t.comment(`${what}: ${answered} answered, ${share.toFixed(2)} in one turn, ${delay_ms} ms`);
  t.ok(answered >= least, `${what}: ${answered} others were answered, of ${least}`);
  const longest_us = Math.min(...made.map((one) => one.share * one.work_us));
  const is_short = share <= most || longest_us <= 50_000;
  t.ok(is_short, `${what}: ${share.toFixed(2)} of the work was done in one turn`);
  return result;
};

const read = async (path: string, headers: Record<string, string> = {}) => {
  const { answer, bytes } = await fetchBytes(app.url + path, headers);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${bytes.toString()}`);
  return { answer, bytes };
};

const history = '/api/export/consensus-history';

t.test('the history of a yes/no question lets others in, in every format', async (t) => {
  for (const format of ['ndjson', 'csv', 'json', 'parquet']) {
    const path = `${history}?question_id=${questions.yes_no}&format=${format}`;
    const { bytes } = await letsOthersIn(t, format, { work: () => read(path) });
    if (format === 'ndjson') t.equal(readLines(bytes.toString()).length, count + 1);
    if (format === 'json') t.ok(JSON.parse(bytes.toString()));
    if (format === 'parquet') t.equal(bytes.toString('latin1', 0, 4), 'PAR1');
  }
});

t.test('the history of a question with ten options lets others in', async (t) => {
  for (const format of ['ndjson', 'parquet']) {
    const path = `${history}?question_id=${questions.options}&format=${format}`;
    const { bytes } = await letsOthersIn(t, format, { work: () => read(path) });
    if (format === 'ndjson') t.equal(readLines(bytes.toString()).length, count + 1);
  }
  const path = `/api/questions/${questions.options}/consensus`;
  const { bytes } = await letsOthersIn(t, 'consensus', {
    work: () => read(path),
    least: 1,
    most: 0.8,
  });
  t.equal(JSON.parse(bytes.toString()).options.length, 10);
});

t.test('the history of a numeric question lets others in', async (t) => {
  for (const format of ['ndjson', 'csv']) {
    const path = `${history}?question_id=${questions.numeric}&format=${format}`;
    const { bytes } = await letsOthersIn(t, format, { work: () => read(path), runs: 1 });
    if (format === 'ndjson') t.equal(readLines(bytes.toString()).length, count + 1);
  }
});

t.test('predictions and their manifest let others in, packed and not', async (t) => {
  const path = `/api/export/predictions?question_id=${questions.yes_no}`;
  for (const format of ['csv', 'ndjson', 'json', 'parquet']) {
    const { bytes } = await letsOthersIn(t, format, {
      work: () => read(`${path}&format=${format}`),
    });
    if (format === 'ndjson') t.equal(readLines(bytes.toString()).length, count + 1);
  }
  const packed = await letsOthersIn(t, 'gzip', {
    work: () => read(`${path}&format=csv`, { 'accept-encoding': 'gzip' }),
  });
  t.ok(packed.bytes.length > 0);
  const file = packed.answer.headers.get('content-type')?.includes('gzip')
    ? gunzipSync(packed.bytes)
    : packed.bytes;
  t.ok(file.length > count * 100, 'all of it came');
  const manifest = `/api/export/predictions/manifest?question_id=${questions.yes_no}`;
  await letsOthersIn(t, 'manifest', { work: () => read(manifest) });
});

t.test('charts of every kind let others in', async (t) => {
  for (const [type, id] of Object.entries(questions)) {
    for (const path of [
      'chart?points=1000',
      'chart.svg?theme=dark',
      'chart.png',
      'drift',
      'snapshots',
    ]) {
      const work = () => read(`/api/questions/${id}/${path}`);
      const { bytes } = await letsOthersIn(t, `${type} ${path}`, { work, least: 1, most: 0.8 });
      t.ok(bytes.length > 0);
    }
  }
});

t.test('a debate of thousands of replies, and its page, let others in', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const talker = await makeAgent(app, { human });
  const say = async (path: string, content: string): Promise<string> => {
    const { body } = await app.call('POST', path, { key: talker.key, body: { content } });
    return body.comment.id;
  };
  const root = await say(
    `/api/questions/${question_id}/comments`,
    'Has anybody compared the two surveys that were published?',
  );
  let parent = root;
  for (const depth of range(1, 8)) {
    parent = await say(
      `/api/comments/${parent}/reply`,
      `Survey number ${depth} was withdrawn yesterday, says “Größe” in the newest bulletin.`,
    );
  }
  await app.sql`
    insert into comments
    select made.*
    from comments c
    cross join generate_series(1, 400) as n
    cross join lateral jsonb_populate_record(c, jsonb_build_object(
      'id', uuidv7(), 'event_id', uuidv7(),
      'body_digest', sha256((c.id::text || n)::bytea),
      'content', c.content || ' ' || n
    )) made
    where c.question_id = ${question_id} and c.id <> ${root}`;
  for (const path of [
    `/api/questions/${question_id}/debates`,
    `/api/questions/${question_id}/comments?limit=100`,
    `/api/questions/${question_id}/comments?thread=${root}&limit=100`,
    '/api/discussions?tab=debates',
    `/questions/${question_id}`,
    '/api/export/comments?format=csv',
  ]) {
    const work = () => read(path, { accept: path.startsWith('/api') ? '*/*' : 'text/html' });
    const { bytes } = await letsOthersIn(t, path, { work, least: 1, most: 0.8 });
    t.ok(bytes.length > 0);
  }
});

t.test('pages and briefs of a question with thousands of forecasts let others in', async (t) => {
  for (const [type, id] of Object.entries(questions)) {
    for (const [path, accept] of [
      [`/questions/${id}`, 'text/html'],
      [`/embed/${id}`, 'text/html'],
      [`/api/questions/${id}`, '*/*'],
      [`/api/questions/${id}/predictions?sort=top&limit=100`, '*/*'],
      [`/api/questions/${id}/intel-brief`, '*/*'],
      [`/api/questions/${id}/intel-brief`, 'text/markdown'],
      ['/api/insights/daily', '*/*'],
    ] as const) {
      const work = () => read(path, { accept });
      await letsOthersIn(t, `${type} ${path} ${accept}`, { work, least: 1, most: 0.8 });
    }
  }
});

t.test('boards, calibration and a record of thousands of scores let others in', async (t) => {
  const categories = ['technology', 'industry', 'society'];
  await addScores(
    app.sql,
    range(0, 3 * count - 1).map((n) => ({
      agent_id: n % 2 === 0 ? placer.id : agentId(n % 300),
      category: categories[n % 3]!,
      stated: n % 101,
      hit: n % 3 === 0,
      resolved_at: new Date(Date.now() - n * 1_000),
    })),
  );
  for (const [path, least, most] of [
    ['/api/export/calibration', 1, 0.8],
    ['/api/export/calibration?format=csv', 1, 0.8],
    ['/api/export/calibration.svg', 1, 0.8],
    ['/api/leaderboard?by=brier&limit=100', 1, 0.8],
    ['/api/leaderboard?by=log&of=families', 1, 0.8],
    ['/api/agents?limit=100', 1, 0.8],
    [`/api/agents/${placer.id}`, 1, 0.8],
    [`/api/agents/${placer.id}/points`, 1, 0.8],
  ] as const) {
    await letsOthersIn(t, path, { work: () => read(path), least, most });
  }
  const own = () => read('/api/me', { 'x-api-key': placer.key });
  const { bytes } = await letsOthersIn(t, 'me', { work: own, least: 1, most: 0.8 });
  t.equal(JSON.parse(bytes.toString()).user.id, placer.id);
});

t.test('the log, feeds, own exports, batches and imports let others in', async (t) => {
  /** Reads every page of the log, one after another. */
  const readLog = async (format: string): Promise<number> => {
    let [after, events] = [0, 0];
    for (;;) {
      const more = format === 'ndjson' ? '&format=ndjson' : '';
      const path = `/api/events?after=${after}&limit=100${more}`;
      const { answer, bytes } = await read(path);
      const page = format === 'json' ? JSON.parse(bytes.toString()) : null;
      const next = Number(page?.next ?? answer.headers.get('x-log-next'));
      events += page?.events.length ?? readLines(bytes.toString()).length;
      if (next === after || events >= 3 * count) return events;
      after = next;
    }
  };
  for (const format of ['json', 'ndjson']) {
    const work = () => readLog(format);
    t.ok((await letsOthersIn(t, `log as ${format}`, { work, runs: 1 })) >= 3 * count);
  }
  for (const path of [
    '/feed.xml',
    `/questions/${questions.yes_no}/feed.xml`,
    '/api/events/digest',
  ]) {
    await letsOthersIn(t, path, { work: () => read(path), least: 1, most: 0.8 });
  }
  const own = () => read('/api/me/export', { 'x-api-key': placer.key });
  await letsOthersIn(t, 'own export', { work: own, least: 1, most: 0.8 });

  const hundred = await Promise.all(range(1, 100).map(() => makeOpenQuestion(app)));
  const { key } = await makeAgent(app, { human });
  const predictions = hundred.map((question_id) => ({
    question_id,
    probability: 62,
    reasoning: makeReasoning().slice(0, 480),
  }));
  const batch = await letsOthersIn(t, 'a batch of 100', {
    runs: 1,
    work: () => app.call('POST', '/api/predictions/batch', { key, body: { predictions } }),
  });
  t.equal(batch.status, 200, JSON.stringify(batch.body).slice(0, 500));
  t.equal(batch.body.results.length, 100);
  const closes_at = new Date(Date.now() + 30 * 86_400_000).toISOString();
  const items = range(1, 100).map((n) => ({
    question: `Will the “Größe” of series ${n} be measured again before the next winter?`,
    category: 'society',
    closes_at,
    source: 'seven',
    source_id: String(n),
  }));
  const imported = await letsOthersIn(t, 'an import of 100', {
    runs: 1,
    work: () =>
      app.call('POST', '/api/admin/questions/import', {
        admin: true,
        body: { items, publish: true },
      }),
  });
  t.equal(imported.status, 200, JSON.stringify(imported.body).slice(0, 500));
  t.ok(imported.body.results.every(({ status }: { status: string }) => status === 'created'));
});

t.test('a process that is busy for some seconds is not killed by its watchdog', async (t) => {
  const folder = makeTestFolder();
  const entry = fileURLToPath(new URL('../process/service.js', import.meta.url));
  const { child, url: running, code, output } = launch(folder, {}, entry);
  t.teardown(async () => {
    child.kill('SIGKILL');
    await until('all end', () => processesOf(folder).length === 0, 30_000, 100);
    removeTestFolder(folder);
  });
  const url = await running;
  const ask = async (path: string): Promise<number> =>
    ((await (await fetch(url + path)).json()) as { pid: number }).pid;
  const pid = await ask('/');
  for (const seconds of [2, 8]) {
    t.equal(await ask(`/busy?${seconds}`), pid, `the same process answers after ${seconds} s`);
    t.ok(processesOf(folder).includes(pid), 'and it was not replaced');
  }
  t.notMatch(output(), /killed|SIGKILL|SIGABRT/, 'nothing was ended');
  child.kill('SIGINT');
  t.equal(await code, 0);
});
