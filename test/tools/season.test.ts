import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { findDifferences } from '../../src/tools/verify.js';
import { startApp } from '../help/app.js';
import { makeRandom } from '../help/long-run.js';
import { openParts } from '../help/parts.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openImport } from './import-files.js';
import { convert, makeSeason, type SeasonRecord, scoreDirectly } from './season-records.js';

const open = async () => {
  const app = await startApp(t);
  const { deps } = await openParts(t, { stores: app.stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: app.stores.redis_prefix };
  const differences = () => findDifferences(parts);
  /** Waits until every decision is settled and on the boards. */
  const rest = async (): Promise<void> => {
    const isQuiet = async (): Promise<boolean> => {
      const [row] = await app.sql<{ left: number }[]>`
        select count(*)::integer as left from resolutions where state = 'running'`;
      return row?.left === 0 && (await differences()).length === 0;
    };
    await until('nothing is under way', isQuiet, 60_000, 200);
  };
  return { ...openImport(t, app), app, differences, rest };
};

/** With two decimals. */
const percentOf = (fraction: number): number => Number((100 * fraction).toFixed(2));

/** The forecasts of one agent by question id. */
type Forecasts = ReadonlyMap<string, number>;

const forecastLines = (agent: string, season: readonly SeasonRecord[], forecasts: Forecasts) =>
  season.map(({ source, source_id, frozen_at }) => ({
    type: 'forecast',
    source,
    source_id,
    agent,
    model: 'test-model',
    forecast_at: frozen_at,
    probability: forecasts.get(source_id),
    scale: 'percent',
  }));

const { app, writeLines, run, rest, differences } = await open();

const question = (source_id: string, more: Record<string, unknown> = {}) => ({
  question: `Will line ${source_id} of the tramway run again in time?`,
  category: 'industry',
  opens_at: '2025-01-01',
  closes_at: '2025-12-01',
  publish: true,
  source: 'lines',
  source_id,
  ...more,
});
const forecast = (source_id: string, more: Record<string, unknown> = {}) => ({
  type: 'forecast',
  agent: 'Timetable',
  source: 'lines',
  source_id,
  probability: 80,
  forecast_at: '2025-06-01',
  ...more,
});
const outcome = (source_id: string, resolved_to: unknown) => ({
  type: 'resolution',
  source: 'lines',
  source_id,
  resolved_to,
});

t.test('lines of every type in any order, options and voids, and what is refused', async (t) => {
  const options = ['red', 'green', 'blue'];
  const multi = { question_type: 'multi', options };
  const text = 'EVIDENCE: too short to be a reasoning.';
  await app.call('POST', '/api/register', { body: { name: 'Stranger', model: 'gpt-4o' } });
  const file = writeLines('mixed.ndjson', [
    outcome('a', 0),
    forecast('a'),
    forecast('b', { probability: undefined, selected_option: 'green', confidence: 60 }),
    forecast('c', { probability: undefined, probabilities: { red: 20, blue: 80 } }),
    outcome('b', 'green'),
    outcome('c', 'void'),
    outcome('e', 0.4),
    { type: 'agent', name: 'Timetable', model: 'gpt-4o' },
    question('a'),
    question('b', multi),
    question('c', multi),
    question('d', { publish: false }),
    question('e'),
    forecast('d'),
    forecast('e', { forecast_at: '2024-06-01' }),
    forecast('e', { forecast_at: '2999-06-01' }),
    forecast('e', { reasoning: text }),
    forecast('e', { agent: 'Stranger' }),
    forecast('x'),
    forecast('e', { probability: 'high' }),
    forecast('a', { probability: 70 }),
    { type: 'rumour' },
  ]);
  const { code, output } = await run(file);
  t.equal(code, 4);
  t.match(output, /^line 7: A yes\/no question is resolved to 1, 0, yes, no or void, not to 0.4/m);
  t.match(output, /^line 14: There is no published question d from lines/m);
  t.match(
    output,
    /^line 15: The forecast was made at 2024-06-01T.*, but the question was open only/m,
  );
  t.match(output, /^line 16: The time of the forecast is in the future/m);
  t.match(output, /^line 17: .*200 characters/m);
  t.match(output, /^line 18: An agent that was not imported has this name/m);
  t.match(output, /^line 18: There is no imported agent named Stranger/m);
  t.match(output, /^line 19: There is no published question x from lines/m);
  t.match(output, /^line 20: .*probability/m);
  t.match(output, /^line 21: This agent already has a different forecast on this question/m);
  t.match(output, /^line 22: type must be one of question, agent, forecast, .* not rumour/m);
  t.match(
    output,
    /5 created, 0 there already, 1 bad\. agents: 1 created, 0 there already, 1 bad\./,
  );
  t.match(output, /forecasts: 3 created, .* resolutions: 3 created, 0 there already, 1 bad\./);
  await rest();
  const agents = await app.sql`
    select a.name, a.model_family, a.owner_id is not null as linked,
      c.balance = 5000 + (select sum(net) from scores s where s.agent_id = a.id) as paid
    from agents a
    join accounts c on c.agent_id = a.id
    where a.name = 'Timetable'`;
  t.same([...agents], [{ name: 'Timetable', model_family: 'gpt', linked: true, paid: true }]);
  const stored = await app.sql`
    select p.created_at, p.reasoning, p.citations, q.source_id, q.status, s.net
    from predictions p
    join questions q on q.id = p.question_id
    left join scores s on s.prediction_id = p.id
    order by q.source_id`;
  t.match(stored, [
    { source_id: 'a', status: 'resolved', created_at: new Date('2025-06-01'), net: -156 },
    { source_id: 'b', status: 'resolved', reasoning: /was recorded elsewhere, on 2025-06-01/ },
    { source_id: 'c', status: 'voided', net: null },
  ]);
  const acts = await app.sql`
    select act, count(*)::integer as count
    from audit_log
    where act like '%import'
    group by act
    order by act`;
  t.same(
    [...acts],
    [
      { act: 'agent.import', count: 1 },
      { act: 'prediction.import', count: 1 },
      { act: 'question.import', count: 5 },
    ],
  );
  const again = writeLines('again.ndjson', [
    outcome('a', 1),
    outcome('b', 'green'),
    outcome('c', 1),
  ]);
  const second = await run(again);
  t.match(second.output, /^line 1: The question is resolved with a different outcome/m);
  t.match(second.output, /resolutions: 0 created, 1 there already, 2 bad/);
});

t.test('a replayed season has the scores that its numbers have', async (t) => {
  const season = makeSeason(80, 7);
  const random = makeRandom(11);
  const crowd = new Map(season.map((one) => [one.source_id, percentOf(one.crowd_probability)]));
  const others = new Map<string, Forecasts>([
    ['Always 50', new Map(season.map(({ source_id }) => [source_id, 50]))],
  ]);
  for (const noise of [10, 25, 60]) {
    const noisy = [...crowd].map(([id, percent]): [string, number] => {
      const moved = Math.round(10 * (percent + noise * (2 * random() - 1))) / 10;
      return [id, Math.min(100, Math.max(0, moved))];
    });
    others.set(`Crowd with noise of ${noise}`, new Map(noisy));
  }
  const file = writeLines('season.ndjson', season);
  const keys = `${file}.keys`;
  const argv = ['--publish', '--keys', keys];
  const converted = (...flags: readonly string[]) => {
    const made = `${file}${flags.join('')}`;
    writeFileSync(made, convert(file, flags));
    return made;
  };
  t.match(await run(converted('--forecasts'), argv), {
    code: 0,
    output: /80 created, 0 there already, 0 bad\. agents: 2 created.* forecasts: 80 created/,
  });
  const more = [...others].flatMap(([agent, forecasts]) => forecastLines(agent, season, forecasts));
  const more_file = writeLines('more.ndjson', more);
  t.match(await run(more_file, ['--keys', keys]), {
    code: 0,
    output: /agents: 4 created.* forecasts: 320 created, 0 there already, 0 bad\./,
  });
  t.match(await run(converted('--resolutions'), argv), {
    code: 0,
    output: /0 created, 80 there already, 0 bad\. resolutions: 64 created/,
  });
  await rest();

  const known = new Map(
    readFileSync(keys, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; api_key: string; agent_id: string })
      .map((one) => [one.name, one]),
  );
  t.equal(statSync(keys).mode & 0o777, 0o600, 'keys are for their owner alone');
  const resolved = season.filter(({ resolved_to }) => resolved_to !== null);
  const check = async (agent: string, forecasts: Forecasts, of: readonly SeasonRecord[]) => {
    const wanted = scoreDirectly(
      of.map(({ source_id, resolved_to }) => ({
        probability: forecasts.get(source_id) ?? Number.NaN,
        happened: resolved_to === 1,
      })),
    );
    const me = await app.call('GET', '/api/me', { key: known.get(agent)?.api_key ?? '' });
    const { performance } = me.body;
    t.equal(performance.resolved, wanted.n, agent);
    t.equal(performance.correct, wanted.correct, agent);
    t.ok(Math.abs(performance.brier - wanted.brier) < 1e-6, `${agent}: Brier ${wanted.brier}`);
    t.ok(Math.abs(performance.log_score - wanted.log_score) < 1e-6, `${agent}: log score`);
    t.ok(
      Math.abs(performance.calibration.ece - wanted.ece) < 1e-6,
      `${agent}: ECE ${performance.calibration.ece}, by the numbers ${wanted.ece}`,
    );
    const bins = performance.calibration.bins as { n: number; frequency: number | null }[];
    t.same(
      bins.map(({ n }) => n),
      wanted.bins.map(({ n }) => n),
    );
    t.same(
      bins.map(({ n, frequency }) => Math.round((n * (frequency ?? 0)) / 100)),
      wanted.bins.map(({ hits }) => hits),
    );
    const [scores] = await app.sql<{ brier: number }[]>`
      select avg(brier) as brier
      from scores
      where agent_id = ${known.get(agent)?.agent_id ?? ''}`;
    t.ok(Math.abs((scores?.brier ?? 9) - wanted.brier) < 1e-12, `${agent}: the scores themselves`);
    return wanted;
  };
  for (const source of ['almanac', 'harbourbook']) {
    const of = resolved.filter((one) => one.source === source);
    await check(`Crowd of ${source}`, crowd, of);
  }
  for (const [agent, forecasts] of others) await check(agent, forecasts, resolved);
  const even = await check('Always 50', others.get('Always 50') as Forecasts, resolved);
  t.equal(even.brier, 0.25);
  t.same(await differences(), [], 'verify finds nothing');

  const before = await app.sql`select id, balance_after from ledger order by id`;
  t.match(await run(more_file), {
    code: 0,
    output: /forecasts: 0 created, 320 there already, 0 bad/,
  });
  t.match(await run(converted('--forecasts', '--resolutions'), argv), {
    output: /0 created, 80 there already, 0 bad\..*resolutions: 0 created, 64 there already, 0 bad/,
  });
  t.same(await app.sql`select id, balance_after from ledger order by id`, before, 'nothing twice');
});

