import type { Test } from 'tap';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { decideQuestion } from '../../../src/features/resolution/index.js';
import { readDecision } from '../../../src/features/resolution/rules.js';
import { createSettling } from '../../../src/features/resolution/settling.js';
import { makeId } from '../../../src/kit/ids.js';
import { makeRandom } from '../../help/long-run.js';
import { openParts, type Parts } from '../../help/parts.js';
import { findWrongAccounts, untilSettled } from '../../help/settling.js';
import { t } from '../../help/tap.js';

/** Compares settling with SQL on a random season with revisions, reopenings and `known_at`. */

const agents = 23;
const questions = 12;
const options = ['Rises', 'Stays', 'Falls'];
const isMulti = (n: number): boolean => n % 3 === 0;
const minute = 60_000;

interface Row {
  readonly question_id: string;
  readonly agent_id: string;
  readonly prediction: boolean | null;
  readonly probability: number | null;
  readonly confidence: number;
  readonly selected_option: number | null;
  readonly probabilities: number[] | null;
  readonly at: Date;
}

const stated = (is_multi: boolean, pick: (below: number) => number) => {
  const none = { selected_option: null, probabilities: null, prediction: null, probability: null };
  if (!is_multi) {
    const probability = pick(10_001);
    const prediction = probability >= 5_000;
    const confidence = prediction ? probability : 10_000 - probability;
    return { ...none, prediction, probability, confidence };
  }
  if (pick(2) === 0) return { ...none, selected_option: pick(3), confidence: pick(10_001) };
  const [a = 0, b = 0] = [pick(10_001), pick(10_001)].sort((x, y) => x - y);
  const probabilities = [a, b - a, 10_000 - b];
  const confidence = Math.max(...probabilities);
  return { ...none, probabilities, confidence, selected_option: probabilities.indexOf(confidence) };
};

const insertRows = async (sql: Sql, forecasts: readonly Row[]): Promise<void> => {
  const last = forecasts.at(-1)!;
  for (const [revision, { at, probabilities, ...row }] of forecasts.slice(0, -1).entries()) {
    await sql`
      insert into earlier_forecasts ${sql({ ...row, revision, event_id: makeId(), created_at: at })}`;
    await sql`
      update earlier_forecasts set probabilities = ${probabilities}::smallint[]
      where question_id = ${row.question_id} and agent_id = ${row.agent_id}
        and revision = ${revision}`;
  }
  const { at, probabilities, ...row } = last;
  const revision = forecasts.length - 1;
  const id = makeId();
  await sql`
    insert into predictions ${sql({
      ...row,
      id,
      reasoning: 'x'.repeat(200),
      model_family: 'gpt',
      event_id: id,
      revision,
      citations: [] as string[],
      body_digest: Buffer.alloc(32),
      created_at: forecasts[0]!.at,
      revised_at: revision === 0 ? null : at,
      revision_event_id: revision === 0 ? null : makeId(),
    } as never)}`;
  await sql`
    update predictions
    set probabilities = ${probabilities}::smallint[],
      (owner_id, model_family) = (select owner_id, model_family from agents where id = agent_id)
    where id = ${id}`;
};