t.test(
  'revised forecasts are paid by their time, up to the day on which the outcome was known',
  async (t) => {
    const known = { known_at: '2025-06-16' };
    const dial = (probability: number, day: number) =>
      forecast('known', { agent: 'Dial', probability, forecast_at: `2025-06-${day}` });
    const file = writeLines('known.ndjson', [
      question('known'),
      dial(80.5, 11),
      dial(30.25, '01' as never),
      dial(99.99, 21),
      forecast('known', { agent: 'Late', probability: 99.99, forecast_at: '2025-06-16' }),
      { ...outcome('known', 1), ...known },
    ]);
    const { code, output } = await run(file);
    t.equal(code, 0, output);
    await rest();
    const scores = await app.sql`
    select a.name, s.brier, s.net, s.stated from scores s join agents a on a.id = s.agent_id
    where s.question_id = (select id from questions where source_id = 'known')`;
    // Ten days at 30.25 %, five at 80.5 %. Forecasts from the sixteenth on do not count.
    const brier = (10 * 0.6975 ** 2 + 5 * 0.195 ** 2) / 15;
    t.match(scores, [{ name: 'Dial', net: Math.round(100 - 400 * brier), stated: 8_050 }]);
    t.equal(scores.length, 1);
    t.ok(Math.abs(scores[0]?.['brier'] - brier) < 1e-9);
  },
);