/** Questions are open from minute 0 to 1,000, and many are closed for a while in between. */
const makeSeason = async (t: Test): Promise<Parts & { readonly start: number }> => {
  const parts = await openParts(t);
  const { sql } = parts.deps;
  const random = makeRandom(23);
  const pick = (below: number): number => Math.floor(random() * below);
  const keys = Array.from({ length: agents }, makeApiKey);
  await seed(sql, { keys, questions, optionsOf: (n) => (isMulti(n) ? options : []) });
  const start = parts.deps.clock().getTime() - 2_000 * minute;
  const at = (minutes: number): Date => new Date(start + minutes * minute);
  for (let n = 0; n < questions; n += 1) {
    const question_id = questionId(n);
    await sql`
      update questions
      set status = 'closed', weight = ${1 + pick(5)}, opens_at = ${at(0)},
        closes_at = ${at(n % 2 === 0 ? 1_000 : 1_500)}, closed_at = ${at(n % 2 === 0 ? 1_200 : 1_000)}
      where id = ${question_id}`;
    const gap = [200 + pick(100), 320 + pick(100)] as const;
    if (n % 4 < 3) {
      await sql`
        insert into closed_times (question_id, from_at, to_at)
        values (${question_id}, ${at(gap[0])}, ${at(gap[1])}), (${question_id}, ${at(600)}, ${at(650)})`;
    }
    for (let agent = 0; agent < agents; agent += 1) {
      // Some agents never predict, most once or twice, a few several times in the same minute.
      const times = Array.from({ length: pick(5) }, () => pick(1_001)).sort((a, b) => a - b);
      const rows = times.map((minutes) => ({
        question_id,
        agent_id: agentId(agent),
        at: at(minutes),
        ...stated(isMulti(n), pick),
      }));
      if (rows.length > 0) await insertRows(sql, rows);
    }
  }
  return { ...parts, start };
};

const resolveAll = async (
  { deps, start }: Awaited<ReturnType<typeof makeSeason>>,
  turn: number,
) => {
  for (let n = 0; n < questions; n += 1) {
    const outcome = isMulti(n)
      ? { correct_options: (n + turn) % 2 === 0 ? ['Stays'] : ['Rises', 'Falls'] }
      : { outcome: (n + turn) % 4 < 2 };
    const known_at = new Date(start + (300 + n * 50) * minute).toISOString();
    const known = (n + turn) % 3 === 0 ? {} : { known_at };
    const body = { ...outcome, ...known, resolution_note: `Looked at ${turn + 1} times.` };
    await deps.sql.begin((tx) =>
      decideQuestion(tx, {
        question_id: questionId(n),
        decided_by: 'admin',
        at: deps.clock(),
        decide: (row, at) => readDecision(body, row, at),
      }),
    );
  }
  for (let n = 0; n < questions; n += 1) await untilSettled(deps.sql, questionId(n));
};

/** Computes the exact points of each prediction in SQL. Null if the prediction is unscored. */
const recompute = (sql: Sql) => sql<
  { question_id: string; agent_id: string; net: number; brier: number; log_score: number }[]
>`
  with decided as (
    select
      q.id, q.weight, q.options, coalesce(nullif(cardinality(q.options), 0), 2)::numeric as n,
      r.outcome, r.correct_options, least(q.closes_at, q.closed_at) as close, r.known_at,
      least(q.closes_at, q.closed_at, r.known_at) as ends
    from questions q
    join resolutions r on r.question_id = q.id and r.revision = q.revision
  ),
  counted as (
    select
      f.*, d.ends, d.weight, d.n, d.options, d.outcome, d.correct_options,
      coalesce(lead(f.forecast_at) over later, d.ends) as until_at,
      lead(f.forecast_at) over later is null as is_last
    from forecasts f
    join decided d on d.id = f.question_id
    where f.forecast_at < d.ends
      or (f.forecast_at = d.close and (d.known_at is null or d.known_at > d.close))
    window later as (partition by f.question_id, f.agent_id order by f.revision)
  ),
  stood as (
    select
      c.*,
      extract(epoch from c.until_at - c.forecast_at) - coalesce(
        (
          select sum(extract(epoch from least(c.until_at, t.to_at) - greatest(c.forecast_at, t.from_at)))
          from closed_times t
          where t.question_id = c.question_id
            and t.from_at < c.until_at and t.to_at > c.forecast_at
        ),
        0
      ) as seconds
    from counted c
  ),
  options as (
    select
      s.question_id, s.agent_id, s.revision, i,
      case
        when s.probability is not null
          then case i when 1 then s.probability else 10000 - s.probability end / 10000.0
        when s.probabilities is not null then s.probabilities[i] / 10000.0
        when s.selected_option = i - 1 then s.confidence / 10000.0
        else (10000 - s.confidence) / (10000.0 * (s.n - 1))
      end::numeric as p,
      case
        when s.outcome is not null then (s.outcome = (i = 1))::integer
        when s.options[i] = any (s.correct_options) then 1.0 / cardinality(s.correct_options)
        else 0
      end::numeric as o
    from stood s
    cross join generate_series(1, s.n::integer) as i
  ),
  terms as (
    select
      question_id, agent_id, revision, sum((p - o) ^ 2) as b, sum((1 / n - o) ^ 2) as u,
      avg(p) filter (where o > 0) as forecast
    from options
    join (select id, n from decided) d on d.id = question_id
    group by question_id, agent_id, revision
  ),
  lives as (
    select
      s.question_id, s.agent_id, s.weight, s.n, t.u, sum(s.seconds) as total,
      sum(t.b * s.seconds) as b, sum(ln(least(0.9999, greatest(0.0001, t.forecast))) * s.seconds) as l,
      max(t.b) filter (where s.is_last) as last_b,
      max(ln(least(0.9999, greatest(0.0001, t.forecast)))) filter (where s.is_last) as last_l
    from stood s
    join terms t using (question_id, agent_id, revision)
    group by s.question_id, s.agent_id, s.weight, s.n, t.u
  )
  select
    question_id, agent_id,
    round(100 * weight * (u - mean_b) / (1 - 1 / n))::integer as net,
    (mean_b / 2)::double precision as brier, mean_l::double precision as log_score
  from lives
  cross join lateral (
    select
      case when total > 0 then b / total else last_b end as mean_b,
      case when total > 0 then l / total else last_l end as mean_l
  ) m
  order by question_id, agent_id`;

const readScores = (sql: Sql) => sql<
  { question_id: string; agent_id: string; net: number; brier: number; log_score: number }[]
>`
  select question_id, agent_id, net, brier, log_score from scores order by question_id, agent_id`;

/** Predictions whose ledger entries do not sum to the net, or to 0 if they are unscored. */
const findUnpaid = (sql: Sql) => sql`
  select p.id, s.net, l.total
  from predictions p
  left join scores s using (question_id, agent_id)
  left join (select subject_id, sum(amount) as total from ledger group by 1) l
    on l.subject_id = p.id
  where coalesce(s.net, 0) <> coalesce(l.total, 0)`;

const compare = async (t: Test, sql: Sql): Promise<number> => {
  const [wanted, stored] = [await recompute(sql), await readScores(sql)];
  const exact = ({ question_id, agent_id, net }: (typeof wanted)[number]) => [
    question_id,
    agent_id,
    net,
  ];
  t.same(stored.map(exact), wanted.map(exact), 'who is scored, and the net');
  const far = wanted.filter((row, n) => {
    const own = stored[n]!;
    return Math.abs(own.brier - row.brier) > 1e-9 || Math.abs(own.log_score - row.log_score) > 1e-9;
  });
  t.same(far, []);
  t.same([...(await findUnpaid(sql))], []);
  t.same([...(await findWrongAccounts(sql))], []);
  return wanted.length;
};

interface Stood {
  readonly agent: string;
  readonly owner: string;
  readonly family: string;
  readonly model: string;
  readonly minute: number;
  readonly shares: readonly number[];
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

const groupsOf = (all: readonly Stood[], by: 'owner' | 'family' | 'model' | 'agent') => {
  const groups = new Map<string, Stood[]>();
  for (const one of all) groups.set(one[by], [...(groups.get(one[by]) ?? []), one]);
  return groups;
};

const columns = (rows: readonly (readonly number[])[]): readonly number[] =>
  rows[0]!.map((_, i) => mean(rows.map((row) => row[i]!)));

/** The four candidates of `mixture-1` for one chance as specified, with ρ = 0.6. */
const candidatesOf = (all: readonly Stood[], side: number): readonly number[] => {
  const chanceIn = ({ shares }: Stood) => Math.round(1e4 * shares[side]! + 1e-6) / 1e4;
  const sorted = all.map(chanceIn).sort((a, b) => a - b);
  const half = sorted.length / 2;
  const exact = (sorted[Math.ceil(half - 0.5)]! + sorted[Math.floor(half - 0.5)]!) / 2;
  const median = Math.round(1e4 * exact + 1e-6) / 1e4;
  const logOdds = (one: Stood) => {
    const kept = Math.min(0.99, Math.max(0.01, chanceIn(one)));
    return Math.log(kept / (1 - kept));
  };
  const of_owner = groupsOf(all, 'owner');
  const weight = ({ owner }: Stood): number => 1 / of_owner.get(owner)!.length;
  const families = [...groupsOf(all, 'family').values()].map((own) => {
    const w = own.reduce((sum, one) => sum + weight(one), 0);
    const x = own.reduce((sum, one) => sum + weight(one) * logOdds(one), 0) / w;
    return { own, w, x, v: w / (1 + 0.25 * Math.max(0, w - 1)) };
  });
  const v = families.reduce((sum, one) => sum + one.v, 0);
  const l = families.reduce((sum, one) => sum + one.v * one.x, 0) / v;
  const squares = [...of_owner.keys()].reduce((sum, owner) => {
    const a = families.reduce((total, family) => {
      const own = family.own.filter((one) => one.owner === owner);
      const w = own.reduce((all_of_it, one) => all_of_it + weight(one), 0);
      return total + ((family.v / v) * w) / family.w;
    }, 0);
    return sum + a * a;
  }, 0);
  const n = 1 / (0.6 + 0.4 * squares);
  const d = (3 * n) / (Math.sqrt(3 * n * n - 3 * n + 1) + 2);
  const by_owner = mean([...of_owner.values()].map((own) => mean(own.map(logOdds))));
  const logistic = (x: number) => 1 / (1 + Math.exp(-x));
  return [median, logistic(by_owner), logistic(d * l), logistic(((1 + d) / 2) * l)];
};

/** The headline, with equal weights. */
const pool = (all: readonly Stood[]): readonly number[] => {
  const sides = all[0]!.shares;
  if (sides.length === 2) {
    const p = mean(candidatesOf(all, 0));
    return [p, 1 - p];
  }
  const lists = sides.map((_, side) => candidatesOf(all, side));
  return lists.map((list) =>
    mean(list.map((one, i) => one / lists.reduce((sum, other) => sum + other[i]!, 0))),
  );
};

const meanOfOwners = (all: readonly Stood[]): readonly number[] =>
  columns([...groupsOf(all, 'owner').values()].map((own) => columns(own.map((one) => one.shares))));

interface Plain {
  brier: number[];
  peer: number[];
}

/** Computes Brier and relative scores, the crowd and the skill of all agents, by the minute. */
const simulate = async (sql: Sql, start: number, n: number) => {
  const question_id = questionId(n);
  const [decided] = await sql`
    select
      least(q.closes_at, q.closed_at) as close, r.known_at, q.options, r.outcome, r.correct_options
    from questions q
    join resolutions r on r.question_id = q.id and r.revision = q.revision
    where q.id = ${question_id}`;
  const closed = await sql`
    select from_at, to_at from closed_times where question_id = ${question_id}`;
  const rows = await sql`
    select f.*, a.model, f.probabilities::integer[] as shares
    from forecasts f join agents a on a.id = f.agent_id
    where f.question_id = ${question_id}
    order by f.forecast_at, f.agent_id, f.revision`;
  const minuteOf = (at: Date): number => Math.round((at.getTime() - start) / minute);
  const correct: number[] =
    decided!['outcome'] === null
      ? decided!['correct_options'].map((text: string) => options.indexOf(text))
      : [decided!['outcome'] ? 0 : 1];
  const close = minuteOf(decided!['close']);
  const known = decided!['known_at'] === null ? 9_999 : minuteOf(decided!['known_at']);
  const size = isMulti(n) ? 3 : 2;
  const all = rows.flatMap((row): Stood[] => {
    const at = minuteOf(row['forecast_at']);
    if (at >= known || at > close) return [];
    const rest = (10_000 - row['confidence']) / (size - 1);
    const bp: number[] =
      row['probability'] !== null
        ? [row['probability'], 10_000 - row['probability']]
        : (row['probabilities'] ??
          options.map((_, i) => (i === row['selected_option'] ? row['confidence'] : rest)));
    const { agent_id: agent, owner_id: owner, model_family: family, model } = row;
    return [{ agent, owner, family, model, minute: at, shares: bp.map((one) => one / 1e4) }];
  });
  const o = (i: number): number => (correct.includes(i) ? 1 / correct.length : 0);
  const brierOf = (shares: readonly number[]): number =>
    shares.reduce((sum, p, i) => sum + (p - o(i)) ** 2, 0) / 2;
  const logOf = (shares: readonly number[]): number =>
    Math.log(Math.min(0.9999, Math.max(0.0001, mean(correct.map((i) => shares[i]!)))));

  const figures = new Map<string, Plain>();
  const note = (kind: string, forecasters: ReadonlyMap<string, readonly number[]>): void => {
    const logs = new Map([...forecasters].map(([name, shares]) => [name, logOf(shares)]));
    const sum = [...logs.values()].reduce((total, log) => total + log, 0);
    for (const [name, shares] of forecasters) {
      const own = figures.get(`${kind} ${name}`) ?? { brier: [], peer: [] };
      figures.set(`${kind} ${name}`, own);
      own.brier.push(brierOf(shares));
      const log = logs.get(name)!;
      if (logs.size > 1) own.peer.push(100 * (log - (sum - log) / (logs.size - 1)));
    }
  };
  const latest = (until: number) => {
    const standing = new Map<string, Stood>();
    for (const one of all) if (one.minute <= until) standing.set(one.agent, one);
    return [...standing.values()];
  };
  const isClosed = (m: number): boolean =>
    closed.some(({ from_at, to_at }) => m >= minuteOf(from_at) && m < minuteOf(to_at));
  const gains = new Map<string, number[]>();
  const crowds = new Map<string, (number | null)[]>();
  const before = all.map((one, place) => {
    const others = new Map<string, Stood>();
    for (const other of all.slice(0, place)) others.set(other.agent, other);
    others.delete(one.agent);
    const shares = others.size === 0 ? null : pool([...others.values()]);
    const chance = shares === null ? null : mean(correct.map((i) => shares[i]!));
    crowds.set(one.agent, [...(crowds.get(one.agent) ?? []), chance]);
    return shares;
  });
  for (let m = 0; m < Math.min(close, known); m += 1) {
    const standing = latest(m);
    if (isClosed(m) || standing.length === 0) continue;
    note('agent', new Map(standing.map((one) => [one.agent, one.shares])));
    for (const by of ['family', 'model'] as const) {
      const groups = [...groupsOf(standing, by)];
      note(by, new Map(groups.map(([name, own]) => [name, meanOfOwners(own)])));
    }
    note('crowd', new Map([['crowd', pool(standing)]]));
    note('even', new Map([['even', new Array<number>(size).fill(1 / size)]]));
    for (const one of standing) {
      const shares = before[all.indexOf(one)] ?? null;
      if (shares === null) continue;
      const gain = brierOf(shares) - brierOf(one.shares);
      gains.set(one.agent, [...(gains.get(one.agent) ?? []), gain]);
    }
  }
  return { figures, gains, crowds };
};

const isNear = (a: number | null, b: number | undefined): boolean =>
  a === null || b === undefined ? a === null && b === undefined : Math.abs(a - b) < 1e-9;
const meanOf = (values: readonly number[] | undefined): number | undefined =>
  values === undefined || values.length === 0 ? undefined : mean(values);

t.test(
  'relative scores, crowd, skill and groups are what a look at each minute finds',
  async (t) => {
    const season = await makeSeason(t);
    const { sql } = season.deps;
    const settling = createSettling(season.deps, { poll_ms: 5, per_second: 1_000_000 });
    await settling.start();
    t.teardown(() => settling.stop());
    await resolveAll(season, 0);
    const off: unknown[] = [];
    let compared = 0;
    for (let n = 0; n < questions; n += 1) {
      const { figures, gains, crowds } = await simulate(sql, season.start, n);
      const scores = await sql`select * from scores where question_id = ${questionId(n)}`;
      for (const score of scores) {
        const { agent_id, brier, relative, skill, crowd } = score;
        const wanted = crowds.get(agent_id)!;
        const same_crowd = wanted.every((one, i) => isNear(crowd[i], one ?? undefined));
        if (!same_crowd || crowd.length !== wanted.length) off.push([n, crowd, wanted]);
        // Agents without a forecast that lasted any time are skipped. Another test covers them.
        const own = figures.get(`agent ${agent_id}`);
        if (own === undefined) continue;
        compared += 1;
        const gain = meanOf(gains.get(agent_id));
        if (!isNear(brier, mean(own.brier))) off.push([n, brier, mean(own.brier)]);
        if (!isNear(relative, meanOf(own.peer))) off.push([n, relative, meanOf(own.peer)]);
        if (!isNear(skill, gain)) off.push([n, skill, gain]);
      }
      const groups = await sql`select * from group_scores where question_id = ${questionId(n)}`;
      for (const { kind, name, brier, relative } of groups) {
        const own = figures.get(`${kind} ${name}`);
        if (own === undefined) continue;
        compared += 1;
        if (!isNear(brier, mean(own.brier))) off.push([n, kind, name, brier, mean(own.brier)]);
        const peer = kind === 'family' || kind === 'model' ? meanOf(own.peer) : undefined;
        if (!isNear(relative, peer)) off.push([n, kind, name, relative, peer]);
      }
      const kinds = new Set(groups.map(({ kind }) => kind));
      t.same(kinds, new Set(['family', 'model', 'crowd', 'even']));
    }
    t.same(off.slice(0, 5), []);
    t.ok(compared > 300, `${compared} forecasters compared`);
  },
);

const readAll = async (sql: Sql) => ({
  scores: await sql`
    select to_jsonb(s) - 'settled_at' as row from scores s order by question_id, agent_id`,
  groups: await sql`
    select to_jsonb(s) - 'settled_at' as row from group_scores s order by question_id, kind, name`,
});

t.test('what is settled is what SQL makes of the forecasts, decision after decision', async (t) => {
  const season = await makeSeason(t);
  const { sql } = season.deps;
  const settling = createSettling(season.deps, { poll_ms: 5, per_second: 1_000_000 });
  await settling.start();
  t.teardown(() => settling.stop());
  await resolveAll(season, 0);
  const [all] = await sql<{ count: number }[]>`select count(*)::int as count from predictions`;
  const scored = await compare(t, sql);
  t.ok(scored > 100 && scored < all!.count - 10, `${scored} of ${all!.count} are scored`);
  await resolveAll(season, 1);
  await compare(t, sql);

  const kept = await readAll(sql);
  t.equal(new Set(kept.groups.map(({ row }) => row.question_id)).size, questions);
  t.ok(
    kept.groups.every(({ row }) => row.revision === 2),
    'groups are those of the new revision',
  );
  await sql`
    update resolutions r set state = 'rescoring', done = 0, cursor_agent = null
    from questions q
    where q.id = r.question_id and q.revision = r.revision`;
  const notices = () => sql`select count(*)::int as count from notifications`;
  const before = await notices();
  for (let n = 0; n < questions; n += 1) {
    while ((await sql`select from resolutions where state = 'rescoring'`).length > 0) {
      await untilSettled(sql, questionId(n));
    }
  }
  t.same(await readAll(sql), kept, 'scoring once more changes nothing');
  t.same(await notices(), before, 'and nobody is notified');
  await compare(t, sql);
});
